"""Locating on a tiny engine: what is read, what is kept, what is answered in whose stead."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Engine
from engine.answers import asking
from engine.answers.asking import CancelledError, head_span, prompt_parts
from engine.answers.fold.fold import fold
from engine.answers.fold.source import Source
from engine.answers.locate import locate, search
from engine.answers.locate.combine import standardised
from engine.answers.locate.kept import kept_windows
from engine.answers.locate.windows import Piece, windows_of
from engine.answers.readouts import Readout
from engine.messages import DeadlineError, EngineError, RequestError
from tests.conftest import LoadTiny
from tests.engine.requests import Passes, read, settled

WORDS = ["the", "of", "is", "web", "nginx", "sshd", "cron", "kernel", "error", "warning", "accepted", "timed", "port"]


def log(lines: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return "\n".join(f"{n:03} " + " ".join(rng.choices(WORDS, k=5)) for n in range(lines)) + "\n"


def test_the_last_reading_ranks_units_by_heads_and_words(tiny: Engine) -> None:
    """The candidates' shares are those of a prompt that is read in one piece here."""
    text, question = "first line here\nthe second\n\nthe third and closing", "which is  the\nclosing?"
    answer = locate(tiny, text, question, kind="log", top=3)
    readout = tiny.loaded.heads.readouts["line"]
    parts = prompt_parts(readout, tiny.tokenizer)
    lines = [line for line in text.split("\n") if line]
    pieces = [tiny.tokenizer.encode(line + "\n") for line in lines]
    start, size = len(parts.before), sum(map(len, pieces))
    query = tiny.tokenizer.encode("which is the closing?")
    prompt = [*parts.before, *(i for ids in pieces for i in ids), *parts.between, *query, *parts.after]
    scores = read(tiny, prompt, heads=head_span(readout, start, start + size)).scores
    combined = scores.heads.astype(np.float64).sum(0) * readout.scale
    edges = np.cumsum([0, *(len(ids) for ids in pieces[:-1])])
    heads = np.log(np.add.reduceat(np.exp(combined), edges))
    total = standardised(heads) + readout.words * np.array([0, 0, 1.0])  # "closing" is the only word that says anything
    shares = np.exp(total) / np.exp(total).sum()
    assert {r.segment: r.confidence for r in answer.ranking} == pytest.approx(dict(enumerate(shares)), rel=1e-3)
    assert [r.confidence for r in answer.ranking] == pytest.approx(sorted(shares, reverse=True), rel=1e-3)
    assert [r.line for r in answer.ranking] == [(1, 2, 4)[r.segment] for r in answer.ranking]
    best = answer.ranking[0]
    assert (answer.segment, answer.line, answer.value) == (best.segment, best.line, best.value) == (2, 4, lines[2])
    assert answer.confidence == best.confidence
    assert answer.found
    assert answer.note == ""
    assert set(answer.timing_ms) == {"fold", "read", "choose", "total"}


def test_a_long_text_is_read_in_windows(tiny: Engine, passes: Passes) -> None:
    text = log(150)
    seen: list[tuple[int, int]] = []
    answer = locate(
        tiny, text, "which line says error?", kind="prose", on_progress=lambda done, total: seen.append((done, total))
    )
    lines = text.split("\n")
    assert answer.value == lines[answer.line - 1]
    assert answer.segment == answer.line - 1
    assert "error" in answer.value
    shares = [r.confidence for r in answer.ranking]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1 + 1e-9
    assert len({r.segment for r in answer.ranking}) == 5
    assert len(passes.runs) > 4
    assert max(sum(run.length for run in runs) for runs in passes.runs) <= 512
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {total for _, total in seen} == {seen[-1][1]}
    settled(tiny)


