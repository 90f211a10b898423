"""The bodies of one chat answer, whole or as chunks of a stream."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.text.answer import AnswerEvent, AnswerParser, Reasoning
from engine.text.tool_calls import CallBegun, Text
from ignis_desktop.server.generation import Answer, Run, timings_json, total_usage, usage_json
from ignis_desktop.server.logprobs import chat_logprobs
from ignis_desktop.server.reading import Reading
from ignis_desktop.server.sse import DONE, KEEP_ALIVE, json_frame
from ignis_desktop.server.state import ServerState


@dataclass(frozen=True)
class ReplyOptions:
    """What a request asks of the form of its answer."""

    logprobs: bool = False
    include_usage: bool = False


class ChatReply:
    """Builds the bodies of one request's answers, each a choice."""

    def __init__(self, state: ServerState, model: str, options: ReplyOptions, parsers: Sequence[AnswerParser]) -> None:
        """``parsers``: one for each answer."""
        self._options = options
        self._token_bytes = state.token_bytes
        self._readings = [Reading(state.engine, parser) for parser in parsers]
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": state.fingerprint,
        }

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        return {
            **self._head,
            "choices": [self._choice(index, answer) for index, answer in enumerate(answers)],
            "usage": self._usage(answers),
            "timings": timings_json(answers[0].end) if len(answers) == 1 else None,
        }

    def _choice(self, index: int, answer: Answer) -> dict[str, Any]:
        reasoning, content = "", ""
        calls: list[dict[str, Any]] = []
        for delta in _deltas(self._readings[index].read(answer.news(), answer)):
            reasoning += delta.get("reasoning_content", "")
            content += delta.get("content", "")
            for call in delta.get("tool_calls", ()):
                if "id" in call:
                    calls.append({key: call[key] for key in ("id", "type", "function")})
                else:
                    calls[-1]["function"]["arguments"] += call["function"]["arguments"]
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            message |= {"content": content or None, "tool_calls": calls}
        return {
            "index": index,
            "message": message,
            "logprobs": chat_logprobs(answer.logprobs, self._token_bytes) if self._options.logprobs else None,
            "finish_reason": self._finish_reason(index, answer),
        }

    async def frames(self, run: Run) -> AsyncGenerator[bytes, None]:
        """Server-sent events: the roles, chunks for whatever has come since the last, why each ended, the usage."""
        self._head["object"] = "chat.completion.chunk"
        for index in range(len(run.answers)):
            yield self._chunk(index, {"role": "assistant", "content": ""})
        async with contextlib.aclosing(run.batches()) as batches:
            async for batch in batches:
                data = b"" if batch else KEEP_ALIVE
                for index in sorted({index for index, _ in batch}):
                    data += self._progress(index, run.answers[index])
                if data:
                    yield data
        if self._options.include_usage:
            yield json_frame({**self._head, "choices": [], "usage": self._usage(run.answers)})
        yield DONE

    def _progress(self, index: int, answer: Answer) -> bytes:
        """The chunks for what an answer has gained; nothing when that is nothing to show yet."""
        piece = answer.news()
        deltas = _deltas(self._readings[index].read(piece, answer))
        logprobs = chat_logprobs(piece.logprobs, self._token_bytes) if piece.logprobs else None
        if logprobs and not deltas:
            deltas = [{}]
        data = b"".join(self._chunk(index, delta, None if at else logprobs) for at, delta in enumerate(deltas))
        if answer.finished is not None:
            data += self._chunk(
                index, {}, finish=self._finish_reason(index, answer), timings=timings_json(answer.finished)
            )
        return data

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        logprobs: dict[str, Any] | None = None,
        finish: str | None = None,
        timings: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        body: dict[str, Any] = {**self._head, "choices": [choice]}
        if self._options.include_usage:
            body["usage"] = None
        if timings is not None:
            body["timings"] = timings
        return json_frame(body)

    def _usage(self, answers: Sequence[Answer]) -> dict[str, Any]:
        usage = total_usage([answer.end for answer in answers], len(answers))
        return usage_json(usage, sum(reading.reasoning_tokens for reading in self._readings))

    def _finish_reason(self, index: int, answer: Answer) -> str:
        end = self._readings[index].end(answer)
        return "stop" if end == "stop_sequence" else end


def _deltas(events: Sequence[AnswerEvent]) -> list[dict[str, Any]]:
    """OpenAI's deltas: what may stand in one is put together; a call's id and name come before its arguments."""
    deltas: list[dict[str, Any]] = []
    before: AnswerEvent | None = None
    for event in events:
        alike = type(event) is type(before) and not isinstance(event, CallBegun)
        if isinstance(event, Reasoning | Text):
            key = "reasoning_content" if isinstance(event, Reasoning) else "content"
            if alike:
                deltas[-1][key] += event.text
            elif isinstance(before, Reasoning):
                deltas[-1][key] = event.text
            else:
                deltas.append({key: event.text})
        elif isinstance(event, CallBegun):
            call = {"index": event.index, "id": f"call_{uuid.uuid4().hex[:24]}", "type": "function"}
            deltas.append({"tool_calls": [{**call, "function": {"name": event.name, "arguments": ""}}]})
        elif alike:
            deltas[-1]["tool_calls"][0]["function"]["arguments"] += event.piece
        else:
            deltas.append({"tool_calls": [{"index": event.index, "function": {"arguments": event.piece}}]})
        before = event
    return deltas
