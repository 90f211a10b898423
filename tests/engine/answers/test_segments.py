"""What kind of text a text is, and its segments; line numbers are those of the text as given."""

from __future__ import annotations

import json
import random
import re
import time
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers.fold.source import Source
from engine.answers.locate.opening import corpus_of
from engine.answers.segments import Segment, sentences_of
from engine.messages import RequestError

PROSE = (
    "The keeper climbed the stairs before dawn, as he had done every day since the autumn storms took the old lamp. "
    'He trimmed the wick, and wrote: "Fog from the north-west." Nobody had asked for it. '
    "Ships passed at 3.5 knots, give or take; none of them answered!"
)


def segments_of(state: object, kind: str = "auto", within: str = "") -> tuple[str, list[Segment]]:
    """The kind that was found, and all that can be an answer, in order."""
    with ExitStack() as opened:
        corpus = corpus_of(opened, state, kind, within, lambda *_: None)
        units = [unit for unit in range(corpus.units) if corpus.kind == "records" or corpus.shown(unit).strip()]
        ranked = list({rank.segment: rank for unit in units if (rank := corpus.ranked(unit, 0.0))}.values())
        assert [rank.segment for rank in ranked] == list(range(len(ranked)))
        return corpus.kind, [Segment(rank.line, rank.value) for rank in ranked]


def lines(text: str) -> list[tuple[int, str]]:
    """Line numbers as an editor shows them."""
    return [(n, line) for n, line in enumerate(re.split("\r\n|\r|\n", text), 1) if line.strip(" \t")]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_line_numbers_count_blank_lines(newline: str) -> None:
    text = newline.join(["", "first", "", "   ", "second  ", "\tthird", ""])
    assert segments_of(text, "log") == ("log", [Segment(2, "first"), Segment(5, "second  "), Segment(6, "\tthird")])


def test_other_separators_do_not_end_a_line() -> None:
    """Python's splitlines cuts at these; editors and grep do not."""
    text = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\nnext"
    assert segments_of(text, "log")[1] == [Segment(1, text.removesuffix("\nnext")), Segment(2, "next")]


@given(st.text(alphabet=st.sampled_from("ab \t.!?\"')1\u2028é"), max_size=300))
def test_sentences_lose_nothing_but_space(text: str) -> None:
    text = text.replace("1", "\n")
    with Source(text) as source:
        found = sentences_of(source)
    assert [s.line for s in found] == sorted(s.line for s in found)
    assert "".join("".join(s.value.split()) for s in found) == "".join(text.split())


def test_sentences_end_where_a_reader_ends_them() -> None:
    kind, found = segments_of("Title\n\n" + PROSE, "prose")
    assert kind == "prose"
    assert [(s.line, s.value[:24]) for s in found] == [
        (1, "Title"),
        (3, "The keeper climbed the s"),
        (3, "He trimmed the wick, and"),
        (3, "Nobody had asked for it."),
        (3, "Ships passed at 3.5 knot"),
    ]
    assert found[2].value.endswith('"Fog from the north-west."')


def test_sentences_go_on_over_lines_that_were_broken_to_a_width() -> None:
    words, broken = PROSE.split(), [""]
    for word in words:
        if len(broken[-1]) + len(word) > 70:
            broken.append("")
        broken[-1] = f"{broken[-1]} {word}".strip()
    text = "CHAPTER I\nThe lamp\n\n" + "\n".join(broken)
    found = segments_of(text, "prose")[1]
    whole = segments_of("CHAPTER I\nThe lamp\n\n" + PROSE, "prose")[1]
    assert [s.value for s in found] == [s.value for s in whole]
    for segment in found:
        assert segment.value.split()[0] in text.split("\n")[segment.line - 1]
    assert len({s.line for s in found[2:]}) > 2


def test_one_sentence_a_line_stays_so() -> None:
    text = "\n".join(f"Short statement number {n} without an end" for n in range(30))
    assert [(s.line, s.value) for s in segments_of(text, "prose")[1]] == lines(text)


def test_auto_tells_prose_from_logs() -> None:
    paragraphs = f"{PROSE}\n\nFor a week nothing came by. Then the wind turned, and with it his luck.\nAnother day."
    assert segments_of(paragraphs)[0] == "prose"
    log = "\n".join(f"Nov 30 10:{n:02}:01 web sshd[{n}]: Accepted publickey for deploy" for n in range(40))
    assert segments_of(log)[0] == "log"
    assert segments_of(log + "\n" + PROSE)[0] == "log"  # one long line makes no prose
    stamped = "\n".join(f"2026-01-05 10:00:0{n} {word * (n + 1)}" for n, word in enumerate(["a ", "b, ", "c. "]))
    assert segments_of(stamped)[0] == "log"  # no two of a kind, but all with a time
    assert segments_of(PROSE, "log") == ("log", [Segment(1, PROSE)])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_a_json_array_gives_records_with_their_lines(newline: str) -> None:
    records = [{"id": n, "name": f"läuft {n}", "tags": ["a", {"b": None}]} for n in range(4)]
    pretty = json.dumps(records, indent=2, ensure_ascii=False).replace("\n", newline)
    kind, found = segments_of(newline * 2 + pretty + newline, "auto")
    assert kind == "records"
    all_lines = (newline * 2 + pretty).split(newline)
    for segment, record in zip(found, records, strict=True):
        assert all_lines[segment.line - 1].strip() == "{"
        assert json.loads(segment.value) == record
        assert "\n" not in segment.value
        assert "\r" not in segment.value
    assert [s.line for s in found] == [4 + 10 * n for n in range(4)]


