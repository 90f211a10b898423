"""One turn of a conversation, in no API's own shape: what a route asks for, made into what the engine runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastapi import Request

from engine.messages import GenerateRequest, Prompt, RequestClass, SamplingParams
from engine.text.answer import AnswerParser
from engine.text.thinking import OPEN
from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.generation import generate_request
from ignis_desktop.server.tools import AUTO, ToolChoice, schemas_of

if TYPE_CHECKING:
    from engine import Engine


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
    opened: bool
    """The prompt ends with an opened reasoning block."""
    schemas: Mapping[str, Mapping[str, Any]] | None
    """Of the tools that the model was told of, by name."""
    most_calls: int | None

    def parser(self) -> AnswerParser:
        """A fresh one; each answer needs its own."""
        return AnswerParser(self.schemas, opened=self.opened, most=self.most_calls)

    def request(self, http: Request, request_class: RequestClass, label: str, *, stream: bool) -> GenerateRequest:
        """A request for one answer. ``label``: the newest message's first words."""
        return generate_request(http, self.prompt, self.sampling, request_class, label, stream=stream)


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
    if tools and turn.choice.mode == "required":
        raise ApiError(
            400,
            f"{turn.choice_param}: forcing a call needs constrained decoding, which is not in this version; "
            "send auto or none.",
            code="tool_choice_not_supported",
            param=turn.choice_param,
        )
    if turn.schema is not None:
        raise ApiError(
            400,
            f"{turn.schema_param}: this version answers in plain text only.",
            code="response_format_not_supported",
            param=turn.schema_param,
        )
    thinking = turn.thinking if engine.info.thinking else None
    prompt = engine.chat_prompt(turn.messages, tools=tools or None, enable_thinking=thinking)
    opened = engine.tokenizer.decode(prompt.ids[-4:]).rstrip().endswith(OPEN)
    return PreparedTurn(
        prompt=prompt,
        sampling=sampling(engine.sampling_defaults(opened)),
        opened=opened,
        schemas=schemas_of(tools) if tools else None,
        most_calls=None if turn.parallel else 1,
    )