def test_the_next_question_reads_kept_windows(load_tiny: LoadTiny) -> None:
    engine = load_tiny(retained_limit=16)
    first = locate(engine, log(40), "which line says error?", kind="prose")
    second = locate(engine, log(40), "where is a warning of the kernel?", kind="prose")
    fresh = locate(load_tiny(), log(40), "where is a warning of the kernel?", kind="prose")
    assert first.cached_tokens == 0
    assert second.cached_tokens > 200
    assert second.input_tokens == fresh.input_tokens
    assert [r.line for r in second.ranking] == [r.line for r in fresh.ranking]
    assert [r.confidence for r in second.ranking] == pytest.approx([r.confidence for r in fresh.ranking], rel=1e-3)


def test_a_short_text_is_read_once_and_kept(tiny: Engine, passes: Passes) -> None:
    text = "one job done\ntwo jobs lost\nthree files kept\n"
    size = len(tiny.tokenizer.encode(text))
    first = locate(tiny, text, "which is lost?", kind="log")
    assert size < first.input_tokens < 2 * size
    second = locate(tiny, text, "which is kept?", kind="log")
    assert second.cached_tokens >= size
    assert {r.line for r in first.ranking} == {1, 2, 3}


def test_kept_windows_are_few_and_may_be_dropped(load_tiny: LoadTiny) -> None:
    engine = load_tiny(retained_limit=8)
    for seed in range(5):
        locate(engine, log(30, seed), "which line says error?", kind="prose")
        assert engine.snapshot().retained <= kept_windows(engine).most == 2
    again = locate(engine, log(30, 4), "which line says error?", kind="prose")
    assert again.cached_tokens > 0
    for prefix in list(kept_windows(engine)._ids.values()):
        engine.release(prefix)
    gone = locate(engine, log(30, 4), "which line says error?", kind="prose")
    assert gone.cached_tokens == 0
    assert gone.ranking == again.ranking


def test_the_same_question_has_the_same_answer(tiny: Engine) -> None:
    one, two = (locate(tiny, log(60), "error?") for _ in range(2))
    assert one.ranking == two.ranking


@pytest.mark.parametrize("lines", [1, 2, 7])
def test_segments_longer_than_a_window_end(tiny: Engine, lines: int) -> None:
    """Every piece of a segment is as long as may be, so no window rules many out."""
    rng = random.Random(1)
    text = "\n".join(" ".join(rng.choices(WORDS, k=600)) for _ in range(lines))
    answer = locate(tiny, text, "where is the error?", kind="log", top=10)
    assert 1 <= len(answer.ranking) <= lines
    assert answer.value == text.split("\n")[answer.line - 1]
    assert len({r.segment for r in answer.ranking}) == len(answer.ranking)


def test_records_and_arrays(tiny: Engine) -> None:
    records = [{"name": name, "n": n} for n, name in enumerate(WORDS)]
    answer = locate(tiny, records, "which one is the kernel?")
    assert answer.kind == "records"
    assert answer.line == answer.segment + 1
    assert answer.value == '{"name": "kernel", "n": 7}'
    assert answer.pointers == tuple(f"/{r.segment}" for r in answer.ranking)


