"""Whether a captured picture has changed enough to be encoded again."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image

from ignis_desktop.capture.coordinates import Rect

_ACROSS = 160
"""Cells of the longer side."""
_LEVELS = 16
"""Levels of grey, 0–255, by which a cell's mean must differ."""
_CELLS = 16
"""Cells that must differ: on a 1920-pixel screen a button's worth. A caret that blinks or a clock is fewer."""


@dataclass(frozen=True)
class Thumbnail:
    """Mean grey of each cell, int16 [rows, columns], and the size of the picture in pixels."""

    cells: np.ndarray
    size: tuple[int, int]

    @classmethod
    def of(cls, image: Image.Image) -> Thumbnail:
        width, height = image.size
        scale = min(1.0, _ACROSS / max(width, height))
        small = max(1, round(width * scale)), max(1, round(height * scale))
        grey = image.convert("L").resize(small, Image.Resampling.BOX)
        return cls(np.asarray(grey, np.int16), image.size)

    def differs(self, other: Thumbnail, ignored: Rect | None = None) -> bool:
        """Whether the pictures differ by more than a trifle, outside ``ignored`` (in their pixels)."""
        if self.size != other.size:
            return True
        changed = np.abs(self.cells - other.cells) > _LEVELS
        if ignored is not None:
            rows, columns = self.cells.shape
            across, down = columns / self.size[0], rows / self.size[1]
            left, right = math.floor(ignored.x * across), math.ceil((ignored.x + ignored.width) * across)
            top, bottom = math.floor(ignored.y * down), math.ceil((ignored.y + ignored.height) * down)
            changed[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = False
        return int(changed.sum()) >= min(_CELLS, changed.size)
