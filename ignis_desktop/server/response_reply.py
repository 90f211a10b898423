"""OpenAI's response, whole or as the events of a stream."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from engine.messages import EngineError, Usage
from engine.text.answer import AnswerEvent, AnswerParser, Reasoning
from engine.text.tool_calls import CallBegun, Text
from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.generation import Answer, Run
from ignis_desktop.server.reading import Reading
from ignis_desktop.server.response_items import new_id, sealed, text_of
from ignis_desktop.server.sse import KEEP_ALIVE, json_frame
from ignis_desktop.server.state import ServerState

Event = dict[str, Any]


@dataclass(frozen=True)
class ReplyForm:
    """What a request asks of the form of its answer."""

    custom: Collection[str] = ()
    """Names of tools that take a text."""
    seal: bool = False
    """Reasoning comes as ``encrypted_content`` too."""


class ResponseReply:
    """One response while it is made."""

    def __init__(self, state: ServerState, head: dict[str, Any], parser: AnswerParser, form: ReplyForm) -> None:
        """``head``: the response's fields that its request decides."""
        self.id = f"resp_{uuid.uuid4().hex}"
        self._reading = Reading(state.engine, parser)
        self._output = _Output(form)
        self._body: dict[str, Any] = {
            "id": self.id,
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "usage": None,
            **head,
        }
        self._sequence = 0
        self.cancelled = False
        """Somebody asked for its end."""

    @property
    def body(self) -> dict[str, Any]:
        """The response as it is now."""
        return {**self._body, "output": self._output.items}

    def not_kept(self) -> None:
        """It could not be stored; the answer says so."""
        self._body["store"] = False

    def whole(self, answer: Answer) -> dict[str, Any]:
        self._output.read(self._reading.read(answer.news(), answer))
        self._end(answer)
        return self.body

    async def frames(self, run: Run, save: Callable[[], Awaitable[None]]) -> AsyncGenerator[bytes, None]:
        """Server-sent events. ``save`` is called once the response is as it stays, before its last event."""
        yield self._frames([self._state("response.created"), self._state("response.in_progress")])
        (answer,) = run.answers
        try:
            async with contextlib.aclosing(run.batches()) as batches:
                async for batch in batches:
                    events = self._output.read(self._reading.read(answer.news(), answer)) if batch else []
                    if events or not batch:
                        yield self._frames(events) or KEEP_ALIVE
            events = self._end(answer)
        except (ApiError, EngineError) as error:
            events = self._failed(error if isinstance(error, ApiError) else ApiError.of(error))
        await save()
        # There is no event of its own for one that was cancelled: it has not failed, and it is not complete.
        kind = {"completed": "completed", "failed": "failed"}.get(self._body["status"], "incomplete")
        yield self._frames([*events, self._state(f"response.{kind}")])

    def _end(self, answer: Answer) -> list[Event]:
        cut = self._reading.end(answer) == "length"
        events = self._output.close("incomplete" if cut else "completed")
        self._body["status"] = "incomplete" if cut else "completed"
        self._body["incomplete_details"] = {"reason": "max_output_tokens"} if cut else None
        self._body["completed_at"] = None if cut else int(time.time())
        self._body["usage"] = _usage(answer.end.usage, self._reading.reasoning_tokens)
        return events

    def _failed(self, error: ApiError) -> list[Event]:
        events = self._output.close("incomplete")
        if self.cancelled:
            self._body["status"] = "cancelled"
        else:
            self._body["status"] = "failed"
            self._body["error"] = {"code": "server_error", "message": error.message}
        return events

    def _state(self, kind: str) -> Event:
        return {"type": kind, "response": self.body}

    def _frames(self, events: Sequence[Event]) -> bytes:
        frames = []
        for event in events:
            frames.append(json_frame({**event, "sequence_number": self._sequence}, event["type"]))
            self._sequence += 1
        return b"".join(frames)


class LiveResponse:
    """A response that streams now: what stands behind its stream, and how others reach it."""

    def __init__(self, state: ServerState, reply: ResponseReply, run: Run) -> None:
        self.reply = reply
        self._state = state
        self._run = run
        state.live_responses[reply.id] = self

    def cancel(self) -> None:
        self.reply.cancelled = True
        self._run.reader.cancel()

    def leave(self) -> None:
        """The client is gone."""
        self._run.leave()

    def close(self) -> None:
        """Nobody reads on; may be called more than once."""
        self._run.close()
        self._state.live_responses.pop(self.reply.id, None)


