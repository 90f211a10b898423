"""A busy engine, made by hand: what eight lanes did over a minute, as snapshots like those that an engine publishes.

Everything follows from a script of requests, so that a snapshot of any moment can be asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.messages import (
    PAGE_FREE,
    PAGE_KEPT,
    PAGE_PARKED,
    PAGE_SHARED,
    EngineSnapshot,
    LaneSnapshot,
    MemoryLine,
    MemoryPlan,
    RequestClass,
    RequestKind,
    ReuseSnapshot,
    WaitingSnapshot,
)

LENGTH = 60.0
"""Seconds that the script covers."""
_READ_RATE = 2600
"""Prompt tokens a second."""
_PAGE = 64

_CODER = "127.0.0.1 claude-cli/2.1"
_RUNNER = "127.0.0.1 OpenAI/Python"
_SCRIPT = "127.0.0.1 python-httpx/0.28"
_WINDOW = "window"


@dataclass(frozen=True)
class Turn:
    """One request: from ``begin`` it reads for ``read`` seconds, then writes until ``end``, unless it is parked."""

    lane: int
    begin: float
    read: float
    end: float
    request_class: RequestClass
    client: str
    label: str
    cached: int = 0
    rate: float = 9.0
    kind: RequestKind = "generate"
    parked: float | None = None
    """When it gave up its lane, for the rest of the minute."""

    @property
    def id(self) -> str:
        return f"request-{self.lane}-{self.begin:g}"

    @property
    def prompt(self) -> int:
        return self.cached + round(max(self.read, 0.05) * _READ_RATE)


def _small_ones(lane: int, begin: float, end: float, label: str) -> Iterator[Turn]:
    """Zero-token answers, one after the other."""
    at, number = begin, 0
    while at < end:
        length = 0.35 + 0.25 * ((number * 7) % 5) / 4
        yield Turn(lane, at, length, at + length, "agent", _SCRIPT, label, 2048, kind="read")
        at += length + 0.15 + 0.5 * ((number * 3) % 4) / 3
        number += 1


SCRIPT: tuple[Turn, ...] = (
    Turn(0, 3.0, 1.1, 19.0, "interactive", _WINDOW, "Why does the nightly build fail on Windows only?", 1280, 10.5),
    Turn(0, 26.5, 0.7, 41.0, "interactive", _WINDOW, "Show me the smallest change that mends it", 5312, 10.2),
    Turn(0, 47.5, 0.8, 90.0, "interactive", _WINDOW, "And write a test for the empty header case", 6080, 9.8),
    Turn(1, -8.0, 2.0, 7.5, "agent", _CODER, "You are a coding agent. Find every caller of parse_header", 9216),
    Turn(1, 8.4, 1.2, 23.0, "agent", _CODER, "tool result: 14 matches in 6 files", 13824, 8.8),
    Turn(1, 23.9, 0.9, 38.5, "agent", _CODER, "tool result: tests/test_header.py", 17408, 8.6),
    Turn(1, 39.4, 3.4, 90.0, "agent", _CODER, "tool result: pytest, 3 failed, 212 passed", 18944, 8.9),
    Turn(2, 1.0, 6.5, 31.0, "agent", _RUNNER, "Summarise the incident report and list open questions", 0, 8.2),
    Turn(2, 32.2, 0.6, 90.0, "agent", _RUNNER, "Write the summary for the status page", 16896, 8.4),
    *_small_ones(3, 0.0, 60.0, "Which line says that the payment processor is unavailable?"),
    Turn(4, -20.0, 4.0, 14.0, "agent", _CODER, "You are a reviewer. Read the diff of the scheduler", 9216, 8.1),
    Turn(4, 15.0, 5.0, 36.0, "agent", _CODER, "Compare with the previous revision", 9216, 8.3),
    Turn(4, 37.1, 2.2, 90.0, "agent", _CODER, "tool result: git diff HEAD~3 engine/schedule", 21504, 8.0),
    Turn(5, 10.0, 3.0, 90.0, "agent", _RUNNER, "Translate the release notes into Korean", 512, 8.2, parked=52.5),
    Turn(5, 52.6, 1.6, 90.0, "interactive", "192.168.0.12 Mozilla/5.0", "Where do I change the port?", 896, 9.9),
    Turn(6, 21.0, 0.5, 28.0, "interactive", _RUNNER, "Name this commit in one line", 640, 10.1),
    Turn(6, 34.0, 9.5, 50.0, "agent", _RUNNER, "Read the log of the last deployment and say what went wrong", 0, 7.9),
    Turn(6, 51.5, 16.0, 120.0, "agent", _RUNNER, "Read all of docs/ and write an index", 4096),
    Turn(7, 44.0, 1.0, 51.0, "agent", _SCRIPT, "Extract names and amounts as records", 3072, 9.0),
)

_WAITING: tuple[WaitingSnapshot, ...] = (
    WaitingSnapshot("wait-0", "interactive", _WINDOW, "Give me three tips for clear e-mails", "generate", 212, 0.3),
    WaitingSnapshot(
        "wait-1", "agent", _RUNNER, "Read the whole repository and draw its architecture", "generate", 98304, 31.4, True
    ),
    WaitingSnapshot("wait-2", "agent", _CODER, "tool result: cargo test", "generate", 22784, 12.8),
    WaitingSnapshot("wait-3", "agent", _CODER, "tool result: ls engine/memory", "generate", 19840, 9.1),
    WaitingSnapshot("wait-4", "agent", _SCRIPT, "", "read", 2310, 4.6),
    WaitingSnapshot("wait-5", "agent", _SCRIPT, "", "read", 2298, 4.1),
    WaitingSnapshot("wait-6", "agent", _RUNNER, "Is this ticket a duplicate of an older one?", "generate", 4417, 1.7),
)

PLAN = MemoryPlan(
    "host",
    6 << 30,
    5_368_709_120,
    (
        MemoryLine("weights", 268_435_456, "311 tensors as they are stored"),
        MemoryLine("kv_pool", 4_831_838_208, "1,024 pages of 64 tokens"),
        MemoryLine("lane_state", 268_435_456, "8 lanes and 16 kept states"),
    ),
)


def busy(at: float = LENGTH, *, start: float = 0.0, lanes: int = 8, pages: int = 1024) -> EngineSnapshot:
    """The engine ``at`` seconds into the script; ``start`` is the script's beginning on the monotonic clock."""
    running = {turn.lane % lanes: turn for turn in SCRIPT if turn.begin <= at < (turn.parked or turn.end)}
    parked = [turn for turn in SCRIPT if turn.parked is not None and at >= turn.parked]
    shown = tuple(_lane(running[i], at, i) if i in running else LaneSnapshot(i) for i in range(lanes))
    page_map = _page_map(shown, parked, at, pages)
    waiting = _WAITING if at >= LENGTH - 5 else ()
    decoding = [lane for lane in shown if lane.state == "decode"]
    return EngineSnapshot(
        state="ready",
        model="Qwen3.8 27B",
        model_id="qwen3.8-27b",
        device="CPU, bfloat16, 2 threads",
        context_length=131_072,
        lanes=shown,
        parked=tuple(_parked(turn, at) for turn in parked),
        waiting=waiting,
        queued_interactive=sum(one.request_class == "interactive" for one in waiting),
        queued_agent=sum(one.request_class == "agent" for one in waiting),
        memory_plan=PLAN,
        pages_total=pages,
        pages_free=page_map.count(PAGE_FREE),
        page_map=page_map,
        retained=9,
        reuse=ReuseSnapshot(
            kept=9,
            kept_pages=page_map.count(PAGE_KEPT),
            hits=118 + round(at * 1.4),
            misses=17,
            cached_tokens=1_214_000 + round(at * 4100),
            evictions=22,
            spills=14,
            restores=6,
            parks=3 + len(parked),
            resumes=3,
            host_total=2 << 30,
            host_used=round(0.62 * (2 << 30)),
        ),
        decode_tokens_per_second=sum(lane.tokens_per_second for lane in decoding),
        prefill_tokens_per_second=_READ_RATE * sum(lane.state == "prefill" for lane in shown),
        rounds=round(4000 + at * 9),
        tokens_generated=round(30_000 + at * 60),
        tokens_prefilled=round(400_000 + at * 900),
        requests_finished=131 + round(at),
        requests_failed=1,
        requests_cancelled=4,
        resident_bytes=5_583_457_484,
        time=start + at,
    )


