"""Questions about screenshots: is the point inside the right box, how far off is it, how long did it take."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ignis_desktop.bench.answers.cases import FOLDER
from ignis_desktop.bench.answers.run import Say
from ignis_desktop.bench.answers.score import Share
from ignis_desktop.bench.report import table
from ignis_desktop.bench.stats import median
from ignis_desktop.cli.errors import CommandError

if TYPE_CHECKING:
    from engine.engine import Engine

SCREENS = (FOLDER.parent / "screens", FOLDER / "screens")

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class ScreenCase:
    """``box`` (left, top, right, bottom) is None when the thing asked for is not on the screen."""

    picture: Path
    question: str
    by: str
    thing: str
    box: Box | None


@dataclass(frozen=True)
class Pointed:
    case: ScreenCase
    found: bool
    pixels: tuple[float, float]
    seconds: float
    first: bool

    @property
    def inside(self) -> bool:
        return self.off == 0

    @property
    def off(self) -> float:
        """Pixels from the point to the box; 0 inside."""
        assert self.case.box is not None
        (x, y), (left, top, right, bottom) = self.pixels, self.case.box
        return math.hypot(max(left - x, 0, x - right), max(top - y, 0, y - bottom))

    @property
    def error(self) -> float:
        """Pixels from the point to the middle of the box."""
        assert self.case.box is not None
        left, top, right, bottom = self.case.box
        return math.dist(self.pixels, ((left + right) / 2, (top + bottom) / 2))

    @property
    def correct(self) -> bool:
        return not self.found if self.case.box is None else self.found and self.inside

    def json(self) -> dict[str, Any]:
        return {
            "picture": self.case.picture.name,
            "question": self.case.question,
            "by": self.case.by,
            "thing": self.case.thing,
            "box": self.case.box,
            "found": self.found,
            "pixels": [round(value, 1) for value in self.pixels],
            "seconds": round(self.seconds, 3),
        }


def read_screens(folder: Path | None, limit: int = 0) -> list[ScreenCase]:
    """All questions about the screens of a folder's ``screens.json``, or of both of the checkout; ``limit``: at most so
    many, from all pictures.

    Raises ``CommandError`` when there are none.
    """
    cases: list[ScreenCase] = []
    for place in (folder,) if folder else SCREENS:
        try:
            rows = json.loads((place / "screens.json").read_text(encoding="utf-8"))
            cases += [case for row in rows for case in _cases_of(place, row)]
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise CommandError(
                f"No screens can be read from {place} ({fault}). They come with the source checkout."
            ) from fault
    if limit and limit < len(cases):
        cases = [cases[i * len(cases) // limit] for i in range(limit)]
    return cases


def _cases_of(folder: Path, row: dict[str, Any]) -> list[ScreenCase]:
    picture = folder / row["file"]
    present = [
        ScreenCase(picture, query["q"], query["by"], item["kind"], tuple(item["box"]))
        for item in row["items"]
        for query in item["queries"]
    ]
    return present + [ScreenCase(picture, query["q"], "absent", "", None) for query in row["absent"]]


def run_screens(engine: Engine, cases: Sequence[ScreenCase], say: Say) -> list[Pointed]:
    """Raises ``CommandError`` when the model has no head list for points."""
    from PIL import Image

    from engine.answers.point import Screen

    if not engine.info.point:
        raise CommandError(f"{engine.info.name} has no head list for points on a screen (heads.json).")
    by_picture: dict[Path, list[ScreenCase]] = defaultdict(list)
    for case in cases:
        by_picture[case.picture].append(case)
    out: list[Pointed] = []
    for picture, questions in by_picture.items():
        say(picture.name, len(out), len(cases))
        began = time.perf_counter()
        with Image.open(picture) as opened:
            image = opened.convert("RGB")
        screen = Screen.open(engine, engine.prepare_image(image), source=image)
        try:
            for case in questions:
                answer = screen.point(case.question)
                now = time.perf_counter()
                out.append(Pointed(case, answer.found, answer.pixels, now - began, case is questions[0]))
                began = now
        finally:
            screen.close()
    return out


def screens_report(pointed: Sequence[Pointed]) -> str:
    """By how things are asked for, and by what they are."""
    present = [p for p in pointed if p.case.box is not None]
    absent = [p for p in pointed if p.case.box is None]
    groups: dict[str, list[Pointed]] = defaultdict(list)
    for one in present:
        groups[f"by {one.case.by}"].append(one)
        groups[one.case.thing].append(one)
    rows = [_row(name, groups[name]) for name in sorted(groups, key=lambda name: (not name.startswith("by "), name))]
    rows.append(_row("all", present))
    first = [p.seconds for p in pointed if p.first]
    then = [p.seconds for p in pointed if not p.first]
    flagged, lost = Share.where(not p.found for p in absent), Share.where(not p.found for p in present)
    times = [f"{median(values):.2f} s" if values else "-" for values in (first, then)]
    return "\n".join(
        [
            table(["asked", "questions", "inside", "median pixels to its middle", "… off it, outside"], rows),
            f"  said not to be there: {flagged} of {flagged.of} absent, {lost} of {lost.of} present",
            f"  median of the first question about a screen {times[0]}, of the next {times[1]}",
        ]
    )


def _row(name: str, pointed: Sequence[Pointed]) -> list[str]:
    outside = [p.off for p in pointed if not p.inside]
    share = Share.where(p.inside for p in pointed)
    error = f"{median([p.error for p in pointed]):.0f}" if pointed else "-"
    return [name, str(share.of), str(share), error, f"{median(outside):.0f}" if outside else "-"]


def screens_failures(pointed: Sequence[Pointed]) -> str:
    """Every question that got a wrong answer, a line each."""
    return "\n".join(
        f"{_failure(p)} · {p.case.picture.name} · {p.case.by} · {p.case.question}" for p in pointed if not p.correct
    )


def _failure(pointed: Pointed) -> str:
    x, y = pointed.pixels
    if pointed.case.box is None:
        return f"{x:.0f}, {y:.0f} though it is not there"
    return f"{pointed.off:.0f} pixels off" if pointed.found else "said not to be there"
