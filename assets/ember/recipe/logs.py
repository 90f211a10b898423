"""Logs with questions: events of ``written/events`` in real line formats, with near-duplicates that differ in a digit.

A document is a list of lines and questions, each with the index of the line that answers or None when none does.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from .values import SERVICES, VALUE_SLOTS, Values
from .wordings import Thesaurus, reworded
from .written import rows

if TYPE_CHECKING:
    from .retrieval import Pairs

NEAR = 0.5
"""Share of the questions without an answer that share names or words with a line that is there."""
SLOT = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Event:
    """One kind of event; ``slots`` are the names that stand in its message."""

    level: str
    area: str
    message: str
    questions: tuple[str, ...]

    @property
    def slots(self) -> frozenset[str]:
        return frozenset(SLOT.findall(self.message))


@dataclass
class Document:
    """Lines of evidence and questions about them; a question's line is None when no line answers it."""

    lines: list[str]
    questions: list[tuple[str, int | None]] = field(default_factory=list)


@lru_cache
def events() -> tuple[Event, ...]:
    """All events of ``written/events``."""
    split = [row.split(" | ") for row in rows("events") if not row.startswith("!")]
    return tuple(
        Event(level.strip(), area.strip(), message.strip(), tuple(q.strip() for q in questions.split(";")))
        for level, area, message, questions in split
    )


@lru_cache
def areas() -> dict[str, str]:
    """Area -> what it is called, from the lines ``!area | name | description`` of the same files."""
    split = [row.split(" | ") for row in rows("events") if row.startswith("!area | ")]
    return {area.strip(): description.strip() for _, area, description in split}


@dataclass
class Line:
    """What a format prints: ``when`` in epoch seconds with milliseconds in ``ms``."""

    when: int
    ms: int
    host: str
    service: str
    pid: int
    level: str
    message: str

    def clock(self, pattern: str) -> str:
        return time.strftime(pattern, time.gmtime(self.when))


def _json(line: Line) -> str:
    return json.dumps(
        {"ts": line.clock("%Y-%m-%dT%H:%M:%SZ"), "level": line.level, "service": line.service, "msg": line.message}
    )


FORMATS: dict[str, Callable[[Line], str]] = {
    "syslog": lambda s: f"{s.clock('%b %e %H:%M:%S')} {s.host} {s.service}[{s.pid}]: {s.message}",
    "rfc5424": lambda s: f"{s.clock('%Y-%m-%dT%H:%M:%S')}.{s.ms:03d}+00:00 {s.host} {s.service}[{s.pid}]: {s.message}",
    "iso": lambda s: f"{s.clock('%Y-%m-%d %H:%M:%S')},{s.ms:03d} {s.level.upper()} {s.service} - {s.message}",
    "bracket": lambda s: f"[{s.clock('%Y-%m-%d %H:%M:%S')}] [{s.level}] {s.message}",
    "json": _json,
    "logfmt": lambda s: f'time={s.clock("%Y-%m-%dT%H:%M:%SZ")} level={s.level} svc={s.service} msg="{s.message}"',
    "klog": lambda s: (
        f"{s.level[0].upper()}{s.clock('%m%d %H:%M:%S')}.{s.ms:03d}{s.pid % 1000:03d} {s.pid:7d} "
        f"{s.service}.go:{s.pid % 900}] {s.message}"
    ),
    "log4j": lambda s: (
        f"{s.clock('%H:%M:%S')},{s.ms:03d} {s.level.upper():5s} [{s.service}-{s.pid % 16}] "
        f"com.acme.{s.service.title().replace('-', '')}: {s.message}"
    ),
    "python": lambda s: f"{s.level.upper()}:{s.service}:{s.message}",
    "dmesg": lambda s: f"[{s.when % 900000:6d}.{s.ms:03d}{s.pid % 1000:03d}] {s.service}: {s.message}",
    "nginx": lambda s: f"{s.clock('%Y/%m/%d %H:%M:%S')} [{s.level}] {s.pid}#{s.pid % 30}: *{s.ms} {s.message}",
    "windows": lambda s: f"{s.clock('%m/%d/%Y %I:%M:%S %p')} {s.level.title()} {s.service} {s.pid} {s.message}",
    "csv": lambda s: f'{s.clock("%Y-%m-%dT%H:%M:%S")},{s.level},{s.service},"{s.message}"',
    "journal": lambda s: f"{s.clock('%a %Y-%m-%d %H:%M:%S UTC')} {s.host} {s.service}[{s.pid}]: {s.message}",
    "bare": lambda s: f"{s.clock('%H:%M:%S')} {s.message}",
    "none": lambda s: s.message,
}
HELD_OUT_FORMATS: dict[str, Callable[[Line], str]] = {
    "pipe": lambda s: f"{s.when} | {s.level[0].upper()} | {s.message} | {s.service}",
    "android": lambda s: (
        f"{s.clock('%m-%d %H:%M:%S')}.{s.ms:03d} {s.pid:5d} {s.pid + 7:5d} {s.level[0].upper()} "
        f"{s.service}: {s.message}"
    ),
}
WITHOUT_CLOCK = {"python", "dmesg", "none", "windows", "pipe"}
LEVEL_NAMES = {"error": ("error", "failure"), "warn": ("warning",), "info": ("info message", "notice")}


