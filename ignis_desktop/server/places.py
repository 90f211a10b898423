"""What was found on a picture, as the routes answer it."""

from __future__ import annotations

import math
from typing import Any

from engine.answers.point import PointAnswer
from ignis_desktop.capture.coordinates import CoordinateMap


def place_json(answer: PointAnswer, width: int, height: int) -> dict[str, Any]:
    """The point in pixels of the picture, width × height, and as shares of its sides."""
    x, y = answer.pixels
    return {
        "found": answer.found,
        # The pixel that covers the point; a point on the far edge belongs to the last one.
        "pixels": [min(int(x), width - 1), min(int(y), height - 1)],
        "normalized": [round(part, 6) for part in answer.normalized],
        "confidence": answer.confidence,
        "uncertainty": answer.uncertainty,
        "looks": answer.looks,
        "ms": round(answer.ms, 3),
    }


def box_pixels(answer: PointAnswer, width: int, height: int) -> list[int]:
    """Left, top, right and bottom: whole pixels that cover the box, the far edges not included."""
    x0, y0, x1, y1 = answer.box
    left, top = min(int(x0), width - 1), min(int(y0), height - 1)
    return [left, top, max(left + 1, min(math.ceil(x1), width)), max(top + 1, min(math.ceil(y1), height))]


def desktop_box(box: list[int], coordinates: CoordinateMap) -> list[int]:
    """A box of the picture's pixels on the desktop; of one that spans monitors, the corners' places there."""
    left, top, right, bottom = box
    x0, y0 = coordinates.desktop_pixel(left, top)
    x1, y1 = coordinates.desktop_pixel(right - 1, bottom - 1)
    return [x0, y0, x1 + 1, y1 + 1]
