"""Places and extents on a picture, from scores or attention on its cells.

Positions and lengths are in cells unless said otherwise: the middle of the first cell is (0.5, 0.5), x to the right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.answers.readouts import Extent
from engine.messages import Peaks

NEAR = 3.0
"""Heads count that point within so many median distances of the anchor (a median distance is at least a cell)."""
QUANTILES = (0.15, 0.85)
GROWN = 0.15
"""By how much of its length an extent between quantiles grows at either end: about what lies beyond them."""


@dataclass(frozen=True)
class Place:
    """A point in the model's pixels with its share of the attention and its spread (standard deviation)."""

    x: float
    y: float
    share: float
    spread: float


@dataclass(frozen=True)
class Box:
    """Left, top, right and bottom edge in one of the units that its maker names."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def centre(self) -> tuple[float, float]:
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2

    def scaled(self, x: float, y: float) -> Box:
        return Box(self.x0 * x, self.y0 * y, self.x1 * x, self.y1 * y)

    def within(self, width: float, height: float) -> Box:
        """What of it lies on a picture of this size."""
        x0, x1 = (min(max(x, 0.0), width) for x in (self.x0, self.x1))
        y0, y1 = (min(max(y, 0.0), height) for y in (self.y0, self.y1))
        return Box(x0, y0, x1, y1)

    def moved(self, x: float, y: float) -> Box:
        return Box(self.x0 + x, self.y0 + y, self.x1 + x, self.y1 + y)

    def as_large_as(self, other: Box) -> Box:
        """Around its own centre, each side as long as the longer one of both."""
        x, y = self.centre
        half_x = max(self.x1 - self.x0, other.x1 - other.x0) / 2
        half_y = max(self.y1 - self.y0, other.y1 - other.y0) / 2
        return Box(x - half_x, y - half_y, x + half_x, y + half_y)

    def overlap(self, other: Box) -> float:
        """Intersection over union, 0 to 1."""
        width = min(self.x1, other.x1) - max(self.x0, other.x0)
        height = min(self.y1, other.y1) - max(self.y0, other.y0)
        if width <= 0 or height <= 0:
            return 0.0
        both = width * height
        return both / (self.area + other.area - both)

    @property
    def area(self) -> float:
        return (self.x1 - self.x0) * (self.y1 - self.y0)


def place_of(mass: np.ndarray, cell: int) -> Place:
    """The cell with most attention, refined to the expectation over it and its neighbours.

    Args:
        mass: float64 [rows, columns], not all 0.
        cell: pixels a side.
    """
    row, column = divmod(int(mass.argmax()), mass.shape[1])
    rows = np.arange(max(row - 1, 0), min(row + 2, mass.shape[0]))
    columns = np.arange(max(column - 1, 0), min(column + 2, mass.shape[1]))
    near = mass[np.ix_(rows, columns)]
    share = float(near.sum())
    weights = near / share
    centre_x, centre_y = (columns + 0.5) * cell, (rows + 0.5) * cell
    x, y = float(weights.sum(0) @ centre_x), float(weights.sum(1) @ centre_y)
    variance = float(weights.sum(0) @ (centre_x - x) ** 2 + weights.sum(1) @ (centre_y - y) ** 2)
    # Even all attention on one cell says no more than "somewhere in this cell": a uniform spread over it is added.
    return Place(x, y, share, float(np.sqrt(variance / 2 + cell**2 / 12)))


def connected(cells: np.ndarray, start: tuple[int, int]) -> np.ndarray:
    """The 4-connected region around a cell.

    Args:
        cells: bool [rows, columns], true at ``start`` (row, column).

    Returns:
        bool [rows, columns].
    """
    region = np.zeros_like(cells)
    region[start] = True
    ahead = [start]
    while ahead:
        row, column = ahead.pop()
        for near in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            inside = 0 <= near[0] < cells.shape[0] and 0 <= near[1] < cells.shape[1]
            if inside and cells[near] and not region[near]:
                region[near] = True
                ahead.append(near)
    return region


def anchor_place(scores: np.ndarray) -> tuple[float, float]:
    """(x, y) that one head points to: exponentiated scores from 0 to 1, the 4-connected region of cells from one half
    on that has the highest mean, its weighted centre.

    Args:
        scores: float [rows, columns], before any softmax.
    """
    heat = np.exp(scores - scores.max())
    heat = (heat - heat.min()) / max(float(heat.max() - heat.min()), np.finfo(np.float64).tiny)
    left = heat >= 0.5
    if not left.any():  # all cells are alike
        return heat.shape[1] / 2, heat.shape[0] / 2
    best = np.zeros_like(heat)
    while left.any():
        row, column = divmod(int(np.where(left, heat, -1.0).argmax()), heat.shape[1])
        region = connected(left, (row, column))
        left &= ~region
        found = np.where(region, heat, 0.0)
        if not best.any() or heat[region].mean() > heat[best > 0].mean():
            best = found
    weights = best / best.sum()
    x = float(weights.sum(0) @ (np.arange(heat.shape[1]) + 0.5))
    return x, float(weights.sum(1) @ (np.arange(heat.shape[0]) + 0.5))


def peak_places(peaks: Peaks, columns: int) -> np.ndarray:
    """float64 [heads, 2], (x, y) of each head's best cell, refined by the parabola through it and its two neighbours
    along each axis; a cell on the picture's edge keeps its middle along that axis."""
    own, left, right, above, below = peaks.scores.astype(np.float64).T
    x = peaks.cells % columns + 0.5 + _vertex(left, own, right)
    y = peaks.cells // columns + 0.5 + _vertex(above, own, below)
    return np.stack([x, y], -1)


