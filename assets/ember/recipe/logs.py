"""Logs with questions: events of ``written/events`` in real line formats, with near-duplicates that differ in a digit.

A document is a list of lines and questions, each with the index of the line that answers or None when none does.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .events import Event, events, slots_of, together
from .values import SERVICES, VALUE_SLOTS, Values
from .wordings import Thesaurus, at_time, reworded

if TYPE_CHECKING:
    from .retrieval import Pairs

NEAR = 0.7
"""Share of the questions without an answer that are about an event of the log's areas, and share of those that have
names and numbers of a line that is there."""
ONCE = 0.6
"""Share of a log's kinds of events that happen once; the others fill the log with lines that are nearly alike."""


@dataclass
class Document:
    """Lines of evidence and questions about them; a question's line is None when no line answers it."""

    lines: list[str]
    questions: list[tuple[str, int | None]] = field(default_factory=list)


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
WITHOUT_LEVEL = {"bracket", "bare", "none", "syslog", "rfc5424", "journal", "dmesg"}
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


class Row(NamedTuple):
    """A line of an event: its place in the log, the event, what filled its slots, what was printed."""

    index: int
    event: Event
    slots: dict[str, str]
    line: Line


def _kinds(rng: random.Random, known: list[Event], count: int) -> Iterator[Event]:
    """The kinds of a log's lines, one after the other without end: some happen once among the first ``count``, the
    others again and again."""
    once = [event for event in known[1:] if rng.random() < ONCE][: count // 2]
    often = [event for event in known if event not in once]
    weights = [rng.expovariate(1) for _ in often]
    places = dict(zip(rng.sample(range(count), len(once)), once, strict=True))
    place = 0
    while True:
        yield places.get(place) or rng.choices(often, weights)[0]
        place += 1


def log_document(
    rng: random.Random,
    count: int,
    words: list[str],
    *,
    wanted: int,
    held_out: bool = False,
    unseen: bool = False,
    pairs: Pairs | None = None,
    thesaurus: Thesaurus | None = None,
) -> Document:
    """A log of about ``count`` lines with up to ``wanted`` questions; ``held_out`` uses events' last questions, formats
    that training never sees and no question of training's own wording; ``unseen``, with it, asks what was written about
    events that training never sees. With ``pairs`` some lines say what nobody wrote questions for, and are asked by
    what they mean; with ``thesaurus`` words of a line are asked by their meaning."""
    values = Values(rng, words)
    formats = HELD_OUT_FORMATS if held_out and rng.random() < 0.3 else FORMATS
    format_name = rng.choice(list(formats))
    shown = formats[format_name]
    first: list[Event] = []
    if unseen:
        first = [event for event in events(held_out=True) if event.unseen]
        first = rng.sample(first, min(len(first), rng.randint(4, 12)))
    known = together(rng, held_out=held_out, first=first)
    rng.shuffle(known)
    kinds = _kinds(rng, known, count)
    services, host = rng.sample(SERVICES, rng.randint(2, 8)), values.word()
    pids = {s: rng.randint(100, 60_000) for s in services}
    when, rows, lines = rng.randint(1_500_000_000, 1_800_000_000), [], []
    last: dict[str, dict[str, str]] = {}
    foreign: list[tuple[str, int | None]] = []
    odd = rng.choice((0.0, 0.1, 0.3)) if pairs else 0.0
    while len(lines) < count:
        when += rng.choice((0, 0, 1, 1, 2, 7, 40, rng.randint(0, 4000)))
        if pairs and rng.random() < odd:
            question, said = pairs.rows[pairs.draw(rng, 1)[0]][:: rng.choice((1, -1))]
            service, level = rng.choice(services), rng.choice(("info", "info", "warn", "error"))
            lines.append(shown(Line(when, rng.randint(0, 999), host, service, pids[service], level, said)))
            foreign.append((question, len(lines) - 1))
            if rng.random() < NEAR and (near := pairs.near(rng, said)):
                foreign.append((near[0], None))
            continue
        event = next(kinds)
        slots = values.draw()
        if event.message in last and rng.random() < 0.6:  # a near-duplicate: one or two values move, the rest stays
            slots = dict(last[event.message])
            for name in rng.sample(sorted(event.slots) or ["n"], min(len(event.slots) or 1, rng.randint(1, 2))):
                slots[name] = values.nudge(slots[name]) if rng.random() < 0.7 else values.draw()[name]
        last[event.message] = slots
        service = rng.choice(services)
        line = Line(when, rng.randint(0, 999), host, service, pids[service], event.level, event.message.format(**slots))
        rows.append(Row(len(lines), event, slots, line))
        lines.append(shown(line))
        if event.level == "error" and format_name in ("log4j", "python", "iso") and rng.random() < 0.15:
            lines += _trace(rng, values, format_name)

    document = Document(lines)
    text = "\n".join(lines)
    for question, index in rng.sample(foreign, min(len(foreign), max(1, wanted // 2))):
        if index is not None or question not in text:
            document.questions.append((reworded(rng, question, 0.0)[:200], index))
    asker = Asker(rng, values, lines, rows, format_name, held_out, thesaurus)
    ask = asker.in_words if unseen else asker.ask
    for row in asker.order(4 * wanted, unseen=unseen):
        if len(document.questions) >= wanted:
            break
        if pair := ask(row):
            document.questions.append(pair)
    return document


Pair = tuple[str, int | None]
"""A question and the line that answers it, or None."""


class Asker:
    """Questions about the lines of one log."""

    def __init__(
        self,
        rng: random.Random,
        values: Values,
        lines: list[str],
        rows: list[Row],
        format_name: str,
        held_out: bool,
        thesaurus: Thesaurus | None,
    ) -> None:
        self.rng, self.values, self.lines, self.rows = rng, values, lines, rows
        self.format, self.held_out, self.thesaurus = format_name, held_out, thesaurus
        self.timed = format_name not in WITHOUT_CLOCK
        self.text = "\n".join(lines)
        self.counts = Counter((row.event.message, name, row.slots[name]) for row in rows for name in row.event.slots)
        self.kinds = Counter(row.event.message for row in rows)
        self.clocks = Counter(row.line.clock("%H:%M") for row in rows)
        self.levels = Counter((row.line.level, row.line.service) for row in rows)
        areas = {row.event.area for row in rows}
        others = [event for event in events(held_out=held_out) if not self.kinds[event.message]]
        self.others, self.near = others, [event for event in others if event.area in areas]

    def order(self, most: int, *, unseen: bool) -> list[Row]:
        """Up to ``most`` rows to ask about, half of them of events that happened once, which are told by what they
        mean; with ``unseen`` of events that training never sees."""
        rows = [row for row in self.rows if not unseen or row.event.unseen]
        single = [row for row in rows if self.kinds[row.event.message] == 1]
        drawn = [
            self.rng.choice(single if single and self.rng.random() < 0.5 else rows) for _ in range(most if rows else 0)
        ]
        return list({row.index: row for row in drawn}.values())

    def ask(self, row: Row) -> Pair | None:
        """A question of a random way about a row, or about what is not there; None when this way does not tell it from
        other lines."""
        ways = (
            (0.52, self.written),
            (0.11, self.value),
            (0.08, self.described),
            (0.11, self.lexical),
            (0.05, self.clock),
            (0.03, self.level),
            (0.10, self.absent),
        )
        return self.rng.choices([way for _, way in ways], [share for share, _ in ways])[0](row)

    def in_words(self, row: Row) -> Pair | None:
        """A written question about a row, or about what is not there."""
        return self.absent(row) if self.rng.random() < 0.15 else self.written(row)

    def written(self, row: Row) -> Pair | None:
        """What was written for the event, or, of a value that is not there, the same."""
        rng, event, slots = self.rng, row.event, row.slots
        template = event.question(rng, self.held_out)
        asked = slots_of(template)
        if self.kinds[event.message] > 1 and not any(self.counts[event.message, n, slots[n]] == 1 for n in asked):
            if rng.random() < 0.5:
                return None
            clock = row.line.clock("%H:%M:%S")  # many alike: the time tells them apart
            timed = at_time(template, clock) if self.timed and unique(self.lines, row.index, [clock]) else None
            return (self.worded(timed).format(**slots), row.index) if timed else None
        if asked and rng.random() < 0.15:
            name = rng.choice(sorted(asked))
            other = self.values.nudge(slots[name])
            if not self.counts[event.message, name, other] and other not in self.text:
                return self.worded(template).format(**{**slots, name: other}), None
        return self.worded(template).format(**slots), row.index

    def value(self, row: Row) -> Pair | None:
        """A name or number that one line has, or none."""
        rng = self.rng
        names = [n for n in VALUE_SLOTS if n in row.event.slots and unique(self.lines, row.index, [row.slots[n]])]
        if not names:
            return None
        value = row.slots[rng.choice(names)]
        wording = rng.choice(
            (
                "{}",
                "the line with {}",
                "which line mentions {}",
                "find {}",
                "what happened with {}",
                "where does {} appear",
                "Which line mentions {}?",
                "What happened with {}?",
                "What does the log say about {}?",
            )
        )
        if rng.random() < 0.25:
            other = self.values.nudge(value)
            return (wording.format(other), None) if other not in self.text else None
        return wording.format(value), row.index

    def described(self, row: Row) -> Pair | None:
        """Some words of the line by what they mean."""
        rng = self.rng
        picked = [word for word in re.findall(r"[A-Za-z]{4,}", row.event.message) if word in row.line.message]
        picked = rng.sample(picked, min(len(picked), rng.randint(2, 5)))
        if not self.thesaurus or not picked or not unique(self.lines, row.index, picked):
            return None
        said = self.thesaurus.described(rng, picked, rng.choice((0.0, 0.3, 0.5)))
        return (said, row.index) if said else None

    def lexical(self, row: Row) -> Pair | None:
        said = lexical(self.rng, self.lines, row.index)
        return (said, row.index) if said else None

    def clock(self, row: Row) -> Pair | None:
        """The time of day."""
        rng = self.rng
        clock = row.line.clock("%H:%M:%S") if rng.random() < 0.6 else row.line.clock("%H:%M")
        if not self.timed or (len(clock) == 5 and self.clocks[clock] > 1):
            return None
        if not unique(self.lines, row.index, [clock]):
            return None
        ways = ("what happened at {}", "the event at {}", "the line logged at {}", "{}", "which entry is from {}")
        return rng.choice((*ways, "What happened at {}?")).format(clock), row.index

    def level(self, row: Row) -> Pair | None:
        """Severity and program, where the format prints both."""
        rng, line = self.rng, row.line
        if self.levels[line.level, line.service] > 1 or self.format in WITHOUT_LEVEL:
            return None
        level = rng.choice(LEVEL_NAMES[line.level])
        wording = rng.choice(("the {} from {}", "which line is the {} of {}", "the {} logged by {}"))
        return wording.format(level, line.service), row.index

    def absent(self, row: Row) -> Pair | None:
        """About an event that is not in the log, often one of its areas, often with the row's names and numbers."""
        rng = self.rng
        others = self.near if self.near and rng.random() < NEAR else self.others
        if not others:
            return None
        event, drawn = rng.choice(others), self.values.draw()
        if rng.random() < NEAR:
            drawn |= {name: row.slots[name] for name in row.event.slots}
        return self.worded(event.question(rng, self.held_out)).format(**drawn), None

    def worded(self, template: str) -> str:
        return template if self.held_out else reworded(self.rng, template)