def unique(lines: list[str], index: int, parts: list[str]) -> bool:
    """True when ``index`` is the only line that holds every part."""
    return all(p in lines[index] for p in parts) and not any(
        i != index and all(p in line for p in parts) for i, line in enumerate(lines)
    )


def lexical(rng: random.Random, lines: list[str], index: int) -> str | None:
    """A few words of the line that no other line holds together, as a user would type them."""
    tokens = [t.strip(".,;:()[]\"'=<>") for t in lines[index].split()]
    tokens = [t for t in tokens if len(t) > 1 and len(t) < 40]
    for _ in range(6):
        count = rng.randint(1, 4)
        if len(tokens) < count:
            return None
        start = rng.randrange(len(tokens) - count + 1)
        picked = tokens[start : start + count] if rng.random() < 0.5 else rng.sample(tokens, count)
        if unique(lines, index, picked):
            return rng.choice(
                (
                    "{}",
                    "{}",
                    "line with {}",
                    "which line mentions {}",
                    "find {}",
                    "the entry containing {}",
                    "where is {}",
                )
            ).format(" ".join(picked))
    return None


def _trace(rng: random.Random, values: Values, format_name: str) -> list[str]:
    names = [values.word() for _ in range(4)]
    if format_name == "log4j":
        return [
            f"\tat com.acme.{n}.{n.title()}.{values.word()}({n.title()}.java:{rng.randint(5, 900)})"
            for n in names[: rng.randint(2, 4)]
        ]
    return [f'  File "/app/{n}.py", line {rng.randint(3, 900)}, in {values.word()}' for n in names[: rng.randint(1, 3)]]


