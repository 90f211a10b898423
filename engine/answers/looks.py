"""One look at a picture: how it stands in a readout's prompt, and what the scores over its cells say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from engine.answers.asking import head_span, prompt_parts, reading
from engine.answers.readouts import Readout
from engine.answers.regions import (
    Box,
    agreeing,
    anchor_place,
    heat_extent,
    peak_places,
    place_of,
    set_extent,
)
from engine.messages import EngineError, HeadSpan, ImageInput, Prompt, Scores, Usage

if TYPE_CHECKING:
    from engine.engine import Engine


@dataclass(frozen=True)
class Look:
    """What one look found."""

    x: float
    y: float
    box: Box
    """Where the attention or the heads' positions lie: as far as the thing goes, by this look."""
    spread: float
    """Standard deviation around the point."""
    confidence: float
    """Share of the attention at the point, or of the heads that agree on it, less what says that nothing answers."""
    nothing: float
    """How likely nothing answers; 0 for weights that have no key for it."""
    heat: np.ndarray
    """float64 [rows, columns], attention on the cells; sums to 1."""
    cell: tuple[float, float] = (1.0, 1.0)
    """Width and height of a cell of ``heat``."""

    def shown_at(self, x: float, y: float, per_cell: tuple[float, float]) -> Look:
        """In pixels of a picture instead of cells, where the look's corner is at (x, y) of it."""
        across, down = per_cell
        return replace(
            self,
            x=x + self.x * across,
            y=y + self.y * down,
            box=self.box.scaled(across, down).moved(x, y),
            spread=self.spread * (across + down) / 2,
            cell=per_cell,
        )


class Framed:
    """A picture as it stands in a readout's prompt."""

    def __init__(self, engine: Engine, readout: Readout, image: ImageInput) -> None:
        parts, config = prompt_parts(readout, engine.tokenizer), engine.loaded.config
        assert config.vision is not None
        cell = config.vision.cell
        self.readout = readout
        self.grid = image.size[1] // cell, image.size[0] // cell
        """(rows, columns)."""
        self.start = len(parts.before)
        self.end = self.start + self.grid[0] * self.grid[1]
        tokens = [config.image_token_id] * (self.end - self.start)
        self.prefix = Prompt((*parts.before, *tokens, *parts.between), (image,))
        self._encode = engine.tokenizer.encode
        self._after = parts.after

    @property
    def span(self) -> HeadSpan:
        return head_span(self.readout, self.start, self.end, self.grid[1])

    def question(self, query: str) -> tuple[int, ...]:
        """Token ids that follow the prefix."""
        return (*self._encode(query), *self._after)

    def whole(self, query: str) -> Prompt:
        """Picture and question in one prompt."""
        return Prompt((*self.prefix.ids, *self.question(query)), self.prefix.images)

    def look(self, scores: Scores) -> Look:
        """What the scores of :attr:`span` say; see :func:`look_of`."""
        return look_of(self.readout, scores, self.grid)


def look_of(readout: Readout, scores: Scores, grid: tuple[int, int]) -> Look:
    """What a readout's scores over a picture of ``grid`` (rows, columns) say. Positions and lengths in cells.

    Raises:
        EngineError: a head could not be read.
    """
    heat, nothing = heat_of(readout, scores, grid)
    if readout.anchor is not None:
        return _of_set(readout, scores, heat, nothing)
    place = place_of(heat, 1)
    box = heat_extent(heat, readout.box).within(grid[1], grid[0])
    return Look(place.x, place.y, box, place.spread, place.share * (1 - nothing), nothing, heat)


def heat_of(readout: Readout, scores: Scores, grid: tuple[int, int]) -> tuple[np.ndarray, float]:
    """Attention of a sum of heads, or of the anchor, on the cells (float64 [rows, columns], sums to 1), and how likely
    nothing answers. Raises ``EngineError`` when a head could not be read."""
    assert scores.heads is not None
    answer = reading(readout, scores.heads, Usage(0, 0, 0))
    return answer.keys.reshape(grid), answer.nothing


def _of_set(readout: Readout, scores: Scores, heat: np.ndarray, nothing: float) -> Look:
    """The anchor's place, and what the heads that point near it agree on."""
    rows, columns = heat.shape
    assert scores.heads is not None
    assert scores.peaks is not None
    if not np.isfinite(scores.peaks.scores[:, 0]).all() or np.isnan(scores.peaks.scores).any():
        raise EngineError("An attention head could not be read; the question was not answered.", code="readout_failed")
    anchor = anchor_place(scores.heads[0, : rows * columns].reshape(heat.shape).astype(np.float64))
    says = ~np.isin(scores.peaks.cells, list(readout.skipped(rows, columns)))
    places = peak_places(scores.peaks, columns)[says]
    near = places[agreeing(places, anchor)] if len(places) else places
    if not len(near):
        x, y = anchor
        box = Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5)
        return Look(x, y, box.within(columns, rows), max(rows, columns) / 12**0.5, 0.0, nothing, heat)
    box = set_extent(near).within(columns, rows)
    x, y = box.centre
    spread = float(np.sqrt(near.var(0).mean() + 1 / 12))
    return Look(x, y, box, spread, len(near) / len(scores.peaks.cells) * (1 - nothing), nothing, heat)
