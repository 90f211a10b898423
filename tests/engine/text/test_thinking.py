"""Reasoning and answer, told apart while they stream in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.thinking import CLOSE, OPEN, ThinkingSplitter


def split(text: str, cuts=(), *, opened: bool = False) -> tuple[str, str]:
    """(reasoning, content) of the text fed in the pieces that the cuts make."""
    edges = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    splitter = ThinkingSplitter(opened=opened)
    parts = [splitter.push(text[a:b]) for a, b in pairwise(edges)]
    parts.append(splitter.flush())
    return "".join(p.reasoning for p in parts), "".join(p.content for p in parts)


CASES = [
    ("hello", False, ("", "hello")),
    ("  hello ", False, ("", "  hello ")),
    ("<think>\nwhy\n</think>\n\nhello\n", False, ("why", "hello\n")),
    (" \n<think> a  b </think>c", False, ("a  b", "c")),
    ("why\nnot\n</think>\n\nhello", True, ("why\nnot", "hello")),
    ("never closed  ", True, ("never closed", "")),
    ("never closed </thin", True, ("never closed </thin", "")),
    ("<think></think>hello", False, ("", "hello")),
    ("<think>a</think>b<think>c</think>d", False, ("a", "b<think>c</think>d")),
    ("say <think>x</think>", False, ("", "say <think>x</think>")),
    ("<thinking about it", False, ("", "<thinking about it")),
    ("<thi", False, ("", "<thi")),
    ("  <", False, ("", "  <")),
    ("a < b </think> c", True, ("a < b", "c")),
    ("", False, ("", "")),
    ("   ", True, ("", "")),
    ("</think>hello", False, ("", "</think>hello")),
    ("</think>hello", True, ("", "hello")),
    ("a</think></think>b", True, ("a", "</think>b")),
]


@pytest.mark.parametrize(("text", "opened", "expected"), CASES, ids=lambda value: repr(value)[:30])
def test_every_way_to_cut_in_three(text: str, opened: bool, expected: tuple[str, str]) -> None:
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            assert split(text, (first, second), opened=opened) == expected, (first, second)
    assert split(text, range(len(text)), opened=opened) == expected


@given(
    text=st.lists(
        st.sampled_from([OPEN, CLOSE, "<", "</", "think>", " ", "\n", "a", "</thin", "b c"]), max_size=12
    ).map("".join),
    cuts=st.lists(st.integers(0, 60), max_size=10),
    opened=st.booleans(),
)
def test_the_cuts_never_matter(text: str, cuts: list[int], opened: bool) -> None:
    whole = split(text, opened=opened)
    assert split(text, cuts, opened=opened) == whole
    assert split(text, range(len(text)), opened=opened) == whole


@given(text=st.text(alphabet="<>/think ab\n", max_size=60), opened=st.booleans())
def test_nothing_is_lost_but_tags_and_space(text: str, opened: bool) -> None:
    reasoning, content = split(text, range(len(text)), opened=opened)
    kept = "".join((reasoning + content).split())
    left = "".join(text.split())
    if kept != left:
        assert len(left) - len(kept) in (len(OPEN), len(CLOSE), len(OPEN) + len(CLOSE))
        assert OPEN in left or CLOSE in left
