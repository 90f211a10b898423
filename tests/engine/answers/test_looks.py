"""Lists with an anchor and a set, through the engine: as if every head's scores had been taken off the device."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Engine
from engine.answers.asking import find_readout
from engine.answers.looks import Framed
from engine.answers.point import Screen
from engine.answers.regions import agreeing, anchor_place, peak_places, set_extent
from engine.messages import EngineError, HeadSpan, Peaks, Scores
from tests.conftest import LoadTiny
from tests.engine.answers.test_point import screenshot
from tests.engine.requests import read
from tests.tiny import CELL

ANCHOR = [3, 1]
SET = [[layer, head] for layer in (4, 3) for head in range(4)]
POINTS = ("sum", "anchor_set")


def with_point(folder: Path, target: Path, **entry: Any) -> Path:
    """A copy of a checkpoint whose list for points has other entries."""
    shutil.copytree(folder, target)
    file = target / "heads.json"
    lists = json.loads(file.read_text())
    lists["readouts"]["point"] |= entry
    file.write_text(json.dumps(lists))
    return target


@pytest.fixture
def load_set(load_tiny: LoadTiny, tiny_folder: Path, tmp_path: Path) -> Callable[..., Engine]:
    def load(**entry: Any) -> Engine:
        entry = {"combine": "anchor_set", "decode": "set_extent", "anchor": ANCHOR, "heads": SET, "scale": 1.0, **entry}
        return load_tiny(with_point(tiny_folder, tmp_path / "set", **entry))

    return load


def dense(engine: Engine, framed: Framed, query: str) -> np.ndarray:
    """Scores of anchor and set, [9, cells], all read whole in one prompt."""
    heads = tuple((layer, head) for layer, head in (ANCHOR, *SET))
    scores = read(engine, framed.whole(query), heads=HeadSpan(heads, framed.start, framed.end)).scores
    return scores.heads


def peaks_of(scores: np.ndarray, grid: tuple[int, int]) -> Peaks:
    """By hand: the best cell of each row of scores and what stands around it."""
    cells, found = scores.argmax(-1), []
    padded = np.pad(scores.reshape(-1, *grid), ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    around = ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))
    for number, cell in enumerate(cells):
        row, column = divmod(int(cell), grid[1])
        found.append([padded[number, row + 1 + down, column + 1 + across] for down, across in around])
    return Peaks(cells, np.array(found))


def test_an_answer_is_what_the_set_agrees_on(load_set: Callable[..., Engine]) -> None:
    engine = load_set()
    image = engine.prepare_image(screenshot(3))
    screen = Screen.open(engine, image)
    framed = Framed(engine, find_readout(engine, "point", "points", POINTS), image)
    rows, columns = framed.grid
    for query in ("here", "the save button", "the third one"):
        answer = screen.point(query)
        scores = dense(engine, framed, query)
        anchor = anchor_place(scores[0].reshape(framed.grid).astype(np.float64))
        places = peak_places(peaks_of(scores[1:], framed.grid), columns)
        near = places[agreeing(places, anchor)]
        box = set_extent(near).within(columns, rows)
        across, down = 150 / columns, 100 / rows
        assert answer.box == pytest.approx((box.x0 * across, box.y0 * down, box.x1 * across, box.y1 * down), abs=0.05)
        assert answer.pixels == pytest.approx(((box.x0 + box.x1) / 2 * across, (box.y0 + box.y1) / 2 * down), abs=0.05)
        assert answer.confidence == pytest.approx(len(near) / 8)
        weights = np.exp(scores[0].astype(np.float64) - scores[0].max())
        assert answer.heat.flatten() == pytest.approx(weights / weights.sum(), abs=1e-5)
        assert answer.uncertainty > 0


def test_heads_on_their_fallback_cells_do_not_count(load_set: Callable[..., Engine]) -> None:
    engine = load_set()
    framed = Framed(engine, find_readout(engine, "point", "points", POINTS), engine.prepare_image(screenshot(3)))
    rows, columns = framed.grid
    anchor = np.full((1, rows * columns), -9.0, np.float32)
    anchor[0, columns + 2] = 0.0
    cells = np.array([columns + 2] * 3 + [0, rows * columns - 1, 5, columns + 2, columns + 2])
    scores = Scores(anchor, None, Peaks(cells, np.tile(np.float32([0, -1, -1, -1, -1]), (8, 1))))
    # The first cell is near enough to the anchor to be believed, unless the list knows better.
    assert framed.look(scores).x == pytest.approx(2.25)
    careful = replace(framed.readout, skip_first_last=True, skip_cells=(((rows, columns), (5,)), ((1, 1), (0,))))
    framed.readout = careful
    look = framed.look(scores)
    assert (look.x, look.y) == pytest.approx((2.5, 1.5))
    assert look.confidence == pytest.approx(5 / 8)
    framed.readout = replace(careful, skip_cells=(((rows, columns), (5, columns + 2)),))
    nobody = framed.look(scores)
    assert nobody.confidence == 0
    assert (nobody.x, nobody.y) == pytest.approx((2.5, 1.5))


@pytest.mark.parametrize("row", [0, 7])
def test_a_partial_set_is_never_used(load_set: Callable[..., Engine], row: int) -> None:
    engine = load_set()
    framed = Framed(engine, find_readout(engine, "point", "points", POINTS), engine.prepare_image(screenshot(3)))
    count = framed.grid[0] * framed.grid[1]
    peaks = Peaks(np.zeros(8, np.int64), np.zeros((8, 5), np.float32))
    peaks.scores[row, 0] = np.nan
    with pytest.raises(EngineError, match="could not be read"):
        framed.look(Scores(np.zeros((1, count), np.float32), None, peaks))
    whole = Peaks(np.zeros(8, np.int64), np.zeros((8, 5), np.float32))
    with pytest.raises(EngineError, match="could not be read"):
        framed.look(Scores(np.full((1, count), np.nan, np.float32), None, whole))


def test_a_threshold_refuses(load_set: Callable[..., Engine]) -> None:
    found = [load_set(found_threshold=1.1)]
    screen = Screen.open(found[0], found[0].prepare_image(screenshot(3)))
    assert not screen.point("here").found


def test_boxes_of_a_list_without_a_set(tiny: Engine) -> None:
    image = tiny.prepare_image(screenshot(3))
    answer = Screen.open(tiny, image).point("here")
    x0, y0, x1, y1 = answer.box
    assert 0 <= x0 < x1 <= 150
    assert 0 <= y0 < y1 <= 100
    rows, columns = answer.heat.shape
    assert (rows, columns) == (image.size[1] // CELL, image.size[0] // CELL)
    peak = divmod(int(answer.heat.argmax()), columns)
    assert x0 - 150 / columns <= (peak[1] + 0.5) * 150 / columns <= x1 + 150 / columns
