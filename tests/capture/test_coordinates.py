"""The coordinate map over scales, negative origins and mixed scales."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ignis_desktop.capture.coordinates import CoordinateError, CoordinateMap, Rect, Tile

SCALES = (1.0, 1.25, 1.5, 1.75, 2.0)
EXTENT = st.integers(64, 4096)
ORIGIN = st.integers(-8192, 8192)
UNIT = st.floats(0, 1, exclude_max=True)


@st.composite
def monitors(draw: st.DrawFn) -> CoordinateMap:
    """One to three monitors side by side on the desktop, each with a scale and an offset of its own."""
    tiles, image_x, desktop_x, height = [], 0, draw(ORIGIN), 0
    for _ in range(draw(st.integers(1, 3))):
        scale, w, h = draw(st.sampled_from(SCALES)), draw(EXTENT), draw(EXTENT)
        image_w, image_h = round(w * scale), round(h * scale)
        tiles.append(Tile(Rect(image_x, 0, image_w, image_h), Rect(desktop_x, draw(ORIGIN), w, h)))
        image_x, desktop_x, height = image_x + image_w, desktop_x + w, max(height, image_h)
    return CoordinateMap(image_x, height, tuple(tiles))


@given(monitors(), st.data())
def test_image_points_come_back_from_the_desktop(coordinates: CoordinateMap, data: st.DataObject) -> None:
    area = data.draw(st.sampled_from(coordinates.tiles)).image
    x, y = area.x + data.draw(UNIT) * area.width, area.y + data.draw(UNIT) * area.height
    there = coordinates.to_desktop(x, y)
    # A point within rounding of a tile's right edge may come back on the neighbour's left edge, the same place.
    assert coordinates.from_desktop(*there) == pytest.approx((x, y), abs=1e-6)
    assert coordinates.from_normalized(*coordinates.to_normalized(x, y)) == pytest.approx((x, y))


@given(monitors(), st.data())
def test_the_pixel_to_click_is_on_the_tile_and_shows_the_point(coordinates: CoordinateMap, data: st.DataObject) -> None:
    tile = data.draw(st.sampled_from(coordinates.tiles))
    x = tile.image.x + data.draw(st.integers(0, int(tile.image.width) - 1)) + 0.5
    y = tile.image.y + data.draw(st.integers(0, int(tile.image.height) - 1)) + 0.5
    pixel = coordinates.desktop_pixel(x, y)
    assert coordinates.shows(pixel[0] + 0.5, pixel[1] + 0.5)
    assert tile.desktop.contains(*pixel)
    exact = coordinates.to_desktop(x, y)
    assert all(at <= value < at + 1 for at, value in zip(pixel, exact, strict=True))


@given(monitors(), st.floats(-1e5, 1e5), st.floats(-1e5, 1e5))
def test_every_point_maps_to_a_place_that_can_be_clicked(coordinates: CoordinateMap, x: float, y: float) -> None:
    pixel = coordinates.desktop_pixel(x, y)
    assert any(tile.desktop.contains(*pixel) for tile in coordinates.tiles)


@given(monitors())
def test_json_keeps_the_map(coordinates: CoordinateMap) -> None:
    assert CoordinateMap.from_json(coordinates.to_json()) == coordinates


def test_a_monitor_left_of_the_main_one_at_150_percent() -> None:
    coordinates = CoordinateMap.of_region(2880, 1620, Rect(-1920, -200, 1920, 1080))
    assert coordinates.to_desktop(0, 0) == (-1920, -200)
    assert coordinates.to_desktop(1440, 810) == (-960, 340)
    assert coordinates.desktop_pixel(2879.9, 1619.9) == (-1, 879)


def test_gaps_belong_to_the_nearest_monitor() -> None:
    coordinates = CoordinateMap(
        300, 200, (Tile(Rect(0, 0, 100, 200), Rect(0, 0, 100, 200)), Tile(Rect(100, 0, 200, 50), Rect(100, 0, 100, 25)))
    )
    assert coordinates.desktop_pixel(280, 60) == (190, 24)
    assert coordinates.desktop_pixel(110, 190) == (99, 190)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"image": [10, 10], "tiles": []},
        {"image": [10], "tiles": [{"image": [0, 0, 10, 10], "desktop": [0, 0, 10, 10]}]},
        {"image": [10, 10], "tiles": [{"image": [0, 0, 10, 10], "desktop": [0, 0, 0, 10]}]},
        {"image": [10, 10], "tiles": [{"image": [0, 0, 11, 10], "desktop": [0, 0, 10, 10]}]},
        {"image": [10, 10], "tiles": [{"image": [0, 0, 10, 10], "desktop": [0, math.nan, 10, 10]}]},
        {"image": [10, 10], "tiles": [{"image": "here", "desktop": [0, 0, 10, 10]}]},
        {"image": [10, 10], "tiles": 3},
    ],
)
def test_maps_that_map_nothing_are_refused(raw: dict) -> None:
    with pytest.raises(CoordinateError):
        CoordinateMap.from_json(raw)


@given(monitors(), st.data())
def test_a_part_of_the_picture_shows_the_same_places(coordinates: CoordinateMap, data: st.DataObject) -> None:
    left = data.draw(st.integers(0, coordinates.width - 1))
    top = data.draw(st.integers(0, coordinates.height - 1))
    width = data.draw(st.integers(1, coordinates.width - left))
    height = data.draw(st.integers(1, coordinates.height - top))
    part = coordinates.cropped(left, top, width, height)
    assert (part.width, part.height) == (width, height)
    x, y = left + data.draw(UNIT) * width, top + data.draw(UNIT) * height
    if any(tile.image.contains(x, y) for tile in coordinates.tiles):
        assert part.to_desktop(x - left, y - top) == pytest.approx(coordinates.to_desktop(x, y), abs=1e-6)
    else:
        assert any(t.desktop.distance(*part.desktop_pixel(x - left, y - top)) <= 1 for t in coordinates.tiles)
