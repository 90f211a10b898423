"""Heads' scores as evidence for segments, against the formulas written out plainly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Engine
from engine.answers.asking import head_span, prompt_parts
from engine.answers.heads import HeadLists
from engine.answers.locate import locate
from engine.answers.locate.combine import Evidence, evidence
from engine.answers.locate.readouts import readout_for
from engine.answers.readouts import Combine, Readout
from engine.messages import EngineError, RequestError
from tests.engine.requests import read

HEADS = ((3, 0), (3, 1), (7, 2))
LIST = Readout("x", "text", ("{text}", "{query}", "?"), HEADS, 1.0, "vote", "segment_vote", baseline="N/A")


def masses(scores: np.ndarray, lengths: list[int], *, end: bool) -> np.ndarray:
    """Share of attention of each segment, of its end alone for an ``end`` list: key by key, without numpy's tricks."""
    out = np.zeros((len(scores), len(lengths)))
    for h, row in enumerate(scores.astype(np.float64)):
        shares = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        at = 0
        for s, length in enumerate(lengths):
            keys = range(at, at + length)
            if end:
                keys = [k for k in (at + length - 2, at + length - 1, at + length) if at <= k < len(row)]
            out[h, s] = sum(shares[k] for k in keys)
            at += length
    return out


def expected(combine: Combine, scores: np.ndarray, baseline: np.ndarray, lengths: list[int]) -> np.ndarray:
    """Votes, or lifts standardised per head and averaged."""
    end = combine == "end"
    lifts = masses(scores, lengths, end=end) - masses(baseline, lengths, end=end)
    if combine == "vote":
        votes = np.zeros(len(lengths))
        for row in lifts:
            votes[int(np.argmax(row))] += 1 / len(lifts)
        return votes
    return np.mean([(row - row.mean()) / row.std() for row in lifts], axis=0)


@pytest.mark.parametrize("combine", ["vote", "sum", "end"])
@given(data=st.data())
def test_lifts_over_the_baseline(combine: Combine, data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=8))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    scores, baseline = rng.normal(0, 3, (2, 5, sum(lengths))).astype(np.float32)
    found = evidence(replace(LIST, combine=combine), scores, baseline, lengths)
    wanted = expected(combine, scores, baseline, lengths)
    if combine == "vote":
        np.testing.assert_allclose(found.shares, wanted, atol=1e-12)
        assert np.all(np.abs(found.segments - wanted) <= 0.25 / len(scores) + 1e-9)  # lifts rank among equals only
    else:
        np.testing.assert_allclose(found.segments, wanted, rtol=1e-6, atol=1e-9)
    assert found.shares.sum() == pytest.approx(1)
    assert found.nothing == 0


def test_what_the_baseline_likes_too_is_no_answer() -> None:
    """A line that heads look at whatever is asked loses to one that only this question lifts."""
    baseline = np.zeros((2, 6), np.float32)
    baseline[:, 0] = 4
    scores = baseline.copy()
    scores[:, 3] = 2
    for combine in ("vote", "sum"):
        found = evidence(replace(LIST, combine=combine), scores, baseline, [2, 2, 2])
        assert int(found.segments.argmax()) == 1
    alone = evidence(replace(LIST, combine="vote", baseline=None), scores, None, [2, 2, 2])
    assert int(alone.segments.argmax()) == 0


def test_one_segment_and_equal_heads_say_nothing() -> None:
    flat = np.zeros((2, 4), np.float32)
    for combine in ("vote", "sum", "end"):
        found: Evidence = evidence(replace(LIST, combine=combine), flat, flat, [2, 2])
        assert np.isfinite(found.segments).all()
        assert np.isfinite(evidence(replace(LIST, combine=combine), flat, flat, [4]).standard).all()


def test_a_score_that_is_no_number_fails() -> None:
    bad = np.full((2, 4), np.nan, np.float32)
    for scores, baseline in ((bad, None), (np.zeros_like(bad), bad)):
        with pytest.raises(EngineError, match="could not be read"):
            evidence(LIST, scores, baseline, [2, 2])


def with_lists(engine: Engine, monkeypatch: pytest.MonkeyPatch, **lists: Readout) -> None:
    line = next(iter(engine.loaded.heads.readouts.values()))
    made = {
        name: replace(
            line, name=name, over="text", prompt=("{text}", "\n", "{query}", "\n"), combine=given.combine,
            baseline=given.baseline, fallback=given.fallback, words=given.words, choose=given.choose,
        )
        for name, given in lists.items()
    }  # fmt: skip
    loaded = replace(engine.loaded, heads=HeadLists("tiny", None, "", made))
    monkeypatch.setattr(Engine, "loaded", property(lambda _: loaded))


@pytest.mark.parametrize("combine", ["vote", "sum", "end"])
def test_lists_with_a_baseline_read_as_a_dense_pass_does(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch, combine: Combine
) -> None:
    """Through kept state and two forks of it, against two whole prompts and the formula."""
    with_lists(tiny, monkeypatch, **{combine: replace(LIST, combine=combine, words=0.0)})
    lines = ["the web of nginx", "a kernel error", "port is timed", "cron warning accepted"]
    answer = locate(tiny, "\n".join(lines), "kernel?", kind="prose", top=4)
    readout = tiny.loaded.heads.readouts[combine]
    parts = prompt_parts(readout, tiny.tokenizer)
    pieces = [tiny.tokenizer.encode(line + "\n") for line in lines]
    keys = sum(map(len, pieces))
    scores = []
    for query in ("kernel?", "N/A"):
        ids = [*(i for piece in pieces for i in piece), *parts.between, *tiny.tokenizer.encode(query), *parts.after]
        scores.append(read(tiny, ids, heads=head_span(readout, 0, keys)).scores.heads * readout.scale)
    wanted = expected(combine, scores[0], scores[1], [len(piece) for piece in pieces])
    found = [next(r.confidence for r in answer.ranking if r.segment == n) for n in range(4)]
    if combine == "vote":
        assert wanted[answer.segment] == wanted.max()
    else:
        total = (wanted - wanted.mean()) / wanted.std()
        assert found == pytest.approx((np.exp(total) / np.exp(total).sum()).tolist(), rel=1e-2)


def test_a_list_that_is_incomplete_says_what_stands_in(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with_lists(
        tiny,
        monkeypatch,
        end=replace(LIST, combine="end", fallback="vote"),
        vote=LIST,
        sum=replace(LIST, combine="sum"),
    )
    assert tiny.loaded.heads.locates
    assert readout_for(tiny, "log")[0].name == "vote"
    assert readout_for(tiny, "prose") == (tiny.loaded.heads.readouts["sum"], "")
    answer = locate(tiny, "one job done\ntwo jobs lost\n", "lost?", kind="log")
    assert "'vote'" in answer.note
    assert "'end'" in answer.note
    with_lists(tiny, monkeypatch)
    assert not tiny.loaded.heads.locates
    with pytest.raises(RequestError, match="no head list"):
        readout_for(tiny, "log")


def test_labels_choose_where_the_list_says_so(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with_lists(tiny, monkeypatch, vote=replace(LIST, choose="labels"))
    answer = locate(tiny, "one job done\ntwo jobs lost\nthree files kept\n", "lost?", kind="log", top=3)
    assert {r.line for r in answer.ranking} == {1, 2, 3}
    shares = [r.confidence for r in answer.ranking]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) < 1  # the rest is that none answers