def idle(at: float = LENGTH, *, start: float = 0.0, lanes: int = 8, pages: int = 1024) -> EngineSnapshot:
    """The same engine with nothing to do but to keep what it has."""
    last = busy(at, start=start, lanes=lanes, pages=pages)
    left = bytes(code if code in (PAGE_SHARED, PAGE_KEPT) else PAGE_FREE for code in last.page_map)
    return replace(
        last,
        lanes=tuple(LaneSnapshot(i) for i in range(lanes)),
        parked=(),
        waiting=(),
        queued_interactive=0,
        queued_agent=0,
        page_map=left,
        pages_free=left.count(PAGE_FREE),
        decode_tokens_per_second=0.0,
        prefill_tokens_per_second=0.0,
    )


def minute(*, start: float = 0.0, rate: float = 30.0, lanes: int = 8, pages: int = 1024) -> Iterator[EngineSnapshot]:
    """The whole script, ``rate`` snapshots a second."""
    for step in range(round(LENGTH * rate) + 1):
        yield busy(step / rate, start=start, lanes=lanes, pages=pages)


def _lane(turn: Turn, at: float, lane: int) -> LaneSnapshot:
    seconds = at - turn.begin
    reading = seconds < turn.read
    prefilled = turn.prompt if not reading else turn.cached + round(seconds * _READ_RATE)
    generated = 0 if reading else 1 + int((seconds - turn.read) * turn.rate)
    return LaneSnapshot(
        lane=lane,
        state="prefill" if reading else "decode",
        request_id=turn.id,
        request_class=turn.request_class,
        client=turn.client,
        label=turn.label,
        kind=turn.kind,
        prompt_tokens=turn.prompt,
        prefilled=prefilled,
        generated=generated,
        context=prefilled + generated,
        tokens_per_second=0.0 if reading else turn.rate + 0.4 * ((int(seconds * 3) * 13) % 7 - 3) / 3,
        seconds=seconds,
        cached=turn.cached,
        pages=-(-(turn.prompt + 1024) // _PAGE),
    )


def _parked(turn: Turn, at: float) -> LaneSnapshot:
    assert turn.parked is not None
    generated = int((turn.parked - turn.begin - turn.read) * turn.rate)
    return LaneSnapshot(
        lane=turn.lane,
        state="parked",
        request_id=turn.id,
        request_class=turn.request_class,
        client=turn.client,
        label=turn.label,
        kind=turn.kind,
        prompt_tokens=turn.prompt,
        prefilled=turn.prompt,
        generated=generated,
        context=turn.prompt + generated,
        seconds=at - turn.begin,
        cached=turn.cached,
        pages=-(-(turn.prompt + 1024) // _PAGE),
    )


def _page_map(lanes: tuple[LaneSnapshot, ...], parked: list[Turn], at: float, pages: int) -> bytes:
    """Shared prefixes and kept states first, as the pool gives the lowest free pages; then lane after lane."""
    # Whatever the size of the pool, the requests of the script fill most of it.
    scale = pages / 2900
    runs = [(PAGE_SHARED, 300), (PAGE_KEPT, 140), *((lane.lane + 1, lane.pages) for lane in lanes if lane.pages)]
    runs.insert(3, (PAGE_FREE, 70))
    runs.insert(5, (PAGE_KEPT, 90))
    runs.insert(6, (PAGE_FREE, 30))
    runs += [(PAGE_PARKED, -(-(turn.prompt + 1024) // _PAGE)) for turn in parked]
    found = b"".join(bytes([code]) * max(1, round(count * scale)) for code, count in runs)
    return found[:pages].ljust(pages, bytes([PAGE_FREE]))
