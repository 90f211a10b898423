"""Reading files as people have them."""

from __future__ import annotations

import base64
import gzip
import io
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.inputs import decode, image_uri, open_text


def read_lines(name: str) -> list[str]:
    with open_text(name) as source:
        return [source.line(number) for number in range(1, source.lines + 1)]


TEXT = "erste Zeile\nzweite Zeile, größer\nдва три\n"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        gzip.compress(TEXT.encode()),
        gzip.compress(TEXT.encode()[:20]) + gzip.compress(TEXT.encode()[20:]),
        zstandard.compress(TEXT.encode()),
        zstandard.compress(TEXT.encode()[:20]) + zstandard.compress(TEXT.encode()[20:]),
        gzip.compress(TEXT.encode("utf-16")),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r").encode(),
    ],
    ids=[
        "utf-8", "utf-8 BOM", "utf-16 LE", "utf-16 BE", "gzip", "gzip members", "zstd", "zstd frames",
        "gzip utf-16", "CR LF", "CR",
    ],
)  # fmt: skip
def test_encodings_and_compression(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "any.name"
    file.write_bytes(data)
    assert read_lines(str(file)) == TEXT.splitlines()


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark(encoding: str) -> None:
    text = "2026-03-01 12:00:00 INFO service started\n" * 3
    assert decode(text.encode(encoding)) == text


def test_bad_bytes_cost_one_character_not_the_file(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    file.write_bytes(b"one\ntw\xff\xfeo\nthree\n")
    assert read_lines(str(file)) == ["one", "tw\ufffd\ufffdo", "three"]


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), min_size=1))
def test_lines_count_as_sed_counts_them(lines: list[str]) -> None:
    """Whatever else breaks lines in Python (form feeds, U+2028, …) breaks none here."""
    with pytest.MonkeyPatch.context() as patch:
        data = "\n".join(["a text", *lines, "it ends"]).encode()
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert read_lines("-") == ["a text", *lines, "it ends"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    assert read_lines("-") == ["one", "two"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (bytes(range(256)) * 20, "is not a text in"),
        (gzip.compress(b"some text" * 100)[:-20], "broken or cut off"),
        (zstandard.compress(b"some text" * 100)[:8] + b"\xff" * 30, "broken or cut off"),
    ],
    ids=["nothing", "blank", "bytes", "gzip", "zstandard"],  # packed data holds the time: no names for tests
)
def test_what_is_no_text_is_said(data: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(data)
    with pytest.raises(CommandError, match=says):
        read_lines(str(file))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no file"):
        read_lines(str(tmp_path / "missing"))
    with pytest.raises(CommandError, match="is a folder"):
        read_lines(str(tmp_path))


def test_picture_becomes_a_data_uri(tmp_path: Path) -> None:
    file = tmp_path / "shot"
    Image.new("RGB", (4, 3)).save(file, "JPEG")
    head, _, data = image_uri(str(file)).partition(",")
    assert head == "data:image/jpeg;base64"
    assert base64.b64decode(data) == file.read_bytes()


def test_what_is_no_picture_is_said(tmp_path: Path) -> None:
    file = tmp_path / "shot.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n but no more")
    with pytest.raises(CommandError, match="is not a picture"):
        image_uri(str(file))
