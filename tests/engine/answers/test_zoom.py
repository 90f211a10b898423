"""Second looks: where crops lie, what both looks say, and both through the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from engine.answers.looks import Framed, Look
from engine.answers.point import Screen
from engine.answers.readouts import Readout, Zoom
from engine.answers.regions import Box
from engine.answers.zoom import Crop, combine, crops, share_at
from tests.conftest import LoadTiny
from tests.engine.answers.test_looks import with_point
from tests.engine.requests import Passes, read
from tests.tiny import CELL


def look(x: float, y: float, size: tuple[int, int] = (1920, 1080), **fields: object) -> Look:
    """One look at a picture of cells of 32 pixels, its attention on the cell of (x, y)."""
    rows, columns = size[1] // 32, size[0] // 32
    heat = np.zeros((rows, columns))
    heat[min(int(y / 32), rows - 1), min(int(x / 32), columns - 1)] = 1.0
    given = {"confidence": 0.5, "nothing": 0.0, "heat": heat, "cell": (size[0] / columns, size[1] / rows), **fields}
    return Look(x, y, Box(x - 9, y - 9, x + 9, y + 9), 9.0, **given)


@given(
    size=st.tuples(st.integers(33, 4000), st.integers(33, 2400)),
    at=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    factor=st.floats(1, 4),
    span=st.floats(0.05, 1),
    least=st.integers(64, 700),
    cells=st.integers(60, 1200),
    most=st.integers(200, 3000),
)
def test_a_crop_lies_in_the_picture_around_its_point(
    size: tuple[int, int],
    at: tuple[float, float],
    factor: float,
    span: float,
    least: int,
    cells: int,
    most: int,
) -> None:
    zoom = Zoom(factor, span, least, cells)
    x, y = at[0] * size[0], at[1] * size[1]
    (crop,) = crops(zoom, look(x, y, size), size, 32, most)
    assert 0 <= crop.x0 <= x <= crop.x1 <= size[0]
    assert 0 <= crop.y0 <= y <= crop.y1 <= size[1]
    width, height = crop.x1 - crop.x0, crop.y1 - crop.y0
    assert width == min(size[0], max(least, round(span * size[0])))
    assert height == min(size[1], max(least, round(span * size[1])))
    assert crop.width % 32 == crop.height % 32 == 0
    across, down = crop.width // 32, crop.height // 32
    # No more cells than asked for, but for a side of a single cell.
    assert across * down <= min(cells, most) or 1 in (across, down)
    assert crop.width <= max(32, width * factor + 32)
    assert crop.height <= max(32, height * factor + 32)
    # The point is not at the crop's edge unless it is at the picture's, or the crop is that small.
    assert x - crop.x0 >= min(x, width / 2 - 16) - 1
    assert crop.x1 - x >= min(size[0] - x, width / 2 - 16) - 1


def test_a_crop_shows_that_part_of_the_picture() -> None:
    picture = Image.new("RGB", (400, 300), "white")
    picture.paste((200, 0, 0), (160, 96, 240, 144))
    shown = Crop(160, 96, 240, 144, 160, 96).cut(picture)
    assert shown.size == (160, 96)
    # The outermost pixels are blended with what lies beyond the crop.
    assert shown.crop((4, 4, 156, 92)).getcolors() == [(152 * 88, (200, 0, 0))]


def test_the_second_best_place_is_looked_at_when_the_first_is_unsure() -> None:
    first = look(100, 100)
    first.heat[20, 50] = 0.4
    unsure = Zoom(2.0, 0.1, 128, runner_up=0.6)
    one, two = crops(unsure, first, (1920, 1080), 32, 2048)
    assert one.x0 < 100 < one.x1
    assert two.x0 < 50.5 * 32 < two.x1
    assert two.y0 < 20.5 * 1080 / 33 < two.y1
    assert crops(Zoom(2.0, 0.1, 128, runner_up=0.5), first, (1920, 1080), 32, 2048) == [one]


def test_both_looks_together() -> None:
    first = look(100, 100)
    first.heat[:] = 0
    first.heat[3, 3], first.heat[20, 50] = 0.5, 0.4
    near = look(105, 98, confidence=0.9)
    assert share_at(first, near) == pytest.approx(0.5)
    both = combine(first, [near], SUMMED)
    assert (both.x, both.y, both.box) == (near.x, near.y, near.box)
    # A box of one map keeps the larger size; the box that a set agrees on is taken as it is.
    wide = replace(first, box=Box(50, 95, 170, 101))
    assert combine(wide, [near], SUMMED).box == Box(45, 89, 165, 107)
    assert combine(wide, [near], replace(SUMMED, anchor=(3, 0))).box == near.box
    assert both.confidence == pytest.approx((0.5 * 0.9) ** 0.5)
    assert both.heat is first.heat
    # A second look that is surer about the second best place outweighs the first one's order.
    other = look(50.5 * 32, 20.5 * 32.7, confidence=0.95)
    faint = look(105, 98, confidence=0.2)
    assert combine(first, [faint, other], SUMMED).x == other.x
    # One that shows nothing does not count; where none shows anything the first look stands.
    gone = look(105, 98, confidence=0.99, nothing=0.7)
    assert combine(first, [gone, other], SUMMED).x == other.x
    assert combine(first, [gone], SUMMED) is first
    # Where the looks disagree there is little confidence.
    assert combine(first, [look(1500, 200, confidence=0.9)], SUMMED).confidence < 0.01


SUMMED = Readout("point", "image", ("{image}", "{query}"), ((3, 0),), 1.0, "sum", "peak_3x3")


def picture() -> Image.Image:
    noise = np.random.default_rng(5).integers(0, 256, (300, 450, 3), dtype=np.uint8)
    return Image.fromarray(noise)


ZOOM = {"factor": 2.0, "span": 0.3, "least": 64, "cells": 60}


@pytest.fixture
def zooming(load_tiny: LoadTiny, tiny_folder: Path, tmp_path: Path):
    return load_tiny(with_point(tiny_folder, tmp_path / "zooming", zoom=ZOOM, refuse_above=0.9))


def test_a_second_look_reads_the_enlarged_crop(zooming, load_tiny: LoadTiny) -> None:
    """The crop of the picture's own pixels, in a prompt of its own."""
    source = picture()
    image = zooming.prepare_image(source)
    screen = Screen.open(zooming, image, source=source)
    assert screen.zooms
    answer = screen.point("the save button")
    assert answer.looks == 2
    once = Screen.open(load_tiny(), image).point("the save button")
    np.testing.assert_allclose(answer.heat, once.heat, atol=1e-6)
    rows, columns = once.heat.shape
    first = look(*once.pixels, (450, 300), confidence=once.confidence, heat=once.heat.astype(np.float64))
    (crop,) = crops(Zoom(**ZOOM), first, (450, 300), CELL, 64)
    readout = zooming.loaded.heads.readouts["point"]
    framed = Framed(zooming, readout, zooming.prepare_image(crop.cut(source)))
    scores = read(zooming, framed.whole("the save button"), heads=framed.span).scores
    assert scores is not None
    shown = framed.look(scores)
    down, across = (crop.y1 - crop.y0) / framed.grid[0], (crop.x1 - crop.x0) / framed.grid[1]
    assert answer.pixels == pytest.approx((crop.x0 + shown.x * across, crop.y0 + shown.y * down), abs=1e-3)
    middle = shown.shown_at(crop.x0, crop.y0, (across, down)).box.centre[0]
    inside = min(middle, 450 - middle)  # half of the box lies within the picture at least
    assert answer.box[2] - answer.box[0] >= min(once.box[2] - once.box[0], inside) - 1e-3
    share = share_at(
        Look(0, 0, Box(0, 0, 1, 1), 0, 0, 0, once.heat.astype(np.float64), (450 / columns, 300 / rows)),
        shown.shown_at(crop.x0, crop.y0, (across, down)),
    )
    assert answer.confidence == pytest.approx((share * shown.confidence) ** 0.5, abs=1e-6)
    assert answer.input_tokens > once.input_tokens + framed.grid[0] * framed.grid[1]


