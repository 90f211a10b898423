"""The product's own server over the loaded engine, on real sockets: what HTTP adds, and every kind of answer."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import random
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psutil

from ignis_desktop.bench.child import usage
from ignis_desktop.bench.client import LoadClient
from ignis_desktop.bench.cpu import material
from ignis_desktop.bench.gpu import door, gap
from ignis_desktop.bench.gpu.acts import SCHEMA, noise
from ignis_desktop.bench.gpu.watched import WatchedEngine
from ignis_desktop.bench.process import SERVER_THREADS, Child
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.bench.stats import Spread, median
from ignis_desktop.cli.engine_process import server_running
from ignis_desktop.cli.errors import CommandError

TITLE = "the server over HTTP beside its engine and the bare rounds"
PROMPT = 512
REPEATS = 3
TOKEN_MS, LEAST_TOKENS = 0.5, 64
"""Milliseconds of the server's threads a token, and tokens of an answer from which on that is told: the prompt's share
is in it, and the system counts in hundredths of a second."""
HEADERS = ("streams", "bare", "engine", "server tokens/s", "of the engine", "ttft p50", "p95 ms", "gap p50", "p95 ms")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "light",
            "description": "Switches a light.",
            "parameters": {
                "type": "object",
                "properties": {"room": {"enum": ["kitchen", "hall"]}, "on": {"type": "boolean"}},
                "required": ["room", "on"],
                "additionalProperties": False,
            },
        },
    }
]


@dataclass
class Streams:
    """So many streams at once, several times."""

    count: int
    rates: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    token_ms: list[float] = field(default_factory=list)
    """Processor time of the server's threads a token."""
    whole_ms: list[float] = field(default_factory=list)
    """Of the whole process, the engine's thread included."""

    def json(self) -> dict[str, Any]:
        first, gaps = Spread.of(self.first), Spread.of(self.gaps)
        return {
            "streams": self.count,
            "tokens_per_second": [round(rate, 2) for rate in self.rates],
            "ttft_ms": first.json(1e3) if first else None,
            "inter_token_ms": gaps.json(1e3) if gaps else None,
            "server_ms_per_token": [round(cost, 4) for cost in self.token_ms],
            "process_ms_per_token": [round(cost, 4) for cost in self.whole_ms],
        }


def run(engine: WatchedEngine, *, seconds: float, seed: int, say: Callable[[str], None]) -> ScenarioReport:
    """Raises ``CommandError`` when the server cannot listen or a stream is not answered."""
    from ignis_desktop.server.settings import Settings

    began = time.monotonic()
    key = secrets.token_urlsafe(32)
    lanes = len(engine.snapshot().lanes)
    counts = list(dict.fromkeys((1, lanes)))
    found = {count: Streams(count) for count in counts}
    with server_running(engine, Settings(port=0, api_key=key, advertise=False, max_body_bytes=1 << 28)) as server:
        with Child("ignis_desktop.bench.gpu.generator", json.dumps({"url": server.url, "key": key})) as generator:
            generator.read()
            context, tokens = _sizes(engine, lanes, seconds)
            for turn in range(REPEATS + 1):  # the first one warms up
                for count in counts:
                    say(f"serve: {count} streams, {turn} of {REPEATS}")
                    one = _streams(generator, count, context, tokens if turn else min(tokens, 16), seed + turn)
                    if turn and not one["tokens_per_second"]:
                        raise CommandError(f"An answer of {tokens} tokens had no text, or all of it in one piece.")
                    if turn:
                        _add(found[count], one)
        say("serve: tools, a schema, decide, screens")
        answers = asyncio.run(_answers(server.url, key, engine))
    report = ScenarioReport("serve", TITLE, time.monotonic() - began)
    rows: list[Sequence[str]] = []
    for count in counts:
        say(f"serve: the engine alone, {count} lanes")
        beside = gap.measure(engine, count, context, tokens, say)
        rows.append(_row(found[count], beside))
        report.facts.setdefault("streams", []).append({**found[count].json(), "beside": beside.json()})
    report.tables.append((HEADERS, rows))
    report.facts |= {"prompt_tokens": context, "answer_tokens": tokens, "answers": answers}
    report.verdicts += [_cost(found[count], tokens) for count in counts]
    report.notes.append(f"prompts of {context} tokens, answers of {tokens}")
    report.notes += [
        f"all threads of the process: {median(s.whole_ms):.2f} ms a token with {s.count} streams"
        for s in found.values()
        if s.whole_ms
    ]
    report.verdicts += [Verdict(name, fault or "answered", "answered", not fault) for name, fault in answers.items()]
    return report


