"""Which segments hold a question's words."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers.fold.source import Source
from engine.answers.locate.forms import terms_of
from engine.answers.locate.lexical import LENGTH_SHARE, OTHERS_WITHIN, SATURATION, blocks_of, match, run_of


def held(question: str, *texts: str) -> list[float]:
    return match(blocks_of(texts), len(texts), question).held.tolist()


def stems(question: str) -> list[bytes]:
    return [term.forms[-1].stem for term in terms_of(question)]


def test_scores_are_those_of_bm25() -> None:
    texts = ["alpha beta", "alpha alpha gamma delta epsilon", "beta", "zeta eta theta"]
    lengths = [len(text) + 1 for text in texts]
    average = sum(lengths) / 4
    found = match(blocks_of(texts), 4, "alpha beta")
    for text, length, score in zip(texts, lengths, found.scores, strict=True):
        expected = 0.0
        for word in ("alpha", "beta"):
            count = sum(word in other.split() for other in texts)
            weight = math.log(1 + (4 - count + 0.5) / (count + 0.5))
            spread = 1 - LENGTH_SHARE + LENGTH_SHARE * length / average
            expected += (word in text.split()) * weight * (SATURATION + 1) / (1 + SATURATION * spread)
        assert score == pytest.approx(expected, rel=1e-5)
    assert found.held[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("question", "text", "there"),
    [
        ("rejected connections", "the server rejects a connection", True),
        ("signal 9", "terminated by signal 9: killed", True),
        ("signal 9", "terminated at 19:09", False),
        ("customers_email_key", 'constraint "customers_email_key"', True),
        ("key", "keyboard", False),
        ("form", "formidable", False),
        ("connections", "one connection", True),
        ("connect", "no connections left", True),
        ("authentication failures", "failed to authenticate", True),
        ("denied", "rules that deny it", True),
        ("deny", "denials of the rules; density", True),
        ("deny", "density", False),
        ("ready", "it was read", False),
        ("stopped", "told to stop", True),
        ("relay", "relays it", True),
        ("command", "CRON[7]: (root) CMD (true)", True),
        ("cmd", "the command was run", True),
        ("messages", "msg=1", True),
        ("timeout", "it timed out", True),
        ("timed out", "read timeout", True),
        ("logged in", "login of root", True),
        ("shutdown", "shutting down", True),
        ("timeout", "the time is out", False),
        ("Größe", "die GRÖSSE und größe", True),
        ("GET", "GET /index.html", True),
        ("10.0.0.7", "from 10.0.0.7 port", True),
    ],
)
def test_what_counts_as_a_word(question: str, text: str, there: bool) -> None:
    assert (held(question, text, "nothing of it")[0] > 0.9) is there
    assert held(question, text, "nothing of it")[1] == 0


def test_common_words_count_only_where_there_are_no_others() -> None:
    assert stems("Which line says that the disk is full?") == [b"disk", b"full"]
    assert stems("what is it") == [b"what", b"is", b"it"]
    assert terms_of("?!") == []
    assert held("?!", "a", "b") == [0, 0]


def test_names_say_more_than_words() -> None:
    texts = ["node7 halts", "a motor runs", "an engine", "node8 starts"]
    scores = match(blocks_of(texts), 4, "Where is the motor of node7?").scores
    assert scores[0] > scores[1] > 0


def test_other_words_count_less() -> None:
    texts = ["the guest was denied", "the guest was refused", "the guest was served", "nothing"]
    first, second, third, _ = held("Who was refused?", *texts)
    assert second > first > third == 0
    long = [*texts, *(["nothing"] * OTHERS_WITHIN)]
    assert held("Who was refused?", *long)[0] == 0  # of a long text only the question's own words are searched


def test_the_shortest_run_of_words() -> None:
    row = b"user asked: Access denied for user 'web' (denied)"
    start, end, count = run_of(row, "Was access denied for the user web?")
    assert (row[start:end], count) == (b"Access denied for user 'web", 4)
    assert run_of(b"nothing of it", "signal") == (0, 0, 0)


@given(st.lists(st.text(alphabet="ab é\u2028\n.1", max_size=12), min_size=1, max_size=30), st.text("ab é1", max_size=8))
def test_every_segment_has_its_own_score(texts: list[str], question: str) -> None:
    found = match(blocks_of(texts), len(texts), question)
    for text, share in zip(texts, found.held, strict=True):
        words = re.findall(r"[^\W_]+", text)
        if share > 0:
            assert any(word.lower().startswith(stem.decode()) for stem in stems(question) for word in words)


def test_blocks_of_a_long_text_are_one(tmp_path) -> None:
    lines = [f"row {n} of many" if n != 20_000 else "the needle" for n in range(40_000)]
    with Source("\n".join(lines)) as source:
        assert sum(1 for _ in source.blocks()) > 1
        found = match((block.data for block in source.blocks()), source.rows, "needle")
    assert np.flatnonzero(found.scores).tolist() == [20_000]