def test_sure_answers_are_looked_at_once(load_tiny: LoadTiny, tiny_folder: Path, tmp_path: Path) -> None:
    engine = load_tiny(with_point(tiny_folder, tmp_path / "never", zoom={**ZOOM, "below": 0}))
    assert Screen.open(engine, engine.prepare_image(picture()), source=picture()).point("here").looks == 1


def test_many_questions_are_asked_together(zooming, passes: Passes) -> None:
    source = picture()
    screen = Screen.open(zooming, zooming.prepare_image(source), source=source)
    questions = [f"thing number {number}" for number in range(12)]
    alone = [screen.point(question) for question in questions]
    before = len(passes.runs)
    together = screen.points(questions)
    assert len(passes.runs) - before < 24
    assert max(len(lanes) for lanes in passes.lanes) > 1
    for one, other in zip(alone, together, strict=True):
        assert other.pixels == pytest.approx(one.pixels, abs=1e-2)
        assert other.looks == 2
        assert other.box == pytest.approx(one.box, abs=1e-2)


def test_a_fault_is_its_questions_alone(zooming) -> None:
    screen = Screen.open(zooming, zooming.prepare_image(picture()))
    right, wrong, also = screen.points(["here", "word " * 600, "there"])
    assert right.looks == also.looks == 2
    assert "Shorten" in wrong.message
