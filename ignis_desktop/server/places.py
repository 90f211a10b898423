"""What was found on a picture, as the routes answer it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from engine.answers.decide import Located
from ignis_desktop.capture.coordinates import CoordinateMap


class Placed(Protocol):
    """An answer of either method: ``engine.answers.point.PointAnswer`` says what its fields are."""

    @property
    def found(self) -> bool: ...
    @property
    def pixels(self) -> tuple[float, float]: ...
    @property
    def normalized(self) -> tuple[float, float]: ...
    @property
    def box(self) -> tuple[float, float, float, float]: ...
    @property
    def confidence(self) -> float: ...
    @property
    def uncertainty(self) -> float: ...
    @property
    def looks(self) -> int: ...
    @property
    def ms(self) -> float: ...


@dataclass(frozen=True)
class Chained:
    """A place that a model wrote in digits. It never says that something is not there."""

    pixels: tuple[float, float]
    normalized: tuple[float, float]
    box: tuple[float, float, float, float]
    confidence: float
    uncertainty: float
    ms: float
    found: bool = True
    looks: int = 1


def chained(place: Located, width: int, height: int, ms: float) -> Chained:
    """A place in pixels of a picture, width × height."""
    left, top, right, bottom = place.edges
    return Chained(
        (place.middle[0] * width, place.middle[1] * height),
        place.middle,
        (left * width, top * height, right * width, bottom * height),
        place.confidence,
        math.hypot(place.spread[0] * width, place.spread[1] * height),
        ms,
    )


def place_json(answer: Placed, width: int, height: int) -> dict[str, Any]:
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


def box_pixels(answer: Placed, width: int, height: int) -> list[int]:
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