class _Output:
    """The items of a response while they grow, and the events that tell of it."""

    def __init__(self, form: ReplyForm) -> None:
        self.items: list[dict[str, Any]] = []
        self._form = form
        self._open = False
        self._pieces: list[str] = []
        """Of the newest item."""

    def read(self, events: Sequence[AnswerEvent]) -> list[Event]:
        told: list[Event] = []
        for event in events:
            if isinstance(event, CallBegun):
                told += self._begin(self._call(event.name))
                continue
            if isinstance(event, Reasoning):
                told += self._ensure({"type": "reasoning", "summary": [], "content": []}, "reasoning_text")
                text, kind = event.text, "response.reasoning_text.delta"
            elif isinstance(event, Text):
                told += self._ensure({"type": "message", "role": "assistant", "content": []}, "output_text")
                text, kind = event.text, "response.output_text.delta"
            else:
                text, kind = event.piece, "response.function_call_arguments.delta"
            self._pieces.append(text)
            if self.items[-1]["type"] != "custom_tool_call":  # of its text, more is known once it is whole
                told.append(self._delta(kind, text))
        return told

    def close(self, status: str = "completed") -> list[Event]:
        """The newest item is complete, or stays as it is."""
        if not self._open:
            return []
        item, text = self.items[-1], "".join(self._pieces)
        self._open, self._pieces = False, []
        item["status"] = status
        kind = item["type"]
        if kind == "message":
            told = self._part_done("response.output_text.done", _text_part(text), logprobs=[])
        elif kind == "reasoning":
            if self._form.seal:
                item["encrypted_content"] = sealed(text)
            told = self._part_done("response.reasoning_text.done", {"type": "reasoning_text", "text": text})
        elif kind == "function_call":
            item["arguments"] = text
            told = [self._event("response.function_call_arguments.done", arguments=text, name=item["name"])]
        else:
            item["input"] = text_of(text)
            told = [
                self._event("response.custom_tool_call_input.delta", delta=item["input"]),
                self._event("response.custom_tool_call_input.done", input=item["input"]),
            ]
        return [*told, {"type": "response.output_item.done", "output_index": len(self.items) - 1, "item": dict(item)}]

    def _call(self, name: str) -> dict[str, Any]:
        call = {"call_id": f"call_{uuid.uuid4().hex[:24]}", "name": name}
        if name in self._form.custom:
            return {"type": "custom_tool_call", **call, "input": ""}
        return {"type": "function_call", **call, "arguments": ""}

    def _ensure(self, item: dict[str, Any], part: str) -> list[Event]:
        """An open item of the same type with its one part, a new one where there is none."""
        if self._open and self.items[-1]["type"] == item["type"]:
            return []
        told = self._begin(item)
        empty = _text_part("") if part == "output_text" else {"type": part, "text": ""}
        return [*told, self._event("response.content_part.added", content_index=0, part=empty)]

    def _begin(self, item: dict[str, Any]) -> list[Event]:
        told = self.close()
        kind = item["type"]
        self.items.append({"id": new_id(kind), **item, "status": "in_progress"})
        self._open = True
        added = {"type": "response.output_item.added", "output_index": len(self.items) - 1}
        return [*told, {**added, "item": dict(self.items[-1])}]

    def _delta(self, kind: str, text: str) -> Event:
        if kind == "response.function_call_arguments.delta":
            return self._event(kind, delta=text)
        extra: dict[str, Any] = {"logprobs": []} if kind == "response.output_text.delta" else {}
        return self._event(kind, content_index=0, delta=text, **extra)

    def _part_done(self, kind: str, part: dict[str, Any], **extra: Any) -> list[Event]:
        self.items[-1]["content"] = [part]
        return [
            self._event(kind, content_index=0, text=part["text"], **extra),
            self._event("response.content_part.done", content_index=0, part=part),
        ]

    def _event(self, kind: str, **fields: Any) -> Event:
        index = len(self.items) - 1
        return {"type": kind, "item_id": self.items[index]["id"], "output_index": index, **fields}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage, reasoning_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.output_tokens,
    }
