"""One turn of a conversation, in no API's own shape: what a route asks for, made into what the engine runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastapi import Request

from engine.messages import GenerateRequest, Guidance, Prompt, RequestClass, RequestError, SamplingParams
from engine.text.answer import AnswerParser
from engine.text.grammar import answer_grammar
from engine.text.thinking import OPEN
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.generation import generate_request
from ignis_desktop.server.tools import AUTO, MAX_DEPTH, ToolChoice, schemas_of, too_deep

if TYPE_CHECKING:
    from engine import Engine


EFFORT_BUDGETS = {"low": 2_048, "medium": 8_192}
"""Tokens of reasoning for a client's word; more effort is not limited."""


@dataclass(frozen=True)
class Turn:
    """What a route asks for, its parts checked."""

    messages: list[dict[str, Any]]
    """As ``Engine.chat_prompt`` takes them."""
    tools: list[dict[str, Any]] = field(default_factory=list)
    """As ``tools.checked_tools`` gives them."""
    choice: ToolChoice = AUTO
    parallel: bool = True
    """False: one call at most."""
    schema: Mapping[str, Any] | None = None
    """JSON schema that the answer's text fits; ``{"type": "object"}`` is any JSON object."""
    thinking: bool | None = None
    """Whether to think before answering; None leaves it to the model's template."""
    thinking_budget: int | None = None
    """Tokens after which reasoning is closed, so that the answer has room."""
    tools_param: str = "tools"
    choice_param: str = "tool_choice"
    schema_param: str = "response_format"
    """Fields of the request that errors name."""


@dataclass(frozen=True)
class PreparedTurn:
    """What the engine runs, and what reads its answers."""

    prompt: Prompt
    sampling: SamplingParams
    guidance: Guidance | None
    opened: bool
    """The prompt ends with an opened reasoning block."""
    schemas: Mapping[str, Mapping[str, Any]] | None
    """Of the tools that the model was told of, by name."""
    most_calls: int | None
    exclusive: bool
    """The answer is either calls or a text, as its grammar says."""

    def parser(self) -> AnswerParser:
        """A fresh one; each answer needs its own."""
        return AnswerParser(self.schemas, opened=self.opened, most=self.most_calls, exclusive=self.exclusive)

    def request(self, http: Request, request_class: RequestClass, label: str, *, stream: bool) -> GenerateRequest:
        """A request for one answer. ``label``: the newest message's first words."""
        return generate_request(
            http, self.prompt, self.sampling, request_class, label, stream=stream, guidance=self.guidance
        )


def prepare_turn(engine: Engine, turn: Turn, sampling: Callable[[SamplingParams], SamplingParams]) -> PreparedTurn:
    """Fill the template, tokenise, and work out what the answer is held to.

    Takes milliseconds to seconds: not on the event loop.

    Args:
        sampling: the request's parameters, given the model's defaults.

    Raises:
        ApiError: 400 for what this model cannot do, naming the field.
    """
    tools = turn.tools
    if turn.choice.mode == "none":
        tools = []  # a model that is told of no tools calls none; one that does all the same has written a text
    if tools and not engine.loaded.template.takes_tools:
        raise ApiError(
            400,
            f"{turn.tools_param}: this model's chat template does not tell it of tools; leave them out.",
            code="tools_not_supported",
            param=turn.tools_param,
        )
    thinking = turn.thinking if engine.info.thinking else None
    budget = turn.thinking_budget
    if thinking is not None and budget == 0:
        thinking = False
    prompt = engine.chat_prompt(turn.messages, tools=tools or None, enable_thinking=thinking)
    opened = engine.tokenizer.decode(prompt.ids[-4:]).rstrip().endswith(OPEN)
    grammar = _grammar(engine, turn, schemas_of(tools), opened)
    if not opened:
        budget = None
    return PreparedTurn(
        prompt=prompt,
        sampling=sampling(engine.sampling_defaults(opened)),
        guidance=None if grammar is None and budget is None else Guidance(grammar, budget),
        opened=opened,
        schemas=schemas_of(tools) if tools else None,
        most_calls=None if turn.parallel else 1,
        exclusive=grammar is not None,
    )


def _grammar(engine: Engine, turn: Turn, tools: Mapping[str, Mapping[str, Any]], opened: bool) -> str | None:
    """What the answer must match; None when it is free."""
    forced = bool(tools) and turn.choice.mode == "required"
    if not forced and turn.schema is None:
        return None
    if turn.choice.name is not None:
        tools = {turn.choice.name: tools[turn.choice.name]}
    loaded = engine.loaded
    schema = None if forced else turn.schema
    if schema is not None:
        if too_deep(schema):
            message = f"{turn.schema_param}: the schema is nested more than {MAX_DEPTH} levels deep."
            raise bad_request(message, turn.schema_param)
        with _refused(turn.schema_param):
            loaded.grammars.check_schema(schema)
    for name, parameters in tools.items():
        with _refused(turn.tools_param, f"{name}: "):
            loaded.grammars.check_schema(parameters)
    with _refused(turn.schema_param if schema is not None else turn.tools_param):
        grammar = answer_grammar(
            engine.tokenizer,
            schema=schema,
            tools=tools,
            form=loaded.template.call_form,
            parallel=turn.parallel and turn.choice.name is None,
            opened=opened,
        )
        loaded.grammars.matcher(grammar)  # compiled here, found again when the request is submitted
    return grammar


@contextlib.contextmanager
def _refused(param: str, about: str = "") -> Iterator[None]:
    """Faults of schemas are those of the field that holds them."""
    try:
        yield
    except RequestError as error:
        raise ApiError(400, f"{param}: {about}{error.message}", code=error.code, param=param) from None
