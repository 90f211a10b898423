"""Anthropic's answer, whole or as the events of a stream."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from pydantic_core import from_json

from engine.messages import Usage
from engine.text.answer import AnswerEvent, AnswerParser, Reasoning
from engine.text.tool_calls import CallBegun, Text
from ignis_desktop.server.generation import Answer, Run
from ignis_desktop.server.reading import Reading
from ignis_desktop.server.sse import json_frame
from ignis_desktop.server.state import ServerState

STOP_REASONS = {"stop": "end_turn", "stop_sequence": "stop_sequence", "length": "max_tokens", "tool_calls": "tool_use"}


class MessageReply:
    """Builds the bodies of one request's answer."""

    def __init__(
        self, state: ServerState, model: str, parser: AnswerParser, prompt_tokens: int, *, show_thinking: bool = True
    ) -> None:
        """``show_thinking``: False leaves thinking blocks empty, as ``"display": "omitted"`` asks."""
        self._reading = Reading(state.engine, parser)
        self._blocks = _Blocks(show_thinking)
        self._prompt_tokens = prompt_tokens
        self._head = {"id": f"msg_{uuid.uuid4().hex[:24]}", "type": "message", "role": "assistant", "model": model}

    def whole(self, answer: Answer) -> dict[str, Any]:
        self._blocks.read(self._reading.read(answer.news(), answer))
        self._blocks.close()
        return {
            **self._head,
            "content": self._blocks.content,
            **self._end(answer),
            "usage": self._usage(answer.end.usage),
        }

    async def frames(self, run: Run) -> AsyncGenerator[bytes, None]:
        """Server-sent events. How much of the prompt was cached is known at the end only."""
        usage = self._usage(Usage(self._prompt_tokens, 0, 0))
        empty: dict[str, Any] = {
            **self._head,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield _frames([{"type": "message_start", "message": empty}, {"type": "ping"}])
        (answer,) = run.answers
        async with contextlib.aclosing(run.batches()) as batches:
            async for batch in batches:
                events = self._blocks.read(self._reading.read(answer.news(), answer)) if batch else [{"type": "ping"}]
                if events:
                    yield _frames(events)
        delta = {"type": "message_delta", "delta": self._end(answer), "usage": self._usage(answer.end.usage)}
        yield _frames([*self._blocks.close(), delta, {"type": "message_stop"}])

    def _end(self, answer: Answer) -> dict[str, Any]:
        end = self._reading.end(answer)
        return {
            "stop_reason": STOP_REASONS[end],
            "stop_sequence": answer.end.stop if end == "stop_sequence" else None,
        }

    def _usage(self, usage: Usage) -> dict[str, Any]:
        return {
            "input_tokens": usage.prompt_tokens - usage.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"thinking_tokens": self._reading.reasoning_tokens},
        }


class _Blocks:
    """The blocks of an answer while they grow, and the events that tell of it."""

    def __init__(self, show_thinking: bool) -> None:
        self.content: list[dict[str, Any]] = []
        self._show_thinking = show_thinking
        self._open = False
        self._pieces: list[str] = []
        """Of the newest block."""

    def read(self, events: Sequence[AnswerEvent]) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        for event in events:
            if isinstance(event, CallBegun):
                call = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": event.name, "input": {}}
                told += self._begin(call)
            elif isinstance(event, Reasoning):
                told += self._ensure({"type": "thinking", "thinking": "", "signature": ""})
                self._pieces.append(event.text)
                if self._show_thinking:
                    told.append(self._delta(type="thinking_delta", thinking=event.text))
            elif isinstance(event, Text):
                told += self._ensure({"type": "text", "text": ""})
                self._pieces.append(event.text)
                told.append(self._delta(type="text_delta", text=event.text))
            else:
                self._pieces.append(event.piece)
                told.append(self._delta(type="input_json_delta", partial_json=event.piece))
        return told

    def close(self) -> list[dict[str, Any]]:
        """The newest block is complete."""
        if not self._open:
            return []
        told: list[dict[str, Any]] = []
        block, text = self.content[-1], "".join(self._pieces)
        if block["type"] == "text":
            block["text"] = text
        elif block["type"] == "thinking":
            block["thinking"] = text if self._show_thinking else ""
            block["signature"] = _signature(text)
            told.append(self._delta(type="signature_delta", signature=block["signature"]))
        else:
            # Of a call that was cut off, what can be read of it.
            block["input"] = from_json(text, allow_partial="trailing-strings") if text else {}
        told.append({"type": "content_block_stop", "index": len(self.content) - 1})
        self._open, self._pieces = False, []
        return told

    def _ensure(self, block: dict[str, Any]) -> list[dict[str, Any]]:
        """An open block of the same type, a new one where there is none."""
        return [] if self._open and self.content[-1]["type"] == block["type"] else self._begin(block)

    def _begin(self, block: dict[str, Any]) -> list[dict[str, Any]]:
        told = self.close()
        self.content.append(block)
        self._open = True
        return [*told, {"type": "content_block_start", "index": len(self.content) - 1, "content_block": dict(block)}]

    def _delta(self, **delta: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": len(self.content) - 1, "delta": delta}


def _signature(text: str) -> str:
    """Clients ask for one and send it back. It proves nothing here, and is not looked at."""
    return base64.b64encode(hashlib.blake2b(text.encode(), digest_size=24).digest()).decode()


def _frames(events: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json_frame(event, event["type"]) for event in events)
