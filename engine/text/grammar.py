"""Grammars of whole answers: reasoning, then JSON of a schema or calls of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.text.call_grammar import CallForm, calls
from engine.text.lark import Rules, json_value, literal
from engine.text.thinking import CLOSE
from engine.text.tokenizer import Tokenizer

_GAP = r"/[ \n]{0,4}/"


def answer_grammar(
    tokenizer: Tokenizer,
    *,
    schema: Mapping[str, Any] | None = None,
    tools: Mapping[str, Mapping[str, Any]] | None = None,
    form: CallForm = "json",
    parallel: bool = True,
    opened: bool = False,
) -> str:
    """The grammar of an answer that is JSON of ``schema``, or calls of ``tools``, or either where both are given.

    Args:
        tools: JSON schemas of the parameters by the tools' names.
        form: how the model writes calls.
        parallel: whether there may be several calls.
        opened: the prompt opened a reasoning block, which comes first.

    Raises:
        RequestError: ``form`` cannot express a tool's schema.
    """
    rules = Rules()

    def tag(text: str) -> str:
        """Added tokens are no text to a grammar."""
        token = tokenizer.token_id(text) if text in tokenizer.added_tokens else None
        return literal(text) if token is None else f"<[{token}]>"

    bodies = [] if schema is None else [rules.rule(json_value(schema))]
    if tools:
        bodies.append(calls(rules, tag, tools, form, parallel=parallel))
    body = rules.rule(" | ".join(bodies))
    if not opened:
        return rules.text(body)
    return rules.text(f"{_reasoning(rules, tag(CLOSE))} {rules.terminal(_GAP)} {body}")


def _reasoning(rules: Rules, close: str) -> str:
    """Any text up to the tag that closes it."""
    spelled = CLOSE.replace("/", r"\/")
    if close == literal(CLOSE):
        return rules.rule(f"/(?s:.*){spelled}/", lazy=True)
    return rules.rule(f"{rules.terminal(f'/(?s:.*)/ & ~/(?s:.*){spelled}(?s:.*)/')} {close}")
