"""Figures and failures as tables for people and as JSON for files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ignis_desktop.bench.answers.documents import Unit
from ignis_desktop.bench.answers.score import (
    NAMES,
    WORDINGS,
    Asked,
    Share,
    by_index,
    found_first,
    judged,
    kinds_of,
    seconds,
)
from ignis_desktop.bench.report import Verdict, table

ASKS = ("order", "time", "count")
WIDTH = 110
"""Characters of a line in the list of failures."""
TARGETS: dict[tuple[str, str], tuple[float, float | None]] = {
    ("log", "same words"): (0.95, None),
    ("log", "other words"): (0.45, 0.75),
    ("prose", "same words"): (0.90, None),
    ("prose", "other words"): (0.40, None),
    ("records", "same words"): (0.95, None),
}
"""Share to be right first, and among five."""
INDEX_TARGET, ABSENT_TARGET, LOST_TARGET = 0.90, 0.80, 0.10


def report(asked: Sequence[Asked], finders: Sequence[str]) -> str:
    """All tables."""
    parts = ["Found first / in the ranked five", _placed(asked, finders)]
    if any(a.case.asks for a in asked):
        parts += ["", "Answered from order, time and number", _indexed(asked, finders)]
    if any(a.case.absent for a in asked):
        parts += ["", "Said not to be there: of what is absent / of what is present", _judged(asked, finders)]
    title = "Seconds: median of the first question about a text / of the next / longest next"
    parts += ["", title, _seconds(asked, finders)]
    return "\n".join(parts)


def verdicts(asked: Sequence[Asked]) -> list[Verdict]:
    """This program's figures beside what was promised."""
    out = []
    for (kind, wording), (first_target, five_target) in TARGETS.items():
        first, five = found_first(asked, "ignis", kind, wording)
        name = f"{NAMES[kind]}, {wording}"
        out.append(_at_least(f"{name}: first", first, first_target))
        if five_target is not None:
            out.append(_at_least(f"{name}: in five", five, five_target))
    index = [a for a in asked if a.finder == "ignis" and a.case.asks]
    out.append(_at_least("order, time and number", Share.where(a.correct for a in index), INDEX_TARGET))
    pairs = [judged(asked, "ignis", kind) for kind in NAMES]
    absent = Share(sum(a.right for a, _ in pairs), sum(a.of for a, _ in pairs))
    lost = Share(sum(b.right for _, b in pairs), sum(b.of for _, b in pairs))
    out.append(_at_least("absent said to be absent", absent, ABSENT_TARGET))
    passed = None if lost.value is None else lost.value <= LOST_TARGET
    out.append(Verdict("present said to be absent", _of(lost), f"≤ {LOST_TARGET:.0%}", passed))
    return [verdict for verdict in out if verdict.measured != "-"]


def failures(asked: Sequence[Asked], finder: str, units: dict[str, dict[int, Unit]]) -> str:
    """Every question that ``finder`` got wrong: what was expected, what came. ``units``: of each text, by line or
    record."""
    parts = []
    for a in asked:
        if a.finder != finder or a.correct:
            continue
        got = a.outcome
        head = f"{a.case.text.name} · {a.wording if not a.case.asks else a.case.asks} · {a.case.question}"
        parts += [head, f"    expected  {_expected(a, units[a.case.text.name])}"]
        if got.fault:
            parts.append(f"    got       no answer: {got.fault}")
        elif a.case.asks == "count":
            parts.append(f"    got       {got.count}")
        else:
            best = got.ranking[0] if got.ranking else None
            number = best and (best.number if a.case.text.kind == "records" else best.line)
            where = "nothing" if best is None else f"{number}: {best.value}"
            place = f", right one is number {a.place + 1}" if a.place else ""
            parts.append(f"    got       {_cut(where)}{'' if got.found else ' (said not to be there)'}{place}")
    return "\n".join(parts)


def figures(asked: Sequence[Asked], finders: Sequence[str]) -> dict[str, Any]:
    """The tables' figures, for files."""
    out: dict[str, Any] = {}
    for finder in finders:
        kinds = {}
        for kind in kinds_of(asked):
            absent, lost = judged(asked, finder, kind)
            first_s, next_s, longest = seconds(asked, finder, kind)
            placed = {wording: found_first(asked, finder, kind, wording) for wording in WORDINGS}
            kinds[kind] = {
                **{w: {"first": first.json(), "five": five.json()} for w, (first, five) in placed.items()},
                "absent": absent.json(),
                "lost": lost.json(),
                "seconds": {"first": first_s, "next": next_s, "longest": longest},
            }
        out[finder] = {"kinds": kinds, "index": {asks: by_index(asked, finder, asks).json() for asks in ASKS}}
    return out


def _placed(asked: Sequence[Asked], finders: Sequence[str]) -> str:
    rows = []
    for kind in kinds_of(asked):
        for wording in WORDINGS:
            shares = [found_first(asked, finder, kind, wording) for finder in finders]
            if shares[0][0].of:
                cells = [f"{first} / {five}" for first, five in shares]
                rows.append([f"{NAMES[kind]}, {wording}", str(shares[0][0].of), *cells])
    return table(["", "asked", *finders], rows)


def _indexed(asked: Sequence[Asked], finders: Sequence[str]) -> str:
    rows = []
    for asks in ASKS:
        shares = [by_index(asked, finder, asks) for finder in finders]
        if shares[0].of:
            rows.append([asks, str(shares[0].of), *map(str, shares)])
    return table(["", "asked", *finders], rows)


def _judged(asked: Sequence[Asked], finders: Sequence[str]) -> str:
    judging = [f for f in finders if any(a.finder == f and not a.outcome.found for a in asked) or f == "ignis"]
    rows = []
    for kind in kinds_of(asked):
        pairs = [judged(asked, finder, kind) for finder in judging]
        rows.append([NAMES[kind], f"{pairs[0][0].of} / {pairs[0][1].of}", *(f"{a} / {b}" for a, b in pairs)])
    return table(["", "asked", *judging], rows)


def _seconds(asked: Sequence[Asked], finders: Sequence[str]) -> str:
    def cell(finder: str, kind: str) -> str:
        return " / ".join("-" if value is None else f"{value:.2f}" for value in seconds(asked, finder, kind))

    return table(["", *finders], [[NAMES[kind], *(cell(f, kind) for f in finders)] for kind in kinds_of(asked)])


def _at_least(name: str, share: Share, target: float) -> Verdict:
    passed = None if share.value is None else share.value >= target
    return Verdict(name, _of(share), f"≥ {target:.0%}", passed)


def _of(share: Share) -> str:
    return f"{share} ({share.right}/{share.of})" if share.of else "-"


def _expected(asked: Asked, units: dict[int, Unit]) -> str:
    case = asked.case
    if case.absent:
        return "nothing answers"
    if case.asks == "count":
        return str(case.count)
    if case.targets:
        return _cut(f"{case.lines[0]}: … {case.targets[0]} …")
    number = (case.records or case.lines)[0]
    return _cut(f"{number}: {units[number].text}")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
