"""Texts as they are given: encodings, newlines, long lines, files, packed files."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.answers.fold import source as sources
from engine.answers.fold import store as stores
from engine.answers.fold.encoding import sniff
from engine.answers.fold.source import LONGEST, Source
from engine.messages import EngineError, RequestError

NEWLINE = re.compile("\r\n|\n|\r")


def lines_of(text: str) -> list[str]:
    """As an editor numbers them."""
    lines = NEWLINE.split(text)
    return lines[:-1] if lines[-1] == "" else lines


def check(source: Source, text: str) -> None:
    """Every way to ask says the same."""
    lines = lines_of(text)
    assert source.lines == len(lines)
    assert [source.line(n) for n in range(1, len(lines) + 1)] == lines
    assert list(source.every_line()) == lines
    rows = [row for block in source.blocks() for row in block.data.split(b"\n")[:-1]]
    assert len(rows) == source.rows
    assert [source.row_bytes(n) for n in range(source.rows)] == rows
    numbers = [number for n in range(1, len(lines) + 1) for number in source.rows_of(n)]
    assert numbers == list(range(source.rows))
    for n in range(1, len(lines) + 1):
        assert {source.line_of(row) for row in source.rows_of(n)} == {n}
        parts = [source.row(row) for row in source.rows_of(n)]
        assert all(len(part) <= LONGEST for part in parts)
        assert (len(parts) == 1) == (len(lines[n - 1]) <= LONGEST)
    assert source.lines_of(np.arange(source.rows)).tolist() == [source.line_of(row) for row in range(source.rows)]


PIECES = st.one_of(
    st.sampled_from(
        ["\n", "\r\n", "\r", "\n\n", " ", "\t", "\u2028", "\x85", "\x0b", "\x00", "error", "가나다", "\U0001f600"]
    ),
    st.text(max_size=20),
    st.builds(lambda c, n: c * n, st.sampled_from("x é한\U0001f600"), st.sampled_from([4094, 4095, 4096, 4097, 9000])),
)
TEXTS = st.lists(PIECES, max_size=14).map("".join)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_any_text_has_the_lines_of_an_editor(text: str) -> None:
    check(Source(text), text)


@settings(max_examples=60, deadline=None)
@given(TEXTS.filter(lambda t: "\x1b" not in t), st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"]))
def test_encodings_with_their_marks(text: str, name: str) -> None:
    text = text.encode("utf-8", "replace").decode().lstrip("\ufeff")
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(name, b"")
    given_as = mark + text.encode(name)
    if name == "utf-8" and "\x00" in text:
        return  # such bytes may look like UTF-16
    check(Source(given_as), text)


def test_blocks_end_with_lines_and_huge_lines_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks of 32 KB: lines over many blocks, CR LF on every edge, characters of four bytes across them."""
    monkeypatch.setattr(sources, "BLOCK", 1 << 15)
    for piece in ("x", "\U0001f600", "ab ", "가"):
        for newline in ("\n", "\r\n", "\r"):
            lines = [piece * 30, piece * 50_000, "", piece * 4096, "short"]
            text = newline.join(lines * 2 + ["y" * k for k in range(200)])
            for data in (text, text.encode(), b"\xff\xfe" + text.encode("utf-16-le")):
                source = Source(data)
                check(source, text)
                assert len(list(source.blocks())) > 4


def test_every_offset_of_crlf_at_a_block_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK", 1 << 15)
    for shift in range(-3, 4):
        text = "a" * ((1 << 15) + shift) + "\r\nb\r\n"
        check(Source(text), text)
        text = f"{'a' * 1023}\n" * 31 + "b" * (1024 + shift) + "\r\n\r\nc"
        check(Source(text), text)


def test_a_row_of_a_huge_line_is_read_without_the_rest_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "short\n\n" + "word " * 400_000 + "\r\nlast\n"
    source = Source(text)
    read: list[int] = []
    real = source._store.read
    monkeypatch.setattr(source._store, "read", lambda start, stop: (read.append(stop - start), real(start, stop))[1])
    rows = source.rows_of(3)
    assert len(rows) > 400
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        read.clear()
        assert set(source.row(row).split()) == {"word"}
        assert sum(read) < 64 << 10
    assert source.row(rows[-1] + 1) == "last"


