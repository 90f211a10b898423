"""Recorded traffic: when requests came, how long they were and what they shared, without a word of what they said.

A trace is JSON lines. The first describes it: ``{"format": 1, "origin", "model", "requests", "seconds",
"prompt_tokens", "output_tokens"}``. Each other line is a request, in the order of arrival::

    {"at": 3.21, "class": "agent", "client": 2, "new": {"7": ["user", 231]}, "messages": [0, 5, 6, 7],
     "prompt": 893, "output": 48}

``at`` is seconds after the first request, ``client`` numbers who asked, ``prompt`` and ``output`` are tokens. Messages
are numbered; ``new`` gives role and tokens of those that stand in no earlier line. Two requests whose ``messages``
begin with the same numbers began with the same texts: that is the whole prefix structure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ignis_desktop.cli.errors import CommandError

FORMAT = 1
ROLES = ("system", "user", "assistant", "tool")


def chat_message(role: str, text: str) -> dict[str, str]:
    """A message as it is sent. A tool's result without the call that it answers, which traces do not keep, goes into a
    user's turn, in the tags that chat templates put around results: so it has as many tokens."""
    if role == "tool":
        return {"role": "user", "content": f"<tool_response>\n{text}\n</tool_response>"}
    return {"role": role, "content": text}


@dataclass(frozen=True)
class TraceRequest:
    """One request of a trace."""

    at: float
    request_class: str
    client: int
    messages: tuple[int, ...]
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Trace:
    origin: str
    model: str
    messages: dict[int, tuple[str, int]]
    """Number → (role, tokens)."""
    requests: tuple[TraceRequest, ...]

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt with its answer."""
        return max(request.prompt_tokens + request.output_tokens for request in self.requests)

    @property
    def reusable_share(self) -> float:
        """Part of all message tokens that an earlier request's prompt began with."""
        seen: set[tuple[int, ...]] = set()
        total = shared = 0
        for request in self.requests:
            for end in range(1, len(request.messages) + 1):
                tokens = self.messages[request.messages[end - 1]][1]
                total += tokens
                shared += tokens * (request.messages[:end] in seen)
            seen.update(request.messages[:end] for end in range(1, len(request.messages) + 1))
        return shared / total if total else 0.0


def write_trace(path: Path, trace: Trace) -> None:
    """Raises ``OSError``."""
    first: dict[str, Any] = {
        "format": FORMAT,
        "origin": trace.origin,
        "model": trace.model,
        "requests": len(trace.requests),
        "seconds": round(trace.requests[-1].at, 1) if trace.requests else 0.0,
        "prompt_tokens": sum(request.prompt_tokens for request in trace.requests),
        "output_tokens": sum(request.output_tokens for request in trace.requests),
    }
    lines: list[dict[str, Any]] = [first]
    told: set[int] = set()
    for request in trace.requests:
        new = {number: trace.messages[number] for number in request.messages if number not in told}
        told.update(new)
        lines.append(
            {
                "at": round(request.at, 3),
                "class": request.request_class,
                "client": request.client,
                **({"new": new} if new else {}),
                "messages": request.messages,
                "prompt": request.prompt_tokens,
                "output": request.output_tokens,
            }
        )
    text = "\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
    path.write_text(text + "\n", encoding="utf-8")


def read_trace(path: Path) -> Trace:
    """Raises ``CommandError`` naming the line that cannot be used."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise CommandError(f"{path} cannot be read: {fault}.") from fault
    messages: dict[int, tuple[str, int]] = {}
    requests: list[TraceRequest] = []
    head: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
            if number == 1:
                head = value
                if head["format"] != FORMAT:
                    raise CommandError(f"{path} is a trace of format {head['format']}; this program reads {FORMAT}.")
                continue
            requests.append(_request(value, messages, requests))
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise CommandError(f"{path}, line {number}: no request of a trace ({fault!r}).") from fault
    if not requests:
        raise CommandError(f"{path} holds no requests.")
    return Trace(str(head.get("origin", "")), str(head.get("model", "")), messages, tuple(requests))


def _request(
    value: dict[str, Any], messages: dict[int, tuple[str, int]], before: Sequence[TraceRequest]
) -> TraceRequest:
    for name, (role, tokens) in value.get("new", {}).items():
        if role not in ROLES or not isinstance(tokens, int) or tokens < 0:
            raise ValueError(f"message {name} has role {role!r} and {tokens!r} tokens")
        messages[int(name)] = role, tokens
    request = TraceRequest(
        at=float(value["at"]),
        request_class=str(value["class"]),
        client=int(value["client"]),
        messages=tuple(value["messages"]),
        prompt_tokens=int(value["prompt"]),
        output_tokens=int(value["output"]),
    )
    if not request.messages or request.output_tokens < 1:
        raise ValueError("it has no messages or no output")
    if missing := [number for number in request.messages if number not in messages]:
        raise ValueError(f"message {missing[0]} is not described")
    if before and request.at < before[-1].at:
        raise ValueError("it came before the line above")
    return request