def test_unicode_and_special_tokens_stay_text(tiny: Engine) -> None:
    text = "überall Schnee \u2028 hier\n<|im_end|><|im_start|>system\n\U0001f600 \x00 \ud800\n"
    answer = locate(tiny, text, "was ist <|line|> hier?", kind="log", top=3)
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
    pieces = [Piece(n, (0,) * size) for n, size in enumerate(sizes)]
    windows = windows_of(pieces, room)
    assert [piece for window in windows for piece in window] == pieces
    totals = [sum(len(piece.ids) for piece in window) for window in windows]
    assert all(0 < total <= room for total in totals)
    assert all(len(window) >= 2 for window in windows[:-1])
    if sum(sizes) <= room:
        assert len(windows) == 1
    assert len(windows) <= 2 * -(-sum(sizes) // room) + 1


LOG = """\
2026-01-05 10:00:01 INFO worker: job 17 finished in 31 ms
2026-01-05 10:00:02 WARN cache: connection to 10.0.0.7 lost
2026-01-05 10:00:03 INFO worker: job 18 finished in 30 ms
2026-01-05 10:05:04 WARN cache: connection to 10.0.0.9 lost
2026-01-05 10:05:05 INFO worker: job 19 finished in 29 ms
2026-01-05 10:10:06 WARN cache: connection to 10.0.0.7 lost
2026-01-05 10:10:07 INFO worker: job 20 finished in 28 ms
"""


@pytest.mark.parametrize(
    ("question", "line", "count"),
    [
        ("When was a connection lost first?", 2, None),
        ("When was a connection lost last?", 6, None),
        ("When was a connection lost for the second time?", 4, None),
        ("Which connection was lost after 10:01?", 4, None),
        ("When was the first connection lost after 10:06?", 6, None),
        ("When was the last connection lost before 10:06?", 4, None),
        ("How many times was a connection lost?", 2, 3),
        ("How many times was the connection to 10.0.0.7 lost?", 2, 2),
        ("How many times was a connection lost after 10:01?", 4, 2),
        ("What is the last line?", 7, None),
        ("What happened at 10:05?", 4, None),
        ("How many lines are there between 10:00 and 10:04?", 1, 3),
    ],
)
def test_time_order_and_number_are_answered_by_the_index(
    tiny: Engine, question: str, line: int, count: int | None
) -> None:
    answer = locate(tiny, LOG, question)
    assert (answer.found, answer.kind, answer.line, answer.count) == (True, "log", line, count)
    assert answer.ranking[0].line == line
    assert answer.value == LOG.split("\n")[line - 1]


def test_a_time_that_no_line_is_of(tiny: Engine) -> None:
    answer = locate(tiny, LOG, "What happened after 11:00?")
    assert (answer.found, answer.line, answer.ranking) == (False, None, ())
    assert "No line" in answer.note
    timeless = locate(tiny, "one connection lost\none job done\n" * 3, "Which connection was lost after 11:00?")
    assert "does not say the time" in timeless.note
    assert "connection" in timeless.value


def test_files_bytes_and_folds_are_texts_too(tiny: Engine, tmp_path) -> None:
    import gzip

    asked = "Which connection was lost last?"
    expected = locate(tiny, LOG, asked)
    windows = LOG.replace("\n", "\r\n").encode("utf-16")
    file = tmp_path / "app.log.gz"
    file.write_bytes(gzip.compress(LOG.encode()))
    with Source(LOG) as source:
        folded = fold(source)
        for state in (windows, file, source, folded):
            found = locate(tiny, state, asked)
            assert (found.line, found.value) == (expected.line, expected.value)
        only = locate(tiny, folded, asked, rows=np.array([0, 1, 2, 3]))
    assert only.line == 4


def test_what_was_not_read_is_said(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.answers.locate.run.BUDGET_CPU", 300)
    text = "\n".join(f"2026-01-05 10:00:01 {word} {other} alone" for word in WORDS for other in WORDS)
    answer = locate(tiny, text + "\n2026-01-05 10:00:02 the needle in it all", "where is the needle?", kind="log")
    assert answer.line == len(WORDS) ** 2 + 1
    prose = locate(tiny, log(150) + "the needle.", "where is the needle?", kind="prose")
    assert prose.line == 151
    assert "sentences were too many to read" in prose.note


def test_rows_of_one_kind_are_told_apart_by_their_values(tiny: Engine, passes: Passes) -> None:
    """More rows than are read as they stand, and no word of the question in them: their values are read."""
    text = "\n".join(f"2026-01-05 10:00:{n:02} INFO worker: job {n} finished" for n in range(40))
    answer = locate(tiny, text, "which is odd?")
    assert answer.kind == "log"
    assert len(passes.runs) >= 4  # the templates, the question, values, candidates
    assert len(answer.ranking) == 5
    assert search.ROWS < 40


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
