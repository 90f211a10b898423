"""The CPU table, row by row."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from ignis_desktop.bench.cpu.rows import Row
from ignis_desktop.bench.cpu.served import served_rows
from ignis_desktop.bench.machine import machine
from ignis_desktop.bench.process import Child
from ignis_desktop.bench.stats import median
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

PROMPT, PREFILL = 64, 1024
"""Tokens of the prompts before decoding and of the one that is read."""
WRITTEN = 48
PEER_WRITTEN, PEER_BATCH_WRITTEN = 16, 8
"""The peer is slower: fewer tokens give its rate as well."""
COMPARED = 12
"""Greedy tokens that both must agree on where float32 computes."""
DECODE_RATIO, PREFILL_RATIO, LANES_RATIO = 3.0, 1.5, 3.0
FIRST_SECONDS, NEXT_SECONDS = 6.0, 0.3
LOG_CHARACTERS = 4_000_000
FOLD_SECONDS, LOG_FIRST_SECONDS, LOG_NEXT_SECONDS = 0.5, 10.0, 3.0
EIGHT = 8

Say = Callable[[str], None]


def run_cpu(options: EngineOptions, *, peer: bool, repeats: int, say: Say) -> dict[str, Any]:
    """Measure everything; returns machine, model and rows (``Row`` objects under "rows").

    Args:
        peer: measure transformers beside; without it installed the result says so.
        repeats: of every measure; medians count.

    Raises:
        CommandError: the model cannot be loaded, or a measurement cannot be made.
    """
    options = replace(options, device="cpu")
    head = machine()
    notes = []
    if peer and importlib.util.find_spec("transformers") is None:
        peer = False
        notes.append("transformers is not installed, so there is no peer: pip install transformers")
    say("loading the engine")
    with Child("ignis_desktop.bench.cpu.engine_worker", json.dumps(asdict(options))) as engine:
        about = engine.read()
        with _peer(options, about, say) if peer else contextlib.nullcontext() as other:
            rows = _compared_rows(engine, other, about, repeats, say)
        rows += _screen_rows(engine, about, repeats, say)
        rows += _log_rows(engine, about, say)
    rows += served_rows(options, repeats, say)
    return {"kind": "cpu", "machine": head, "engine": about, "notes": notes, "rows": rows}


@contextlib.contextmanager
def _peer(options: EngineOptions, about: dict[str, Any], say: Say) -> Iterator[Child]:
    say("loading transformers")
    given = {"model": options.model, "dtype": about["dtype"], "threads": about["threads"]}
    with Child("ignis_desktop.bench.cpu.peer_worker", json.dumps(given)) as child:
        child.read()
        yield child


def _compared_rows(engine: Child, peer: Child | None, about: dict[str, Any], repeats: int, say: Say) -> list[Row]:
    """Decoding and prefill, engine and peer in turn."""
    seeds = iter(range(1_000_000))

    def prompts(count: int, tokens: int) -> list[list[int]]:
        tokens = min(tokens, about["context"] // 2)
        return [engine.call(do="prompt", seed=next(seeds), tokens=tokens)["ids"] for _ in range(count)]

    agreed = _check_peer(engine, peer, prompts(1, PROMPT), about) if peer is not None else ""
    one, many = _Pair(), _Pair()
    reading = _Pair()
    lanes = min(EIGHT, about["lanes"])
    prefill = min(PREFILL, about["context"] // 2)
    engine.call(do="decode", prompts=prompts(lanes, PROMPT), tokens=4)  # first touch of every buffer
    for turn in range(1, repeats + 1):
        for pair, count, tokens, peer_tokens in (
            (one, 1, WRITTEN, PEER_WRITTEN),
            (many, lanes, WRITTEN, PEER_BATCH_WRITTEN),
        ):
            say(f"decoding, {count} at once, {turn} of {repeats}")
            asked = prompts(count, PROMPT)
            pair.mine.append(engine.call(do="decode", prompts=asked, tokens=tokens)["tokens_per_second"])
            if peer is not None:
                pair.other.append(peer.call(do="decode", prompts=asked, tokens=peer_tokens)["tokens_per_second"])
        say(f"prefill, {turn} of {repeats}")
        (ids,) = prompts(1, PREFILL)
        reading.mine.append(len(ids) / engine.call(do="prefill", ids=ids)["seconds"])
        if peer is not None:
            reading.other.append(len(ids) / peer.call(do="prefill", ids=ids)["seconds"])
    gain = median(many.mine) / median(one.mine)
    return [
        one.row("decode_1", "decode, 1 lane", DECODE_RATIO, agreed),
        many.row("decode_8", f"decode, {lanes} lanes", DECODE_RATIO),
        Row(
            "lanes",
            f"{lanes} lanes against one",
            f"{gain:.2f} ×",
            f"≥ {LANES_RATIO:g} ×",
            gain >= LANES_RATIO if lanes == EIGHT else None,
        ),
        reading.row("prefill", f"prefill, {prefill:,} tokens", PREFILL_RATIO),
    ]


class _Pair:
    """Tokens a second of the engine and of the peer, turn by turn."""

    def __init__(self) -> None:
        self.mine: list[float] = []
        self.other: list[float] = []

    def row(self, key: str, name: str, target: float, note: str = "") -> Row:
        ratio = median(self.mine) / median(self.other) if self.other else None
        return Row(
            key,
            name,
            f"{median(self.mine):.1f} tokens/s",
            f"≥ {target:g} × transformers",
            None if ratio is None else ratio >= target,
            f"{median(self.other):.1f} tokens/s" if self.other else "",
            ratio,
            self.mine,
            self.other,
            note,
        )


def _check_peer(engine: Child, peer: Child, prompts: list[list[int]], about: dict[str, Any]) -> str:
    """Both must write the same: a peer with other weights would be no peer. Raises ``CommandError`` otherwise.

    In bfloat16 roundings differ, so only the number of equal tokens is told.
    """
    mine = engine.call(do="decode", prompts=prompts, tokens=COMPARED)["ids"][0]
    other = peer.call(do="decode", prompts=prompts, tokens=COMPARED)["ids"][0]
    same = next((i for i, (a, b) in enumerate(zip(mine, other, strict=True)) if a != b), COMPARED)
    if about["dtype"] == "float32" and same < COMPARED:
        raise CommandError(f"transformers writes another text after {same} tokens; its figures would mean nothing.")
    return f"both write the same {same} of {COMPARED} greedy tokens first, in {about['dtype']}"


def _screen_rows(engine: Child, about: dict[str, Any], repeats: int, say: Say) -> list[Row]:
    if not about["point"]:
        return []
    first, following = [], []
    for turn in range(1, repeats + 1):
        say(f"screenshot, {turn} of {repeats}")
        answer = engine.call(do="screen", seed=turn)
        first.append(answer["first_seconds"])
        following.append(answer["next_seconds"])
    return [
        seconds_row("screen_first", "screenshot 1920×1080, first question", first, FIRST_SECONDS),
        seconds_row("screen_next", "screenshot 1920×1080, next question", following, NEXT_SECONDS),
    ]


def _log_rows(engine: Child, about: dict[str, Any], say: Say) -> list[Row]:
    """A log of 4 MB, once the program folds logs: without that it would be read word by word for many minutes."""
    if not about["locate"]:
        return []
    if not engine.call(do="folds")["folds"]:
        wait = "comes with folding"
        return [
            Row("fold", "fold of a 4 MB log", wait, f"≤ {FOLD_SECONDS:g} s"),
            Row("log_first", "locate on it, first question", wait, f"≤ {LOG_FIRST_SECONDS:g} s"),
            Row("log_next", "locate on it, next question", wait, f"≤ {LOG_NEXT_SECONDS:g} s"),
        ]
    say("a log of 4 MB")
    answer = engine.call(do="log", characters=LOG_CHARACTERS)
    size = f"{answer['characters'] / 1e6:.1f} MB"
    return [
        seconds_row("fold", f"fold of a log of {size}", [answer["fold_seconds"]], FOLD_SECONDS),
        seconds_row("log_first", "locate on it, first question", [answer["first_seconds"]], LOG_FIRST_SECONDS),
        seconds_row("log_next", "locate on it, next question", [answer["next_seconds"]], LOG_NEXT_SECONDS),
    ]


def seconds_row(key: str, name: str, samples: list[float], limit: float) -> Row:
    middle = median(samples)
    return Row(key, name, f"{middle:.2f} s", f"≤ {limit:g} s", middle <= limit, samples=samples)
