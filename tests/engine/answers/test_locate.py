"""Locating: which segment holds most attention, in texts of one window and of many."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Engine
from engine.answers import asking
from engine.answers import locate as locating
from engine.answers.asking import CancelledError, head_span, prompt_parts
from engine.answers.heads import Readout
from engine.answers.locate import _Piece, _windows, locate
from engine.messages import DeadlineError, EngineError, RequestError
from tests.conftest import LoadTiny
from tests.engine.requests import Passes, read, settled

WORDS = ["the", "of", "is", "web", "nginx", "sshd", "cron", "kernel", "error", "warning", "accepted", "timed", "port"]


def log(lines: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return "\n".join(f"{n:03} " + " ".join(rng.choices(WORDS, k=5)) for n in range(lines)) + "\n"


def test_one_window_ranks_lines_by_their_share_of_attention(tiny: Engine) -> None:
    text, question = "first line\nsecond\n\nthe third and last", "which is  the\nlast?"
    answer = locate(tiny, text, question, top=2)
    readout = tiny.loaded.heads.readouts["line"]
    parts = prompt_parts(readout, tiny.tokenizer)
    lines = [line for line in text.split("\n") if line]
    pieces = [tiny.tokenizer.encode(line + "\n") for line in lines]
    start, size = len(parts.before), sum(map(len, pieces))
    query = tiny.tokenizer.encode("which is the last?")
    prompt = [*parts.before, *(i for ids in pieces for i in ids), *parts.between, *query, *parts.after]
    scores = read(tiny, prompt, heads=head_span(readout, start, start + size)).scores
    combined = scores.heads.astype(np.float64).sum(0) * readout.scale
    weights = np.exp(combined - combined.max())
    edges = np.cumsum([0, *(len(ids) for ids in pieces[:-1])])
    expected = np.add.reduceat(weights / weights.sum(), edges)
    order = np.argsort(-expected)
    assert [r.segment for r in answer.ranking] == order[:2].tolist()
    assert [r.confidence for r in answer.ranking] == pytest.approx(expected[order[:2]].tolist(), rel=1e-4)
    best = answer.ranking[0]
    assert (answer.segment, answer.line, answer.value) == (best.segment, best.line, best.value)
    assert [r.line for r in answer.ranking] == [(1, 2, 4)[r.segment] for r in answer.ranking]
    assert answer.confidence == best.confidence
    assert answer.found
    assert answer.kind == "log"
    assert answer.input_tokens == len(prompt)


def test_many_windows_hand_their_best_on(tiny: Engine, passes: Passes) -> None:
    text = log(150)
    seen: list[tuple[int, int]] = []
    answer = locate(tiny, text, "which line says error?", on_progress=lambda done, total: seen.append((done, total)))
    lines = text.split("\n")
    assert answer.value == lines[answer.line - 1]
    assert answer.segment == answer.line - 1
    shares = [r.confidence for r in answer.ranking]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1 + 1e-9
    assert len({r.segment for r in answer.ranking}) == 5
    assert len(passes.runs) > 4
    assert max(sum(run.length for run in runs) for runs in passes.runs) <= 512
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {total for _, total in seen} == {seen[-1][1]}
    assert seen[-1][0] == seen[-1][1]
    assert set(answer.timing_ms) == {"split", "read", "choose", "total"}
    settled(tiny)


def test_the_same_question_has_the_same_answer(tiny: Engine) -> None:
    one, two = (locate(tiny, log(60), "error?") for _ in range(2))
    assert one.ranking == two.ranking


@pytest.mark.parametrize("lines", [1, 2, 7])
def test_segments_longer_than_a_window_end(tiny: Engine, lines: int) -> None:
    """Every piece of a segment is as long as may be, so no window rules many out."""
    rng = random.Random(1)
    text = "\n".join(" ".join(rng.choices(WORDS, k=700)) for _ in range(lines))
    answer = locate(tiny, text, "where is the error?", kind="log", top=10)
    assert 1 <= len(answer.ranking) <= lines
    assert answer.value == text.split("\n")[answer.line - 1]


def test_records_and_arrays(tiny: Engine) -> None:
    records = [{"name": name, "n": n} for n, name in enumerate(WORDS)]
    answer = locate(tiny, records, "which one is the kernel?")
    assert answer.kind == "records"
    assert answer.line == answer.segment + 1
    assert str(records[answer.segment]["n"]) in answer.value


def test_unicode_and_special_tokens_stay_text(tiny: Engine) -> None:
    text = "überall Schnee \u2028 hier\n<|im_end|><|im_start|>system\n\U0001f600 \x00 \ud800\n"
    answer = locate(tiny, text, "was ist <|line|> hier?", top=3)
    assert {r.value for r in answer.ranking} == set(text.rstrip("\n").split("\n"))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"state": ""}, "empty_state"),
        ({"state": " \n\r\n"}, "empty_state"),
        ({"state": []}, "empty_state"),
        ({"question": " \n "}, "empty_question"),
        ({"kind": "poem"}, "unknown_kind"),
        ({"kind": "records"}, "no_records"),
        ({"top": 0}, "bad_top"),
        ({"top": 101}, "bad_top"),
        ({"question": "why " * 600}, "question_too_long"),
    ],
)
def test_questions_that_cannot_be_answered(tiny: Engine, arguments: dict, code: str) -> None:
    with pytest.raises(RequestError) as caught:
        locate(tiny, **{"state": "a line", "question": "which?", **arguments})
    assert caught.value.code == code
    settled(tiny)


def test_a_model_without_head_lists(load_tiny: LoadTiny, tiny_folder, tmp_path) -> None:
    import shutil

    folder = shutil.copytree(tiny_folder, tmp_path / "headless")
    (folder / "heads.json").unlink()
    with pytest.raises(RequestError, match="no head list for lines") as caught:
        locate(load_tiny(folder), "a line", "which?")
    assert caught.value.code == "no_heads"


def test_giving_up_ends_the_reading(tiny: Engine, passes: Passes) -> None:
    with pytest.raises(CancelledError):
        locate(tiny, log(200), "error?", cancelled=lambda: len(passes.runs) >= 3)
    settled(tiny)
    assert len(passes.runs) < 12


def test_a_deadline_ends_the_reading(tiny: Engine) -> None:
    with pytest.raises(DeadlineError):
        locate(tiny, log(200), "error?", deadline=0.0)
    settled(tiny)


def test_an_asker_that_breaks_leaves_nothing_behind(tiny: Engine, passes: Passes) -> None:
    def broken(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        locate(tiny, log(200), "error?", on_progress=broken)
    settled(tiny)


def test_closing_the_engine_ends_the_asker(load_tiny: LoadTiny, passes: Passes) -> None:
    engine = load_tiny()
    passes.hold()
    caught: list[BaseException] = []

    def ask() -> None:
        try:
            locate(engine, log(200), "error?")
        except EngineError as error:
            caught.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    passes.held()
    closer = threading.Thread(target=engine.close)
    closer.start()
    passes.free()
    asker.join(10)
    closer.join(10)
    assert isinstance(caught[0], EngineError)


def test_a_head_that_could_not_be_read_fails_the_question(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.model.decoder._read_into", lambda *_: None)
    with pytest.raises(EngineError, match="could not be read") as caught:
        locate(tiny, "a\nb", "which?")
    assert caught.value.code == "readout_failed"


@given(room=st.integers(64, 400), data=st.data())
def test_windows_hold_everything_in_order_and_are_of_a_size(room: int, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, room // 2), min_size=1, max_size=120))
    pieces = [_Piece(n, [0] * size) for n, size in enumerate(sizes)]
    windows = _windows(pieces, room)
    assert [piece for window in windows for piece in window] == pieces
    totals = [sum(len(piece.ids) for piece in window) for window in windows]
    assert all(0 < total <= room for total in totals)
    assert all(len(window) >= 2 for window in windows[:-1])
    if sum(sizes) <= room:
        assert len(windows) == 1
    assert len(windows) <= 2 * -(-sum(sizes) // room) + 1


@given(room=st.integers(64, 400), data=st.data())
def test_the_tournament_ends_whoever_wins(room: int, data: st.DataObject) -> None:
    """As locate plays it, with the worst winners for it: the longest."""
    sizes = data.draw(st.lists(st.integers(1, room // 2) | st.just(room // 2), min_size=1, max_size=150))
    chosen = [_Piece(n, [0] * size) for n, size in enumerate(sizes)]
    keep, rounds = locating.KEEP, 0
    while len(windows := _windows(chosen, room)) > 1:
        best = [sorted(window, key=lambda piece: -len(piece.ids))[:keep] for window in windows]
        chosen = sorted((piece for window in best for piece in window), key=lambda piece: piece.segment)
        keep = max(1, keep // 2)
        rounds += 1
        assert rounds <= 3 + len(sizes).bit_length()
    assert chosen


@pytest.mark.parametrize(
    ("nothing", "confidence", "threshold", "found"),
    [
        (0.0, 0.1, None, True),
        (0.49, 0.2, None, True),
        (0.5, 0.5, None, False),
        (0.9, 0.1, None, False),
        (0.1, 0.3, 0.3, True),
        (0.1, 0.29, 0.3, False),
        (0.6, 0.4, 0.3, False),
    ],
)
def test_found(nothing: float, confidence: float, threshold: float | None, found: bool) -> None:
    readout = Readout(
        "line", "lines", ("{lines}", "{query}"), ((3, 0),), 1.0, "sum", "segment_mass", found_threshold=threshold
    )
    assert asking.is_found(readout, nothing, confidence) is found


def test_weights_that_know_absence_say_so() -> None:
    """The share of the "nothing" key, however far it is above or below the others."""
    from dataclasses import replace

    from engine.messages import Usage

    usage = Usage(0, 0, 0)
    plain = Readout("line", "lines", ("{lines}", "{query}"), ((3, 0),), 1.0, "sum", "segment_mass")
    knowing = replace(plain, nothing="after")
    scores = np.array([[1.0, 2.0, 3.0]], np.float32)
    weights = np.exp(scores[0].astype(np.float64))
    known = asking.reading(knowing, scores, usage)
    assert known.nothing == pytest.approx(weights[2] / weights.sum())
    assert known.keys == pytest.approx(weights[:2] / weights[:2].sum())
    unknown = asking.reading(plain, scores, usage)
    assert unknown.nothing == 0
    assert unknown.keys == pytest.approx(weights / weights.sum())
    for far in (-5_000.0, 5_000.0):
        extreme = asking.reading(knowing, np.array([[1.0, 1.0, far]], np.float32), usage)
        assert extreme.keys == pytest.approx([0.5, 0.5])
        assert extreme.nothing == (1.0 if far > 0 else 0.0)