def log_document(
    rng: random.Random,
    count: int,
    words: list[str],
    *,
    wanted: int,
    held_out: bool = False,
    pairs: Pairs | None = None,
    thesaurus: Thesaurus | None = None,
) -> Document:
    """A log of about ``count`` lines with up to ``wanted`` questions; ``held_out`` uses events' last questions, formats
    that training never sees and no question of training's own wording. With ``pairs`` some lines say what nobody wrote
    questions for, and are asked by what they mean; with ``thesaurus`` words of a line are asked by their meaning."""
    values = Values(rng, words)
    formats = HELD_OUT_FORMATS if held_out and rng.random() < 0.3 else FORMATS
    format_name = rng.choice(list(formats))
    pool = rng.sample(events(), rng.randint(3, min(len(events()), 40)))
    weights = [rng.expovariate(1) for _ in pool]
    services, host = rng.sample(SERVICES, rng.randint(2, 8)), values.word()
    pids = {s: rng.randint(100, 60_000) for s in services}
    when, rows, lines = rng.randint(1_500_000_000, 1_800_000_000), [], []
    last: dict[str, dict[str, str]] = {}
    foreign: list[tuple[str, int | None]] = []
    odd = rng.choice((0.0, 0.1, 0.3)) if pairs else 0.0
    while len(lines) < count:
        when += rng.choice((0, 0, 1, 1, 2, 7, 40, rng.randint(0, 4000)))
        if pairs and rng.random() < odd:
            question, said = rng.choice(pairs.rows)[:: rng.choice((1, -1))]
            service, level = rng.choice(services), rng.choice(("info", "info", "warn", "error"))
            lines.append(
                formats[format_name](Line(when, rng.randint(0, 999), host, service, pids[service], level, said))
            )
            foreign.append((question, len(lines) - 1))
            if rng.random() < NEAR and (near := pairs.near(rng, said)):
                foreign.append((near[0], None))
            continue
        event = rng.choices(pool, weights)[0]
        slots = values.draw()
        if event.message in last and rng.random() < 0.6:  # a near-duplicate: one or two values move, the rest stays
            slots = dict(last[event.message])
            for name in rng.sample(sorted(event.slots) or ["n"], min(len(event.slots) or 1, rng.randint(1, 2))):
                slots[name] = values.nudge(slots[name]) if rng.random() < 0.7 else values.draw()[name]
        last[event.message] = slots
        service = rng.choice(services)
        line = Line(when, rng.randint(0, 999), host, service, pids[service], event.level, event.message.format(**slots))
        rows.append((len(lines), event, slots, line))
        lines.append(formats[format_name](line))
        if event.level == "error" and format_name in ("log4j", "python", "iso") and rng.random() < 0.15:
            lines += _trace(rng, values, format_name)

    document = Document(lines)
    seen = {(event.message, name, slots[name]) for _, event, slots, _ in rows for name in event.slots}
    counts = Counter((event.message, name, slots[name]) for _, event, slots, _ in rows for name in event.slots)
    kinds = Counter(event.message for _, event, _, _ in rows)
    clocks = Counter(line.clock("%H:%M") for *_, line in rows)
    levels = Counter((line.level, line.service) for *_, line in rows)
    text = "\n".join(lines)
    there = set(lines)
    for question, index in rng.sample(foreign, min(len(foreign), max(1, wanted // 2))):
        if index is not None or not any(question in line for line in there):
            document.questions.append((reworded(rng, question, 0.0)[:200], index))
    for index, event, slots, line in rng.sample(rows, min(len(rows), 3 * wanted)):
        question, answer = _question(
            rng,
            values,
            document,
            index,
            event,
            slots,
            line,
            format_name,
            held_out,
            (counts, kinds, clocks, levels, seen, text),
            thesaurus,
        )
        if question:
            document.questions.append((question, answer))
        if len(document.questions) >= wanted:
            break
    return document


def _question(
    rng, values, document, index, event, slots, line, format_name, held_out, tables, thesaurus
) -> tuple[str | None, int | None]:
    counts, kinds, clocks, levels, seen, text = tables
    choice = rng.random()
    template = event.questions[-1] if held_out and rng.random() < 0.5 else rng.choice(event.questions[:-1])
    asked = set(SLOT.findall(template)) & event.slots
    template = template if held_out else reworded(rng, template)
    if choice < 0.45:
        pinned = kinds[event.message] == 1 or any(counts[event.message, name, slots[name]] == 1 for name in asked)
        if pinned:
            if rng.random() < 0.2 and asked:  # the same question about a value that is not there
                name = rng.choice(sorted(asked))
                other = values.nudge(slots[name])
                if (event.message, name, other) not in seen and other not in text:
                    return template.format(**{**slots, name: other}), None
            return template.format(**slots), index
        if format_name not in WITHOUT_CLOCK:  # many alike: the time tells them apart
            clock = line.clock("%H:%M:%S")
            if unique(document.lines, index, [clock]):
                return f"{template.format(**slots)} at {clock}", index
        return None, None
    if choice < 0.60:
        names = [n for n in VALUE_SLOTS if n in event.slots and unique(document.lines, index, [slots[n]])]
        if not names:
            return None, None
        value = slots[rng.choice(names)]
        wording = rng.choice(
            (
                "{}",
                "the line with {}",
                "which line mentions {}",
                "find {}",
                "what happened with {}",
                "where does {} appear",
            )
        )
        if rng.random() < 0.25:
            other = values.nudge(value)
            return (wording.format(other), None) if other not in text else (None, None)
        return wording.format(value), index
    if choice < 0.68 and thesaurus:
        picked = [w for w in re.findall(r"[A-Za-z]{4,}", event.message) if w in line.message]
        picked = rng.sample(picked, min(len(picked), rng.randint(2, 5)))
        if picked and unique(document.lines, index, picked):
            return thesaurus.described(rng, picked, rng.choice((0.0, 0.3, 0.5))), index
        return None, None
    if choice < 0.82:
        return lexical(rng, document.lines, index), index
    if choice < 0.90:
        if format_name in WITHOUT_CLOCK:
            return None, None
        clock = line.clock("%H:%M:%S") if rng.random() < 0.6 else line.clock("%H:%M")
        if (len(clock) == 5 and clocks[clock] > 1) or not unique(document.lines, index, [clock]):
            return None, None
        return rng.choice(
            ("what happened at {}", "the event at {}", "the line logged at {}", "{}", "which entry is from {}")
        ).format(clock), index
    if choice < 0.94:
        if levels[line.level, line.service] > 1 or format_name in (
            "bracket",
            "bare",
            "none",
            "syslog",
            "rfc5424",
            "journal",
            "dmesg",
        ):
            return None, None
        level = rng.choice(LEVEL_NAMES[line.level])
        return rng.choice(("the {} from {}", "which line is the {} of {}", "the {} logged by {}")).format(
            level, line.service
        ), index
    other = rng.choice(events())
    if kinds[other.message]:
        return None, None
    template = rng.choice(other.questions[:-1])
    drawn = values.draw()
    if rng.random() < NEAR:  # about something else, but with the names and numbers of a line that is there
        drawn |= {name: value for name, value in slots.items() if name in event.slots}
    return (template if held_out else reworded(rng, template)).format(**drawn), None
