"""Tokens to text as they come: nothing shown is taken back, nothing is lost, stop strings end it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.text.stream import TextStream
from engine.text.tokenizer import Tokenizer


class Bytes:
    """A vocabulary whose token n stands for the bytes given."""

    def __init__(self, *tokens: bytes) -> None:
        self.token_bytes = list(tokens)


def cut(data: bytes, at: list[int]) -> list[bytes]:
    edges = sorted({0, *(min(edge, len(data)) for edge in at), len(data)})
    return [data[a:b] for a, b in pairwise(edges)]


def pieces(stream: TextStream, tokens) -> list[str]:
    return [*(stream.push(token) for token in tokens), stream.flush()]


def first_stop(text: str, stops: list[str]) -> tuple[str, str | None]:
    """The text up to the stop string that is complete first (the longest of several), read a character at a time."""
    for end in range(len(text) + 1):
        met = [s for s in stops if s and text[:end].endswith(s)]
        if met:
            longest = max(met, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(
    text=st.text(alphabet="aü世\U0001f680\u0301\n\x00", max_size=40), cuts=st.lists(st.integers(0, 120), max_size=12)
)
def test_any_cut_of_the_bytes_gives_the_text(text: str, cuts: list[int]) -> None:
    data = text.encode()
    tokens = cut(data, cuts)
    stream = TextStream(Bytes(*tokens))
    shown = ""
    for number in range(len(tokens)):
        shown += stream.push(number)
        assert data.startswith(shown.encode()), "what was shown is a whole part of the text"
    assert shown + stream.flush() == data.decode()


@given(
    text=st.text(alphabet="abcü", max_size=30),
    stops=st.lists(st.text(alphabet="abcü", max_size=4), max_size=3),
    cuts=st.lists(st.integers(0, 60), max_size=15),
)
@example(text="abcc", stops=["abc", "b"], cuts=[])
@example(text="abcc", stops=["c", "abc"], cuts=[])
def test_stop_strings_whatever_the_cuts(text: str, stops: list[str], cuts: list[int]) -> None:
    data = text.encode()
    tokens = cut(data, cuts)
    stream = TextStream(Bytes(*tokens), stops)
    shown = ""
    expected, stop = first_stop(text, stops)
    for number in range(len(tokens)):
        shown += stream.push(number)
        assert expected.startswith(shown), "nothing of a stop string is ever shown"
    assert shown + stream.flush() == expected
    assert stream.stopped == stop


def test_only_what_may_become_a_stop_string_is_held_back() -> None:
    stream = TextStream(Bytes(b"one ", b"EN", b"O", b" END"), ["END"])
    assert pieces(stream, [0, 1, 2, 3]) == ["one ", "", "ENO", " ", ""]
    assert stream.stopped == "END"


def test_nothing_comes_after_a_stop_string() -> None:
    stream = TextStream(Bytes(b"a.b", b"c"), ["."])
    assert pieces(stream, [0, 1]) == ["a", "", ""]


def test_bytes_that_are_no_character_become_the_replacement() -> None:
    stream = TextStream(Bytes(b"a\xff", b"b\xe2\x82"))
    assert pieces(stream, [0, 1]) == ["a\ufffd", "b", "\ufffd"]


def test_ids_without_a_token_add_nothing() -> None:
    assert pieces(TextStream(Bytes(b"a")), [0, 5, -1]) == ["a", "", "", ""]


@pytest.mark.parametrize(
    "text", ["Grüße, 世界! \U0001f469\u200d\U0001f680 end", "tabs\tand\r\nnewlines  ", "e\u0301\u202e"]
)
def test_a_real_tokenizer_token_by_token(tiny_folder: Path, text: str) -> None:
    tokenizer = Tokenizer(tiny_folder)
    ids = tokenizer.encode(text)
    assert "".join(pieces(TextStream(tokenizer), ids)) == tokenizer.decode(ids)
