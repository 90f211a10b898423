"""Where a screenshot's pixels lie on the desktop: one map for each screenshot.

Three coordinate systems, all continuous (pixel *i* covers the interval [i, i + 1), its centre is i + 0.5):

- *image*: pixels of the picture, origin at its top left corner;
- *desktop*: the units in which the platform places the pointer. Origins may be negative (a monitor left of or above the
  main one) and the ratio to image pixels may differ from monitor to monitor;
- *normalized*: image coordinates divided by the picture's width and height, 0–1.

A picture of several monitors consists of one tile a monitor, each with a scale of its own. Parts of the picture that
no monitor covers belong to the nearest tile: an answer there is still a place that can be clicked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class CoordinateError(ValueError):
    """A coordinate map that maps nothing; the message says what is wrong with it."""


@dataclass(frozen=True)
class Rect:
    """Half-open rectangle [x, x + width) × [y, y + height)."""

    x: float
    y: float
    width: float
    height: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(v) for v in (self.x, self.y, self.width, self.height)):
            raise CoordinateError("A rectangle needs four finite numbers: x, y, width, height.")
        if self.width <= 0 or self.height <= 0:
            raise CoordinateError(f"A rectangle needs a positive size, not {self.width} × {self.height}.")

    def __str__(self) -> str:
        return f"[{self.x:g}, {self.y:g}, {self.width:g}, {self.height:g}]"

    def distance(self, x: float, y: float) -> float:
        """Distance of a point from the rectangle; 0 inside and on the edge."""
        dx = max(self.x - x, 0.0, x - (self.x + self.width))
        dy = max(self.y - y, 0.0, y - (self.y + self.height))
        return math.hypot(dx, dy)

    def contains(self, x: float, y: float) -> bool:
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    def intersected(self, other: Rect) -> Rect | None:
        """What both cover; None when that is nothing."""
        left, top = max(self.x, other.x), max(self.y, other.y)
        width = min(self.x + self.width, other.x + other.width) - left
        height = min(self.y + self.height, other.y + other.height) - top
        return Rect(left, top, width, height) if width > 0 and height > 0 else None

    def moved(self, dx: float, dy: float) -> Rect:
        return Rect(self.x + dx, self.y + dy, self.width, self.height)


@dataclass(frozen=True)
class Tile:
    """The part of a picture that shows one monitor (or a part of one), and the part of the desktop it shows."""

    image: Rect
    desktop: Rect


@dataclass(frozen=True)
class CoordinateMap:
    """Maps between image pixels, desktop pixels and 0–1 for one picture of ``width`` × ``height`` pixels."""

    width: int
    height: int
    tiles: tuple[Tile, ...]

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise CoordinateError(f"A picture has at least one pixel, not {self.width} × {self.height}.")
        if not self.tiles:
            raise CoordinateError("A coordinate map needs at least one tile.")
        slack = 1e-6 * max(self.width, self.height)
        for tile in self.tiles:
            area = tile.image
            if (
                min(area.x, area.y) < -slack
                or area.x + area.width > self.width + slack
                or area.y + area.height > self.height + slack
            ):
                raise CoordinateError(
                    f"A tile at {area} lies outside a picture of {self.width} × {self.height} pixels."
                )

    @classmethod
    def identity(cls, width: int, height: int) -> CoordinateMap:
        """For a picture that was not captured here: its desktop pixels are its own."""
        return cls.of_region(width, height, Rect(0, 0, width, height))

    @classmethod
    def of_region(cls, width: int, height: int, desktop: Rect) -> CoordinateMap:
        """For a picture of one monitor, window or region that lies at ``desktop``."""
        return cls(width, height, (Tile(Rect(0, 0, width, height), desktop),))

    def cropped(self, left: int, top: int, width: int, height: int) -> CoordinateMap:
        """The map of a part of the picture, in image pixels. A part that no tile reaches into keeps its nearest one's
        edge: every point of it maps there."""
        window = Rect(left, top, width, height)
        tiles = []
        for tile in self.tiles:
            shown = tile.image.intersected(window)
            if shown is not None:
                x0, y0 = _transfer(tile.image, tile.desktop, shown.x, shown.y)
                x1, y1 = _transfer(tile.image, tile.desktop, shown.x + shown.width, shown.y + shown.height)
                tiles.append(Tile(shown.moved(-left, -top), Rect(x0, y0, x1 - x0, y1 - y0)))
        if not tiles:
            x, y = self.desktop_pixel(left + width / 2, top + height / 2)
            tiles.append(Tile(Rect(0, 0, width, height), Rect(x, y, 1, 1)))
        return CoordinateMap(width, height, tuple(tiles))

    def to_normalized(self, x: float, y: float) -> tuple[float, float]:
        return x / self.width, y / self.height

    def from_normalized(self, x: float, y: float) -> tuple[float, float]:
        return x * self.width, y * self.height

    def to_desktop(self, x: float, y: float) -> tuple[float, float]:
        """Image → desktop. Points that no tile covers are moved to the nearest tile's edge."""
        tile = _nearest([t.image for t in self.tiles], x, y)
        return _transfer(self.tiles[tile].image, self.tiles[tile].desktop, x, y)

    def from_desktop(self, x: float, y: float) -> tuple[float, float]:
        """Desktop → image. Points that no tile covers are moved to the nearest tile's edge."""
        tile = _nearest([t.desktop for t in self.tiles], x, y)
        return _transfer(self.tiles[tile].desktop, self.tiles[tile].image, x, y)

    def shows(self, x: float, y: float) -> bool:
        """Whether the picture shows the desktop point (x, y)."""
        return any(tile.desktop.contains(x, y) for tile in self.tiles)

    def desktop_pixel(self, x: float, y: float) -> tuple[int, int]:
        """The whole desktop pixel to click for an image point; always inside the tile that shows the point."""
        area = self.tiles[_nearest([t.image for t in self.tiles], x, y)].desktop
        at_x, at_y = self.to_desktop(x, y)
        return _whole(at_x, area.x, area.width), _whole(at_y, area.y, area.height)

    def to_json(self) -> dict[str, Any]:
        """``{"image": [width, height], "tiles": [{"image": [x, y, w, h], "desktop": [x, y, w, h]}]}``."""
        return {
            "image": [self.width, self.height],
            "tiles": [
                {"image": [t.image.x, t.image.y, t.image.width, t.image.height],
                 "desktop": [t.desktop.x, t.desktop.y, t.desktop.width, t.desktop.height]}
                for t in self.tiles
            ],
        }  # fmt: skip

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> CoordinateMap:
        """The inverse of ``to_json``; raises ``CoordinateError`` naming what is missing."""
        try:
            width, height = raw["image"]
            tiles = tuple(Tile(Rect(*tile["image"]), Rect(*tile["desktop"])) for tile in raw["tiles"])
            return cls(int(width), int(height), tiles)
        except CoordinateError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CoordinateError(
                'A coordinate map is {"image": [width, height], "tiles": [{"image": [x, y, w, h], '
                f'"desktop": [x, y, w, h]}}]}}; this one is not ({error}).'
            ) from None


def _nearest(areas: list[Rect], x: float, y: float) -> int:
    """Index of the area that contains the point, or else of the one it is nearest to."""
    for index, area in enumerate(areas):
        if area.contains(x, y):
            return index
    return min(range(len(areas)), key=lambda index: areas[index].distance(x, y))


def _transfer(source: Rect, target: Rect, x: float, y: float) -> tuple[float, float]:
    u = min(max((x - source.x) / source.width, 0.0), 1.0)
    v = min(max((y - source.y) / source.height, 0.0), 1.0)
    return target.x + u * target.width, target.y + v * target.height


def _whole(value: float, start: float, length: float) -> int:
    """The pixel that covers ``value``, kept inside [start, start + length)."""
    last = math.ceil(start + length) - 1
    return min(max(math.floor(value), math.ceil(start)), max(last, math.ceil(start)))
