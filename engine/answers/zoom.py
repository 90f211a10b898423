"""The second look: crops around where the first look points, enlarged, and what both looks say together.

One cell is 32 pixels of what the model sees: a smaller thing, or one on a screen that had to be shrunk, is told from
its neighbours only when it is shown larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from engine.answers.looks import Look
from engine.answers.readouts import Readout, Zoom
from engine.answers.regions import place_of, runner_up

NOTCH = 16
"""Crops begin at multiples of so many pixels: questions about the same place share the encoded crop."""


@dataclass(frozen=True)
class Crop:
    """A part of a picture, in its pixels, and the size at which it is shown, in pixels."""

    x0: int
    y0: int
    x1: int
    y1: int
    width: int
    height: int

    def cut(self, picture: Image.Image) -> Image.Image:
        box = (self.x0, self.y0, self.x1, self.y1)
        return picture.resize((self.width, self.height), Image.Resampling.BICUBIC, box=box)


def worth_it(zoom: Zoom, look: Look) -> bool:
    """Whether a first look (in the picture's pixels) is to be followed by a second."""
    return look.confidence < zoom.below


def crops(zoom: Zoom, first: Look, size: tuple[int, int], cell: int, most: int) -> list[Crop]:
    """Where to look again: around the first look's point, and around the second best place when it is unsure.

    Args:
        first: in pixels of the picture, ``size`` (width, height).
        cell: pixels a side of a cell.
        most: cells that the model takes of one picture.
    """
    centres = [(first.x, first.y)]
    if first.confidence < zoom.runner_up:
        rest = runner_up(first.heat)
        if rest.any():
            place = place_of(rest, 1)
            rows, columns = rest.shape
            centres.append((place.x * size[0] / columns, place.y * size[1] / rows))
    found = [_around(zoom, centre, size, cell, most) for centre in centres]
    return list(dict.fromkeys(found))


def _around(zoom: Zoom, centre: tuple[float, float], size: tuple[int, int], cell: int, most: int) -> Crop:
    sides = [min(side, max(zoom.least, round(zoom.span * side))) for side in size]
    starts = []
    for middle, side, whole in zip(centre, sides, size, strict=True):
        start = round((middle - side / 2) / NOTCH) * NOTCH
        starts.append(min(max(0, start), whole - side))
    limit = min(zoom.cells, most)
    larger = min(zoom.factor, (limit * cell**2 / (sides[0] * sides[1])) ** 0.5)
    shown = [max(1, round(side * larger / cell)) for side in sides]
    if shown[0] * shown[1] > limit:
        shown = [max(1, int(side * larger / cell)) for side in sides]
    (x0, y0), (width, height) = starts, shown
    return Crop(x0, y0, x0 + sides[0], y0 + sides[1], width * cell, height * cell)


def combine(first: Look, seconds: Sequence[Look], readout: Readout) -> Look:
    """What both looks say: the second look's place that is likeliest under both, or the first look's where no crop
    shows anything. All in pixels of the picture, the heat stays the first look's.

    The first look's say in a second look's place is its share of attention there, one cell around included. The
    confidence is the geometric mean of that and of the second look's own. A box that one map of attention shows is at
    least a cell or so large, whatever a cell shows: such a box keeps the first look's size where that is larger.
    """
    best, likeliest = first, -1.0
    for second in seconds:
        if second.nothing >= readout.refuse_above:
            continue
        share = share_at(first, second)
        if share * second.confidence > likeliest:
            likeliest = share * second.confidence
            nothing = float(np.sqrt(first.nothing * second.nothing))
            box = second.box if readout.anchor is not None else second.box.as_large_as(first.box)
            sure = float(np.sqrt(likeliest))
            best = replace(second, box=box, confidence=sure, nothing=nothing, heat=first.heat)
    return best


def share_at(first: Look, second: Look) -> float:
    """Share of the first look's attention on the cell of the second look's point and the eight around it."""
    rows, columns = first.heat.shape
    across, down = first.cell
    column, row = int(second.x / across), int(second.y / down)
    near = first.heat[max(row - 1, 0) : min(row + 2, rows), max(column - 1, 0) : min(column + 2, columns)]
    return float(near.sum())