def _vertex(before: np.ndarray, at: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Where the parabola through values at -1, 0 and 1 has its top; the middle one is the largest, so within ±½."""
    with np.errstate(invalid="ignore", divide="ignore"):
        curvature = before - 2 * at + after
        top = 0.5 * (before - after) / curvature
    return np.where(np.isfinite(top), top, 0.0)


def agreeing(places: np.ndarray, anchor: tuple[float, float]) -> np.ndarray:
    """Which of the heads point near the anchor: bool [heads]. ``places``: float64 [heads, 2], at least one."""
    distances = np.hypot(places[:, 0] - anchor[0], places[:, 1] - anchor[1])
    return distances <= NEAR * max(float(np.median(distances)), 1.0)


def set_extent(places: np.ndarray) -> Box:
    """The box that heads agree on: quantiles of their positions, slightly grown; half a cell at least each way, for
    that is how far a position stands for.

    Args:
        places: float64 [heads, 2], at least one.
    """
    low, high = np.quantile(places, QUANTILES, axis=0)
    half = np.maximum((high - low) * (0.5 + GROWN), 0.5)
    middle = (low + high) / 2
    return Box(*(middle - half).tolist(), *(middle + half).tolist())


def heat_extent(mass: np.ndarray, rule: Extent) -> Box:
    """The box that one map of attention shows: around the middle of the 4-connected region of cells that hold a share
    of the peak's attention, as wide and as high as ``rule`` makes of the attention's standard deviation in it.

    Args:
        mass: float64 [rows, columns], not all 0.
    """
    row, column = divmod(int(mass.argmax()), mass.shape[1])
    region = connected(mass >= rule.share * mass[row, column], (row, column))
    weights = np.where(region, mass, 0.0)
    weights /= weights.sum()
    edges = []
    for axis, grow, base in ((0, rule.grow_x, rule.base_x), (1, rule.grow_y, rule.base_y)):
        line = weights.sum(axis)
        centres = np.arange(len(line)) + 0.5
        middle = float(line @ centres)
        half = (grow * float(np.sqrt(line @ (centres - middle) ** 2)) + base) / 2
        edges.append((middle - half, middle + half))
    (x0, x1), (y0, y1) = edges
    return Box(x0, y0, x1, y1)


def runner_up(mass: np.ndarray, distance: int = 2) -> np.ndarray:
    """A map of the same shape without the peak and the cells within ``distance`` of it: its peak is the second best
    place. All 0 when nothing is left."""
    row, column = divmod(int(mass.argmax()), mass.shape[1])
    rest = mass.copy()
    rest[max(row - distance, 0) : row + distance + 1, max(column - distance, 0) : column + distance + 1] = 0.0
    return rest
