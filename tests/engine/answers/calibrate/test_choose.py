"""Lists from scores in which the heads that know were planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.answers.calibrate.choose import Chosen, Figures, best_mass, choose
from engine.answers.calibrate.forms import Form
from engine.answers.calibrate.judge import judge, peaks_of
from engine.answers.calibrate.samples import PictureSample, TextSample
from engine.answers.readouts import Readout
from engine.answers.regions import Box

HEADS = tuple((layer, head) for layer in (3, 7, 11) for head in range(6))
POINT = Form("point", "image", ("{image}", "{query}", "?"), ("sum", "anchor_set"))
LINE = Form("line", "lines", ("{lines}", "{query}", "?"), ("sum",))
GRID = (9, 12)
GROUPS, EACH = 20, 6


def picture_samples(
    knowing: dict[tuple[int, int], float], *, absent: bool = False, seed: int = 0
) -> list[PictureSample]:
    """Noise, on which heads see the cell that answers by so many units; ``absent``: and for questions that nothing
    answers, the key before the span by four."""
    rng = np.random.default_rng(seed)
    samples = []
    for group in range(GROUPS):
        places = [divmod(int(cell), GRID[1]) for cell in rng.choice(GRID[0] * GRID[1], EACH + 2, replace=False)]
        boxes = tuple(Box(column, row, column + 1, row + 1) for row, column in places[:EACH])
        for number, (row, column) in enumerate(places):
            there = number < EACH
            if not there and not absent:
                continue
            scores = rng.normal(0, 1, (len(HEADS), GRID[0] * GRID[1])).astype(np.float32)
            before = rng.normal(0, 1, len(HEADS)).astype(np.float32)
            cell = row * GRID[1] + column
            for head, strength in knowing.items():
                if there:
                    scores[HEADS.index(head), cell] += strength
                else:
                    before[HEADS.index(head)] += strength
            after = rng.normal(0, 1, len(HEADS)).astype(np.float32)
            gold = (cell,) if there else ()
            box = boxes[number] if there else None
            samples.append(PictureSample(group, scores, before, after, gold, GRID, box, boxes))
    return samples


KNOWING = {(7, 1): 3.0, (7, 4): 3.0, (11, 0): 3.0}


def test_planted_heads_are_found() -> None:
    chosen = choose(POINT, HEADS, picture_samples(KNOWING), 32)
    assert set(chosen.readout.heads) == set(KNOWING)
    assert chosen.figures.better_than_chance
    assert chosen.figures.right > 0.9
    # Right answers to one scene's questions are right for one in six when these are shuffled.
    assert chosen.figures.chance == pytest.approx(1 / EACH, abs=0.03)
    assert chosen.figures.questions == GROUPS * EACH
    assert len(chosen.figures.folds) == 5
    assert (chosen.figures.absent, chosen.figures.absent_refused) == (0, None)
    assert chosen.readout.prompt == POINT.prompt
    assert chosen.readout.cell == 32


def test_a_layer_that_knows_together_is_found_whole() -> None:
    """As weights are that were trained by the sum: one head alone knows little."""
    knowing = {head: 1.6 for head in HEADS if head[0] == 11}
    chosen = choose(POINT, HEADS, picture_samples(knowing), 32)
    assert set(chosen.readout.heads) == set(knowing)
    assert chosen.readout.combine == "sum"
    assert chosen.figures.right > 0.7


@pytest.mark.parametrize("seed", range(2))
def test_noise_is_no_better_than_chance(seed: int) -> None:
    """Though the best of eighteen heads and many lists is taken, and judged by itself it would look good."""
    figures = choose(POINT, HEADS, picture_samples({}, absent=True, seed=seed), 32).figures
    assert not figures.better_than_chance
    assert figures.right < 0.08


def test_one_place_for_all_questions_is_no_better_than_chance() -> None:
    """A head that always sees the same thing is right for one question in six, without understanding any."""
    samples = picture_samples({})
    for sample in samples:
        box = sample.others[0]
        sample.scores[3, int(box.y0) * GRID[1] + int(box.x0)] += 30
    chosen = choose(POINT, HEADS, samples, 32)
    assert chosen.figures.right == pytest.approx(1 / 6, abs=0.02)
    assert not chosen.figures.better_than_chance


def test_the_key_that_says_nothing_is_found() -> None:
    chosen = choose(POINT, HEADS, picture_samples({(7, 1): 6.0, (7, 4): 6.0}, absent=True), 32)
    assert chosen.readout.nothing == "before"
    assert chosen.figures.absent == GROUPS * 2
    assert chosen.figures.absent_refused is not None
    assert chosen.figures.absent_refused > 0.7
    assert chosen.figures.present_refused is not None
    assert chosen.figures.present_refused < 0.2


def test_a_key_that_says_it_only_where_it_was_chosen_is_left_out() -> None:
    """A list says what is absent exactly where the held-out figures say that it can."""
    figures = Figures(100, 0.9, 0.1, 20.0, (0.9,), 20, 0.6, 0.3)
    assert not figures.tells_absent
    assert replace(figures, absent_refused=0.8).tells_absent
    assert not replace(figures, absent_refused=None, present_refused=None).tells_absent
    samples = picture_samples(KNOWING, absent=True)
    for given in (samples, [replace(sample, before=sample.after) for sample in samples]):
        chosen = choose(POINT, HEADS, given, 32)
        refuses = chosen.readout.nothing is not None or chosen.readout.found_threshold is not None
        assert chosen.figures.tells_absent == refuses


def test_where_no_key_says_it_the_confidence_may() -> None:
    samples = [
        replace(sample, before=sample.before * 0 - 9, after=sample.after * 0 - 9)
        for sample in picture_samples({(7, 1): 7.0, (7, 4): 7.0}, absent=True)
    ]
    chosen = choose(POINT, HEADS, samples, 32)
    assert chosen.readout.nothing is None
    assert chosen.readout.found_threshold is not None
    assert chosen.figures.absent_refused is not None
    assert chosen.figures.absent_refused > 0.7


def text_samples(strength: float, baseline: bool) -> list[TextSample]:
    """Lines of four keys. With a baseline, other heads see a line that stands out whatever is asked."""
    rng = np.random.default_rng(5)
    lengths = (4,) * 15
    samples = []
    for group in range(GROUPS):
        lines = rng.choice(15, 5, replace=False).tolist()
        salient = int(rng.integers(15))
        rest = rng.normal(0, 0.3, (len(HEADS), 60)).astype(np.float32)
        rest[:9, 4 * salient : 4 * salient + 4] += 4
        for line in lines:
            scores = rest + rng.normal(0, 0.3, rest.shape).astype(np.float32)
            scores[2:4, 4 * line : 4 * line + 4] += strength
            gold = tuple(range(4 * line, 4 * line + 4))
            none = np.full(len(HEADS), -9.0, np.float32)
            samples.append(
                TextSample(group, scores, none, none, gold, lengths, line, tuple(lines), rest if baseline else None)
            )
    return samples


def test_a_baseline_takes_away_what_stands_out_anyway() -> None:
    form = Form("vote", "text", ("{text}", "{query}", "?"), ("vote",), "N/A")
    chosen = choose(form, HEADS, text_samples(3.0, baseline=True), None)
    assert chosen.readout.combine == "vote"
    assert set(chosen.readout.heads) <= {HEADS[2], HEADS[3]}
    assert chosen.figures.right > 0.9
    plain = choose(LINE, HEADS, text_samples(3.0, baseline=False), None)
    assert plain.figures.right < 0.5


def test_form_suits_by_its_best_head() -> None:
    assert best_mass(picture_samples(KNOWING)) > 2 * best_mass(picture_samples({}))


def test_peaks_of_whole_rows() -> None:
    scores = np.zeros((3, 12), np.float32)
    scores[0, 0], scores[1, 11], scores[2, 5], scores[2, 6] = 1, 2, 3, 2
    peaks = peaks_of(scores, (3, 4))
    gone = -np.inf
    assert peaks.cells.tolist() == [0, 11, 5]
    assert peaks.scores.tolist() == [[1, gone, 0, gone, 0], [2, 0, gone, 0, gone], [3, 0, 2, 0, 0]]


def test_a_set_is_judged_as_it_answers() -> None:
    """Heads around one corner of a box of several cells, as an extent: its centre is inside."""
    scores = np.full((len(HEADS), 108), -5.0, np.float32)
    for head in range(len(HEADS)):
        row, column = 3 + head % 2, 4 + head % 3
        scores[head, row * 12 + column] = 5.0
    none = np.zeros(len(HEADS), np.float32)
    box = Box(4, 3, 7, 5)
    sample = PictureSample(0, scores, none, none, (40,), GRID, box, (box, Box(0, 0, 1, 1)))
    rows = {head: row for row, head in enumerate(HEADS)}
    readout = Readout("p", "image", POINT.prompt, HEADS, 1.0, "anchor_set", "set_extent", cell=32, anchor=HEADS[0])
    verdict = judge(readout, rows, sample)
    assert verdict.right
    assert verdict.chance == 0.5
    assert verdict.confidence == 1.0


def test_folds_leave_scenes_whole() -> None:
    """With fewer groups than folds there are as many folds as groups."""
    few = [sample for sample in picture_samples(KNOWING) if sample.group < 3]
    chosen: Chosen = choose(POINT, HEADS, few, 32)
    assert len(chosen.figures.folds) == 3
    assert chosen.figures.questions == 3 * EACH
