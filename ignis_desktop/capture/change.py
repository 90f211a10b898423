"""Whether a captured picture has changed enough to be encoded again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

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

    def differs(self, other: Thumbnail) -> bool:
        """Whether the pictures differ by more than a trifle."""
        if self.size != other.size:
            return True
        changed = np.abs(self.cells - other.cells) > _LEVELS
        return int(changed.sum()) >= min(_CELLS, changed.size)
