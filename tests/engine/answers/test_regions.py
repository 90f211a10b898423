"""Places and extents, from maps that were made with a known answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from engine.answers.readouts import Extent
from engine.answers.regions import (
    Box,
    agreeing,
    anchor_place,
    connected,
    heat_extent,
    peak_places,
    place_of,
    runner_up,
    set_extent,
)
from engine.messages import Peaks
from tests.tiny import CELL


@given(
    mass=arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.floats(0, 1)),
    cell=st.sampled_from([8, 28, 32]),
)
def test_a_place_is_inside_beside_the_peak(mass: np.ndarray, cell: int) -> None:
    mass.flat[0] += 1e-6
    mass /= mass.sum()
    place = place_of(mass, cell)
    rows, columns = mass.shape
    row, column = divmod(int(mass.argmax()), columns)
    assert 0 < place.x < columns * cell
    assert 0 < place.y < rows * cell
    assert abs(place.x / cell - (column + 0.5)) <= 1
    assert abs(place.y / cell - (row + 0.5)) <= 1
    assert mass.max() <= place.share * (1 + 1e-12)
    assert place.share <= 1 + 1e-9
    assert cell / 12**0.5 * (1 - 1e-9) <= place.spread <= 2 * cell


@given(mass=arrays(np.float64, (5, 7), elements=st.floats(0, 1), unique=True), cell=st.sampled_from([8, 32]))
def test_a_mirrored_screen_gives_the_mirrored_place(mass: np.ndarray, cell: int) -> None:
    mass += 1e-9
    mass /= mass.sum()
    place, mirrored, turned = place_of(mass, cell), place_of(mass[:, ::-1], cell), place_of(mass.T, cell)
    assert (mirrored.x, mirrored.y) == pytest.approx((7 * cell - place.x, place.y))
    assert (turned.x, turned.y) == pytest.approx((place.y, place.x))
    assert mirrored.share == pytest.approx(place.share)
    assert turned.spread == pytest.approx(place.spread)


def test_a_place_between_two_cells() -> None:
    mass = np.zeros((4, 4))
    mass[1, 1], mass[1, 2] = 0.5, 0.25
    mass[3, 3] = 0.25
    place = place_of(mass, CELL)
    assert (place.x, place.y) == pytest.approx(((1.5 * 2 + 2.5) / 3 * CELL, 1.5 * CELL))
    assert place.share == pytest.approx(0.75)


def painted(*lines: str) -> np.ndarray:
    return np.array([[symbol != "." for symbol in line] for line in lines])


def test_regions_touch_along_sides_only() -> None:
    cells = painted("##.#", ".#..", "...#", "#..#")
    assert np.array_equal(connected(cells, (1, 1)), painted("##..", ".#..", "....", "...."))
    assert np.array_equal(connected(cells, (3, 3)), painted("....", "....", "...#", "...#"))
    assert connected(cells, (0, 3)).sum() == 1


def test_the_anchor_takes_the_region_with_the_highest_mean() -> None:
    """Not the one with the highest cell, nor the largest."""
    heat = np.full((6, 9), 1e-6)
    heat[1, 1:4] = [0.55, 1.0, 0.55]  # mean 0.7
    heat[4, 6:8] = [0.9, 0.8]  # mean 0.85
    heat[0, 8] = 0.49  # below one half
    x, y = anchor_place(np.log(heat))
    assert y == pytest.approx(4.5, abs=1e-3)
    assert x == pytest.approx((6.5 * 0.9 + 7.5 * 0.8) / 1.7, abs=1e-3)


def test_an_anchor_that_sees_no_difference_points_to_the_middle() -> None:
    assert anchor_place(np.full((4, 6), -3.0)) == (3.0, 2.0)


@pytest.mark.parametrize("seed", range(40))
def test_the_anchor_minds_neither_level_nor_side(seed: int) -> None:
    scores = np.random.default_rng(seed).integers(-20, 20, (5, 7)).astype(np.float64)
    x, y = anchor_place(scores)
    assert 0 < x < 7
    assert 0 < y < 5
    assert anchor_place(scores - 300) == (x, y)
    heat = np.exp(scores - scores.max())
    if (heat >= 0.5).sum() == 1:
        row, column = divmod(int(heat.argmax()), 7)
        assert (x, y) == pytest.approx((column + 0.5, row + 0.5))
        assert anchor_place(scores[:, ::-1]) == pytest.approx((7 - x, y))


@given(x=st.floats(1.01, 5.99), y=st.floats(1.01, 3.99), sharp=st.floats(0.1, 20), flat=st.floats(0.1, 20))
def test_a_parabolas_top_is_found_between_the_cells(x: float, y: float, sharp: float, flat: float) -> None:
    columns, rows = 7, 5
    scores = -sharp * (np.arange(columns) + 0.5 - x) ** 2 - flat * (np.arange(rows)[:, None] + 0.5 - y) ** 2
    row, column = divmod(int(scores.argmax()), columns)
    near = [scores[row, column], scores[row, column - 1], scores[row, column + 1]]
    near += [scores[row - 1, column], scores[row + 1, column]]
    (place,) = peak_places(Peaks(np.array([row * columns + column]), np.array([near], np.float64)), columns)
    assert place == pytest.approx((x, y), abs=1e-6)


def test_a_peak_on_the_edge_keeps_its_middle_there() -> None:
    gone = float("-inf")
    peaks = Peaks(np.array([0, 5, 2]), np.array([[2, gone, 1, gone, 1], [2, 1, gone, 1, gone], [2, 2, 2, 2, gone]]))
    assert peak_places(peaks, 3).tolist() == [[0.5, 0.5], [2.5, 1.5], [2.5, 0.5]]


def test_heads_far_from_the_anchor_are_left_out() -> None:
    places = np.array([[5.0, 5.0], [5.5, 5.0], [5.0, 4.0], [7.9, 5.0], [8.1, 5.0], [40.0, 2.0], [0.0, 30.0]])
    # The median distance is 2.9: three times that is 8.7.
    assert agreeing(places, (5.0, 5.0)).tolist() == [True, True, True, True, True, False, False]
    # Where all agree to a fraction of a cell, a cell is the measure.
    assert agreeing(np.array([[5.0, 5.1], [5.1, 5.0], [7.9, 5.0], [8.2, 5.0], [5.0, 5.0]]), (5.0, 5.0)).tolist() == [
        True, True, True, False, True,
    ]  # fmt: skip


def test_the_extent_of_a_set_leaves_out_its_fringes() -> None:
    line = np.linspace(10, 20, 101)
    box = set_extent(np.stack([line, np.full(101, 4.0)], -1))
    # 15 to 85 % of 10 … 20 is 11.5 … 18.5; grown by 15 % of that either way. As high as a cell.
    assert (box.x0, box.x1) == pytest.approx((11.5 - 1.05, 18.5 + 1.05))
    assert (box.y0, box.y1) == pytest.approx((3.5, 4.5))
    assert box.centre == pytest.approx((15, 4))


@given(st.lists(st.tuples(st.floats(0, 64), st.floats(0, 40)), min_size=1, max_size=40))
def test_the_extent_of_any_set_is_a_box(places: list[tuple[float, float]]) -> None:
    box = set_extent(np.array(places))
    assert box.x1 - box.x0 >= 1 - 1e-9
    assert box.y1 - box.y0 >= 1 - 1e-9
    assert min(x for x, _ in places) - 16 <= box.x0 <= box.x1 <= max(x for x, _ in places) + 16


def test_the_extent_of_a_map_follows_its_region() -> None:
    mass = np.full((7, 12), 1e-4)
    mass[3, 2:8] = 0.15
    mass[0, 11] = 0.1  # as strong, elsewhere
    rule = Extent(share=0.2, grow_x=12**0.5, base_x=0.0, grow_y=0.0, base_y=0.8)
    box = heat_extent(mass / mass.sum(), rule)
    # Six equal cells: a uniform spread, whose width is √12 standard deviations, less the cells' own width.
    assert box.centre == pytest.approx((5.0, 3.5))
    assert box.x1 - box.x0 == pytest.approx((6**2 - 1) ** 0.5)
    assert box.y1 - box.y0 == pytest.approx(0.8)


@given(
    mass=arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.floats(0, 1)),
)
def test_the_extent_of_any_map_is_a_box_around_its_region(mass: np.ndarray) -> None:
    mass.flat[0] += 1e-6
    rule = Extent()
    box = heat_extent(mass, rule)
    assert box.x1 - box.x0 >= rule.base_x
    assert box.y1 - box.y0 == pytest.approx(rule.base_y)
    x, y = box.centre
    assert 0 < x < mass.shape[1]
    assert 0 < y < mass.shape[0]


def test_the_second_best_place_is_not_beside_the_best() -> None:
    mass = np.zeros((8, 10))
    mass[3, 3], mass[3, 4], mass[4, 5], mass[6, 8], mass[0, 9] = 0.4, 0.3, 0.2, 0.06, 0.04
    rest = runner_up(mass)
    assert divmod(int(rest.argmax()), 10) == (6, 8)
    assert not runner_up(mass[2:5, 2:6]).any()


BOXES = st.tuples(*[st.floats(-50, 50)] * 2, *[st.floats(0.1, 60)] * 2).map(
    lambda given: Box(given[0], given[1], given[0] + given[2], given[1] + given[3])
)


@given(one=BOXES, other=BOXES)
def test_overlap(one: Box, other: Box) -> None:
    assert one.overlap(one) == pytest.approx(1)
    assert one.overlap(other) == pytest.approx(other.overlap(one))
    assert 0 <= one.overlap(other) <= 1 + 1e-9
    assert one.moved(3, 4).overlap(other.moved(3, 4)) == pytest.approx(one.overlap(other), abs=1e-6)
    assert one.scaled(2, 3).overlap(other.scaled(2, 3)) == pytest.approx(one.overlap(other), abs=1e-6)


def test_overlap_of_known_boxes() -> None:
    assert Box(0, 0, 4, 2).overlap(Box(2, 0, 6, 2)) == pytest.approx(4 / 12)
    assert Box(0, 0, 1, 1).overlap(Box(1, 0, 2, 1)) == 0
    assert Box(-3, -3, 9, 9).within(5, 4) == Box(0, 0, 5, 4)