def test_windows_of_a_line_hold_all_of_it_and_end_behind_spaces() -> None:
    line = "word " * 5000
    source = Source(f"first\n{line}\nlast")
    rows = source.rows_of(2)
    assert len(rows) == -(-len(line) // LONGEST)
    parts = [source.row(row) for row in rows]
    assert "".join(parts) == line
    assert all(part.endswith(" ") and len(part) > LONGEST * 3 // 4 for part in parts[:-1])
    assert source.line(3) == "last"


@settings(max_examples=80, deadline=None)
@given(
    (st.binary(max_size=300) | st.binary(max_size=60).map(lambda b: b * 400)).filter(
        lambda b: not b.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
    )
)
def test_any_bytes_can_be_read(data: bytes) -> None:
    source = Source(data)
    count = sum(block.data.count(b"\n") for block in source.blocks())
    assert count == source.rows >= source.lines
    for n in range(1, source.lines + 1):
        assert "\n" not in source.line(n)
    if source.encoding.name == "utf-8":
        body = data[source.encoding.mark :]
        assert source.lines == len(lines_of(body.decode("latin-1")))


def test_bad_bytes_are_shown_as_such() -> None:
    source = Source(b"caf\xe9 open\nok\n\xff\xfe\xfd\n")
    assert source.line(1) == "caf\ufffd open"
    assert source.line(3) == "\ufffd\ufffd\ufffd"
    lone = Source("\ud83d\n".encode("utf-16-le", "surrogatepass") + "rest, long enough\n".encode("utf-16-le") + b"x")
    assert lone.encoding.name == "utf-16-le"
    assert [lone.line(n) for n in (1, 2, 3)] == ["\ufffd", "rest, long enough", "\ufffd"]


def test_half_a_character_of_json_stays_as_it_is() -> None:
    assert Source("\ud800 x\n").line(1) == "\ud800 x"


def test_utf_16_without_a_mark_is_recognised() -> None:
    text = "2026-11-30 started\r\nüber 가나다라 logged\r\n"
    for name in ("utf-16-le", "utf-16-be"):
        source = Source(text.encode(name))
        assert source.encoding.name == name
        check(source, text)
    assert sniff(b"plain \x00 zero").name == "utf-8"
    assert sniff(b"").name == "utf-8"


def test_ansi_is_kept_in_lines_and_left_out_of_rows() -> None:
    text = "\x1b[1;31mERROR\x1b[0m disk \x1b]8;;http://x/\x07link\x1b]8;;\x1b\\\nplain\n\x1b[2K"
    source = Source(text)
    assert source.line(1).startswith("\x1b[1;31m")
    assert source.row(0) == "ERROR disk link"
    assert [source.row_bytes(n) for n in range(3)] == [b"ERROR disk link", b"plain", b""]
    assert next(source.blocks()).data == b"ERROR disk link\nplain\n\n"


def test_nothing_and_next_to_nothing() -> None:
    assert (Source(b"").lines, Source("").rows, list(Source("").blocks())) == (0, 0, [])
    assert Source("\n").lines == 1
    assert Source(b"\xef\xbb\xbf").lines == 0
    with pytest.raises(IndexError):
        Source("a\n").line(2)
    with pytest.raises(IndexError):
        Source("a\n").row(1)


def test_paths_streams_and_packed_files_read_alike(tmp_path: Path) -> None:
    text = "".join(f"line {n} über\n" for n in range(3000))
    data = text.encode()
    plain, packed, frames = (tmp_path / name for name in ("a.log", "a.log.gz", "a.log.zst"))
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data[:1000]) + gzip.compress(data[1000:]))
    compress = zstandard.ZstdCompressor().compress
    frames.write_bytes(compress(data[:1000]) + compress(data[1000:]))
    for given_as in (
        plain,
        packed,
        frames,
        io.BytesIO(data),
        packed.read_bytes(),
        bytearray(data),
        io.BytesIO(frames.read_bytes()),
    ):
        with Source(given_as) as source:
            assert source.size == len(data)
            assert (source.lines, source.line(2999)) == (3000, "line 2998 über")


def test_much_unpacked_text_goes_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "SPOOL", 1000)
    with Source(gzip.compress(b"a line\n" * 10_000)) as source:
        assert source.line(10_000) == "a line"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_a_named_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"one\ntwo\n"))
    writer.start()
    with Source(pipe) as source:
        assert source.line(2) == "two"
    writer.join()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b"x" * 10_000)[:-9], "broken or cut off"),
        (gzip.compress(b"x" * 10_000) + b"more", "broken or cut off"),
        (zstandard.ZstdCompressor().compress(os.urandom(5000))[:-40], "cut off"),
        (zstandard.ZstdCompressor().compress(b"x" * 10_000) + b"more", "broken"),
        (b"\x28\xb5\x2f\xfd", "cut off"),
        (b"\x1f\x8b\x00\x00", "broken"),
    ],
    ids=["gzip cut", "gzip more", "zstandard cut", "zstandard more", "zstandard head", "gzip head"],
)
def test_broken_packed_data_is_one_sentence(data: bytes, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        Source(data)
    assert caught.value.code == "broken_pack"
    assert words in caught.value.message
    assert caught.value.message.endswith(".")


def test_what_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path("bad\0name"), Path("/dev/null")):
        with pytest.raises(RequestError) as caught:
            Source(path)
        assert caught.value.code == "no_file"


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "LIMIT", 100)
    for given_as in (b"x" * 101, gzip.compress(b"x" * 101), io.BytesIO(b"x" * 101)):
        with pytest.raises(RequestError) as caught:
            Source(given_as)
        assert caught.value.code == "text_too_long"


def test_a_file_that_shrinks_is_an_error_and_one_that_grows_is_not(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"line\n" * 20_000)
    with Source(path) as source:
        with path.open("ab") as file:
            file.write(b"later\n")
        assert (source.lines, source.line(20_000)) == (20_000, "line")
        path.write_bytes(b"rotated\n")
        with pytest.raises(EngineError) as caught:
            source.line(20_000)
        assert caught.value.code == "text_changed"
    with pytest.raises(EngineError) as caught:
        source.line(1)
    assert caught.value.code == "text_gone"


def test_progress_is_told_and_can_end_the_work() -> None:
    seen: list[tuple[int, int]] = []
    data = b"a line of text\n" * 100_000
    Source(data, on_bytes=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (len(data), len(data))
    with pytest.raises(KeyboardInterrupt):
        Source(data, on_bytes=_interrupt)


def _interrupt(done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_many_threads_read_one_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(b"".join(b"%d\n" % n for n in range(1, 50_001)))
    wrong: list[int] = []
    with Source(path) as source:

        def read(start: int) -> None:
            wrong.extend(n for n in range(start, 50_000, 97) if source.line(n) != str(n))

        threads = [threading.Thread(target=read, args=(start,)) for start in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
