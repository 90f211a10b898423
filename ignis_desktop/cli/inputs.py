"""Files as people have them: texts in any encoding, compressed or not; pictures; standard input."""

from __future__ import annotations

import base64
import codecs
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ignis_desktop.cli.errors import CommandError

if TYPE_CHECKING:
    from engine.answers.fold.source import Source

STANDARD_INPUT = "-"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# A log may hold a block of zeros from a crash and some foreign bytes; more than this is no text.
UNREADABLE_SHARE = 0.3
_HEAD_ROWS = 200


def read_bytes(name: str) -> bytes:
    """A file's content; ``-`` is standard input. Raises ``CommandError``."""
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    with _readable(name):
        return Path(name).read_bytes()


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise CommandError(f"There is no file {name}.") from None
    except IsADirectoryError:
        raise CommandError(f"{name} is a folder; name a file.") from None
    except PermissionError:
        raise CommandError(f"{name} may not be read by this user.") from None
    except OSError as fault:
        raise CommandError(f"{name} cannot be read: {fault.strerror or fault}.") from fault


def decode(data: bytes) -> str:
    """Text of unknown encoding: by its byte order mark, as UTF-16 when every other byte is zero, else as UTF-8.

    Bytes that are no UTF-8 become U+FFFD: one bad byte must not cost a log its answer.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    head = data[:4096]
    if len(head) >= 4:
        even, odd = head[0::2].count(0) / len(head[0::2]), head[1::2].count(0) / len(head[1::2])
        if odd > 0.4 and even < 0.1:
            return data.decode("utf-16-le", errors="replace")
        if even > 0.4 and odd < 0.1:
            return data.decode("utf-16-be", errors="replace")
    return data.decode("utf-8", errors="replace")


def open_text(name: str) -> Source:
    """A text file of any size (``-``: standard input), unpacked, its lines found; close it when done.

    Raises:
        CommandError: it cannot be read, or there is no text in it.
    """
    from engine.answers.fold.source import Source
    from engine.messages import EngineError

    with _readable(name):
        if name != STANDARD_INPUT:
            Path(name).open("rb").close()  # the reasons that people meet, in their words
        try:
            source = Source(sys.stdin.buffer if name == STANDARD_INPUT else Path(name))
        except EngineError as fault:
            raise CommandError(fault.message) from fault
    try:
        head = "".join(source.row(row) for row in range(min(source.rows, _HEAD_ROWS)))
        if not head.strip("\ufeff \t") and not any(line.strip() for line in source.every_line()):
            raise CommandError(f"{label(name)} is empty.")
        if head.count("\0") + head.count("\ufffd") > UNREADABLE_SHARE * len(head):
            raise CommandError(f"{label(name)} is not a text in UTF-8 or UTF-16.")
    except BaseException:
        source.close()
        raise
    return source


def read_prompt(prompt: str) -> str:
    """The prompt itself, or standard input's text when it is ``-``."""
    if prompt != STANDARD_INPUT:
        return prompt
    return decode(sys.stdin.buffer.read()).strip()


def image_uri(name: str) -> str:
    """A picture as a data URI, as the API takes it. Raises ``CommandError`` when it is no picture."""
    import io

    from PIL import Image, UnidentifiedImageError

    data = read_bytes(name)
    try:
        with Image.open(io.BytesIO(data)) as image:
            kind = Image.MIME.get(image.format or "", "application/octet-stream")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as fault:
        raise CommandError(f"{label(name)} is not a picture that can be read (PNG, JPEG, WebP, BMP, GIF).") from fault
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def label(name: str) -> str:
    """How messages call it."""
    return "standard input" if name == STANDARD_INPUT else click.format_filename(name)