def _sizes(engine: WatchedEngine, lanes: int, seconds: float) -> tuple[int, int]:
    """(prompt, answer): an eighth of the time for each turn."""
    context = engine.info.context_length
    prompt = max(64, min(PROMPT, context // 4))
    pace = door.round_seconds(engine, lanes, min(32, context // 8), 6, "pace")
    # A busy reader gets several tokens in one piece; a rate needs two pieces of every answer.
    return prompt, min(512, context - prompt - 32, max(64, int(seconds / 10 / max(pace, 1e-4))))


def _streams(generator: Child, count: int, prompt: int, tokens: int, seed: int) -> dict[str, Any]:
    before = _used()
    answer = generator.call(do="streams", count=count, prompt=prompt, tokens=tokens, seed=seed)
    after = _used()
    if answer["errors"]:
        raise CommandError(f"A stream was not answered: {answer['errors'][0]}")
    if before is None or after is None:
        return answer
    own = sum(after["thread_seconds"].get(n, 0.0) - before["thread_seconds"].get(n, 0.0) for n in SERVER_THREADS)
    spent = after["processor_seconds"] - before["processor_seconds"]
    return {**answer, "token_ms": 1e3 * own / answer["tokens"], "whole_ms": 1e3 * spent / answer["tokens"]}


def _used() -> dict[str, Any] | None:
    """What this process has used; None on a system that does not tell."""
    try:
        return usage()
    except (psutil.Error, OSError, NotImplementedError):
        return None


def _add(streams: Streams, one: dict[str, Any]) -> None:
    streams.rates.append(one["tokens_per_second"])
    streams.first += one["first_seconds"]
    streams.gaps += one["gaps"]
    if "token_ms" in one:
        streams.token_ms.append(one["token_ms"])
        streams.whole_ms.append(one["whole_ms"])


def _row(streams: Streams, beside: gap.Gap) -> list[str]:
    bare, engine = (beside.lanes / each * 1e3 for each in (beside.bare, beside.engine))
    rate = median(streams.rates)
    first, gaps = Spread.of(streams.first), Spread.of(streams.gaps)
    times = [value * 1e3 for spread in (first, gaps) if spread for value in (spread.p50, spread.p95)]
    return [
        str(streams.count),
        f"{bare:,.1f}",
        f"{engine:,.1f}",
        f"{rate:,.1f}",
        f"{rate / engine:.1%}",
        *(f"{value:,.1f}" for value in times),
    ]


def _cost(streams: Streams, tokens: int) -> Verdict:
    """Of the server's own threads."""
    cost = median(streams.token_ms) if streams.token_ms else None
    judged = cost is not None and streams.count > 1 and tokens >= LEAST_TOKENS
    why = "the system does not tell" if cost is None else "too few tokens for the system's clock"
    return Verdict(
        f"server's processor time a streamed token, {streams.count} streams",
        "-" if cost is None else f"{cost:.3f} ms",
        f"≤ {TOKEN_MS:g} ms",
        cost is not None and cost <= TOKEN_MS if judged else None,
        "" if judged else why,
    )


# --- answers of every kind -----------------------------------------------------------------------------------


async def _answers(url: str, key: str, engine: WatchedEngine) -> dict[str, str]:
    """What was asked → what is wrong with its answer, "" for nothing."""
    found: dict[str, str] = {}
    async with LoadClient(url, key) as client:
        asks: dict[str, Callable[[LoadClient], Coroutine[Any, Any, None]]] = {
            "a chat with tools": _tools,
            "an answer held to a JSON schema": _schema,
            "decide": partial(_decide, locates=engine.info.locate),
            **({"a picture in a chat": _picture} if engine.info.vision else {}),
            **({"a screen and points on it": _screen} if engine.info.point else {}),
        }
        for name, ask in asks.items():
            try:
                await ask(client)
            except Exception as fault:  # the other answers are worth having
                found[name] = f"{type(fault).__name__}: {fault}"
            else:
                found[name] = ""
    return found


async def _tools(client: LoadClient) -> None:
    body = {"messages": _user("Light in the hall, please."), "tools": TOOLS, "tool_choice": "required", "seed": 1}
    answer = await client.post("/v1/chat/completions", {**body, "parallel_tool_calls": False, "max_tokens": 400})
    (choice,) = answer["choices"]
    call = choice["message"]["tool_calls"][0]["function"]
    given = json.loads(call["arguments"])
    _require(call["name"] == "light" and given["room"] in ("kitchen", "hall") and given["on"] in (True, False), given)


async def _schema(client: LoadClient) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "thing", "strict": True, "schema": SCHEMA}}
    body = {"messages": _user("Name a thing."), "response_format": form, "max_tokens": 400, "seed": 1}
    answer = await client.post("/v1/chat/completions", body)
    found = json.loads(answer["choices"][0]["message"]["content"])
    _require(set(found) == {"kind", "known", "parts"} and 2 <= len(found["parts"]) <= 4, found)


async def _decide(client: LoadClient, *, locates: bool) -> None:
    questions: dict[str, Any] = {
        "late": {"type": "noul", "instructions": "Is the disk full?"},
        "kind": {"type": "choice", "instructions": "What is it?", "options": ["a log", "a poem"]},
    }
    if locates:
        questions["line"] = {"type": "locate", "instructions": "the line about the disk"}
    answer = await client.post("/v1/decide", {"state": material.log(6), "questions": questions})
    _require(set(answer["answers"]) == set(questions), answer)
    faults = [given for given in answer["answers"].values() if "error" in given]
    _require(not faults, faults)
    _require(answer["usage"]["output_tokens"] == 0, answer["usage"])


async def _picture(client: LoadClient) -> None:
    parts = [{"type": "image_url", "image_url": {"url": _uri()}}, {"type": "text", "text": "What is it?"}]
    body = {"messages": [{"role": "user", "content": parts}], "max_tokens": 8, "ignore_eos": True}
    answer = await client.post("/v1/chat/completions", body)
    _require(answer["usage"]["completion_tokens"] == 8, answer["usage"])


async def _screen(client: LoadClient) -> None:
    screen = await client.post("/v1/screens", {"image": _uri()})
    asked = {"questions": ["the Save button", "the search field"], "box": True}
    answer = await client.post(f"/v1/screens/{screen['id']}/point", asked)
    for point in answer["answers"]:
        _require("error" not in point and len(point["box"]) == 4, point)


def _user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _uri() -> str:
    data = io.BytesIO()
    noise(random.Random("screen"), 640, 400).save(data, "PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def _require(holds: bool, what: object) -> None:
    if not holds:
        raise CommandError(f"the answer is not as asked: {str(what)[:200]}")
