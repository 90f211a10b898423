"""Masks of whole blocks agree with masks made byte by byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.answers.fold.masks import HOLE, TOKENS, hashes_of, mask, split, tokens_of
from engine.answers.fold.page import PLAIN, Page

PATH_ENDS = b"\"'`<>(){}[],;|\x7f"


def is_word(byte: int) -> bool:
    return byte >= 128 or chr(byte).isalnum() or byte == 95


def slow_mask(row: bytes) -> bytes:
    """The mask of one row, the plain way."""
    row = row.translate(PLAIN)
    words = [is_word(byte) for byte in row]
    digits = [48 <= byte <= 57 for byte in row]

    def before(at: int) -> int:
        return row[at] if at >= 0 else 32

    def is_path(byte: int) -> bool:
        return byte > 32 and byte not in PATH_ENDS

    at = 0
    while at < len(row):
        last = before(at - 1)
        slash = row[at] == 47 and not is_word(last) and (not is_path(last) or last in b"=:")
        drive = row[at + 1 : at + 3] == b":\\" and is_word(row[at]) and not is_word(last)
        if slash or drive:
            while at < len(row) and is_path(row[at]):
                words[at] = digits[at] = True
                at += 1
        else:
            at += 1
    runs: list[tuple[int, int, bool]] = []  # words: start, end, with a digit
    at = 0
    while at < len(row):
        end = at
        while end < len(row) and words[end]:
            end += 1
        if end > at:
            runs.append((at, end, any(digits[at:end])))
        at = max(end, at + 1)
    chains: list[list[tuple[int, int, bool]]] = []
    for run in runs:
        between = row[chains[-1][-1][1] : run[0]] if chains else b""
        joined = between == b"::" or (len(between) == 1 and between in b".:-/+")
        if joined:
            chains[-1].append(run)
        else:
            chains.append([run])
    out, at = b"", 0
    for chain in chains:
        holes = [run for run in chain if run[2]]
        if holes:
            out += row[at : holes[0][0]] + bytes([HOLE])
            at = holes[-1][1]
    return b" ".join((out + row[at:]).split())


BITS = st.sampled_from(
    [
        *("foo", "bar12", "10.0.0.1:80", "/var/log/x", " /", "a/b", "C:\\dir\\1", "http://h/x?y=1", "=", "x=1", ","),
        *(";", "|", "-5", "--", "+", "1.2-rc3+deb", "a1-b-c2", "(", ")", "[12]", '"', "'q'", "é1", "가나", "\x00"),
        *("\x01", "\t", " ", "  ", "0x1f", "user@host", "12ms", "%", "#3", ":", "::1", "::", "a_1", "\\n", "\x7f"),
    ]
)
ANY = st.text(st.characters(exclude_characters="\r\n"), max_size=30)
ROWS = st.lists(st.lists(BITS, max_size=10).map("".join) | ANY, min_size=1, max_size=12)


def page_of(rows: list[bytes]) -> Page:
    return Page(b"".join(row + b"\n" for row in rows))


@settings(max_examples=300)
@given(ROWS)
def test_a_block_is_masked_like_its_rows_alone(texts: list[str]) -> None:
    rows = [text.encode("utf-8", "replace") for text in texts]
    page = page_of(rows)
    masked = mask(page, page.indented())
    assert [b" ".join(masked.of(n).split()) for n in range(len(rows))] == [slow_mask(row) for row in rows]


@settings(max_examples=300)
@given(ROWS)
def test_tokens_of_a_block_are_those_of_its_rows(texts: list[str]) -> None:
    rows = [text.encode("utf-8", "replace") for text in texts]
    page = page_of(rows)
    masked = mask(page, page.indented())
    tokens = tokens_of(page, masked.hole_starts)
    assert tokens.counts.tolist() == [len(split(row.translate(PLAIN))) for row in rows]
    for n, row in enumerate(rows):
        mine = np.flatnonzero(tokens.rows == n)
        assert [page.bytes[tokens.starts[i] : tokens.ends[i]].tobytes() for i in mine] == split(row.translate(PLAIN))
        assert tokens.places[mine].tolist() == list(range(len(mine)))
        masks = split(masked.of(n))
        assert [HOLE in token for token in masks] == tokens.with_holes[mine].tolist()


def test_a_row_of_very_many_tokens_ends_with_all_the_rest() -> None:
    rows = [b"w%d " % n * 300 for n in range(2)] + [b"few words"]
    page = page_of(rows)
    tokens = tokens_of(page, mask(page, page.indented()).hole_starts)
    assert tokens.counts.tolist() == [TOKENS, TOKENS, 2]
    assert page.bytes[tokens.starts[TOKENS - 1] : tokens.ends[TOKENS - 1]].tobytes() == split(rows[0])[-1]
    assert split(rows[0])[-1] == b" ".join([b"w0"] * (300 - TOKENS + 1))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("Failed password for root from 10.0.0.7 port 51122 ssh2", "Failed password for root from * port * *"),
        ("GET /api/orders/8841?x=1 HTTP/1.1 200", "GET * HTTP/* *"),
        ("session a3f0c2d1-77aa-4b2e-9c11-0123456789ab closed", "session * closed"),
        ("[fe80::1%eth0]:22 at 0x7ffe12", "[*%*]:* at *"),
        ("took=12.5ms id=17, name=kettle", "took=* id=*, name=kettle"),
        ("opened C:\\Users\\ann\\x.txt and /tmp/a b", "opened * and * b"),
        ("libfoo-2:amd64 1:2.0+dfsg-3", "libfoo-* *"),
        ("read/write and and/or", "read/write and and/or"),
        ("at com.shop.Cart.add(Cart.java:77)", "at com.shop.Cart.add(Cart.java:*)"),
    ],
)
def test_what_varies_is_a_hole(row: str, expected: str) -> None:
    page = page_of([row.encode()])
    assert mask(page, page.indented()).of(0).decode().replace(chr(HOLE), "*") == expected


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_equal_spans_have_equal_hashes_and_others_do_not(spans: list[bytes]) -> None:
    data = np.frombuffer(b"##".join([b"", *spans, b""]), np.uint8)
    ends = np.cumsum([2 + len(span) for span in spans])
    starts = ends - [len(span) for span in spans]
    hashes = hashes_of(data, starts, ends)
    for i, one in enumerate(spans):
        for j, two in enumerate(spans):
            assert (one == two) == (hashes[i] == hashes[j])


def test_patterned_rows_are_not_taken_for_one_another() -> None:
    """Thue-Morse words: polynomials modulo a power of two cannot tell them from their mirror."""
    word = "0"
    while len(word) < 4096:
        word += word.translate({48: 49, 49: 48})
    letters = word.translate({48: 97, 49: 98}), word.translate({48: 98, 49: 97})
    page = page_of([text.encode() for text in letters])
    hashes = mask(page, page.indented()).hashes
    assert hashes[0] != hashes[1]