def test_records_keep_how_numbers_and_keys_are_written() -> None:
    text = '[{"b": 1.50, "a": 1e3},{"b":007e0}]'.replace("007e0", "7e0")
    assert [s.value for s in segments_of(text, "auto")[1]] == ['{"b": 1.50, "a": 1e3}', '{"b":7e0}']


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1}, {"a": 2}] and then the log goes on\nsecond line',
        '[{"a": 1}, {"a": 2}',
        '[{"a": 1} {"a": 2}]',
        '[{"a": 1}, {"a": 2},]',
        '[{"a": 1}, 2]',
        '[{"a": 1}]',
        "[]",
        "[" * 50_000,
        '[{"a": ' + "[" * 50_000,
        "[error] something\n[warn] else",
    ],
    ids=lambda text: text[:24],
)
def test_what_only_begins_like_an_array_is_read_as_lines(text: str) -> None:
    """Nothing of the text may be lost."""
    kind, found = segments_of(text, "auto")
    assert kind != "records"
    assert "".join("".join(s.value.split()) for s in found) == "".join(text.split())
    assert segments_of(text, "log")[1][0].line == 1


def test_numbers_of_any_length_are_records_too() -> None:
    assert segments_of('[{"a": 1}, {"a": ' + "9" * 5_000 + "}]")[1][1].value == '{"a": ' + "9" * 5_000 + "}"


def test_json_lines_are_records() -> None:
    text = '{"a": 1}\n\n {"a": 2} \n{"a": 3}'
    expected = [Segment(1, '{"a": 1}'), Segment(3, '{"a": 2}'), Segment(4, '{"a": 3}')]
    assert segments_of(text, "auto") == segments_of(text, "records") == ("records", expected)


def test_records_asked_of_a_text_that_has_none() -> None:
    with pytest.raises(RequestError, match="no records") as caught:
        segments_of("a plain line\n{}", "records")
    assert caught.value.code == "no_records"


def test_an_array_that_came_as_one() -> None:
    """Each element is a record, its place in the array is its line: nothing is left out."""
    state = [{"a": 1}, "text as it is", ["x", 2.5], None, "", {"ü": "\n"}]
    kind, found = segments_of(state, "auto")
    assert kind == "records"
    assert [s.line for s in found] == [1, 2, 3, 4, 5, 6]
    assert [s.value for s in found] == ['{"a": 1}', "text as it is", '["x", 2.5]', "null", "", '{"ü": "\\n"}']


def test_an_unknown_kind() -> None:
    with pytest.raises(RequestError, match="auto, log, prose, records") as caught:
        segments_of("text", "poem")
    assert caught.value.param == "kind"


@pytest.mark.parametrize("text", ["", "\n\n", " \t\r\n ", "\ufeff\n", b"", b"\xff\xfe"])
def test_nothing_but_space(text: str | bytes) -> None:
    for kind in ("auto", "log", "prose"):
        with pytest.raises(RequestError) as caught:
            segments_of(text, kind)
        assert caught.value.code == "empty_state"


@pytest.mark.parametrize(
    "text",
    [
        "." * 300_000,
        ".a" * 150_000,
        '."' * 150_000,
        "word " * 60_000,
        "?!" * 100_000 + " end",
        "x" * 1_000_000,
        "[" + ",".join(f'{{"n": {n}}}' for n in range(30_000)) + "]",
        "\n".join(f"line {n}" for n in range(100_000)),
    ],
    ids=lambda text: f"{text[:6]!r}",
)
def test_large_and_odd_texts_take_linear_time(text: str) -> None:
    for kind in ("auto", "prose"):
        began = time.process_time()
        assert segments_of(text, kind)[1]
        assert time.process_time() - began < 20.0  # quadratic time would be minutes


def test_a_real_log_keeps_every_line() -> None:
    rng = random.Random(0)
    text = "\n".join("".join(rng.choices("abc [](){}:.0123456789", k=rng.randint(0, 80))) for _ in range(2_000))
    assert [(s.line, s.value) for s in segments_of(text, "log")[1]] == lines(text)
