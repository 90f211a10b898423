"""Files as people have them: texts in any encoding, compressed or not; pictures; standard input."""

from __future__ import annotations

import base64
import codecs
import gzip
import re
import sys
import zlib
from pathlib import Path

import click

from ignis_desktop.cli.errors import CommandError

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
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# What str.splitlines takes for the end of a line and editors, sed and grep do not.
_OTHER_BREAKS = re.compile("[\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


def read_bytes(name: str) -> bytes:
    """A file's content; ``-`` is standard input. Raises ``CommandError``."""
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except FileNotFoundError:
        raise CommandError(f"There is no file {name}.") from None
    except IsADirectoryError:
        raise CommandError(f"{name} is a folder; name a file.") from None
    except PermissionError:
        raise CommandError(f"{name} may not be read by this user.") from None
    except OSError as fault:
        raise CommandError(f"{name} cannot be read: {fault.strerror or fault}.") from fault


def decompress(data: bytes, name: str) -> bytes:
    """What gzip or Zstandard packed, told by its first bytes and not by the file's name; anything else as it is."""
    if data.startswith(_GZIP):
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as fault:
            raise CommandError(f"{name} is damaged gzip data: {fault}.") from fault
    if data.startswith(_ZSTD):
        import zstandard

        try:
            with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                return reader.read()
        except zstandard.ZstdError as fault:
            raise CommandError(f"{name} is damaged Zstandard data: {fault}.") from fault
    return data


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


def lines_of(text: str) -> list[str]:
    """The lines of a text as editors, sed and grep count them: ended by LF or CR LF, or by CR where there is no LF.

    Other characters that break lines somewhere become spaces, so that whoever counts, counts the same.
    """
    unified = text.replace("\r\n", "\n")
    if "\n" not in unified:
        unified = unified.replace("\r", "\n")
    lines = _OTHER_BREAKS.sub(" ", unified).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def read_lines(name: str) -> list[str]:
    """The lines of a text file (``-``: standard input). Raises ``CommandError``, also when there is no text in it."""
    data = decompress(read_bytes(name), name)
    if not data.strip():
        raise CommandError(f"{label(name)} is empty.")
    text = decode(data)
    if text.count("\0") + text.count("\ufffd") > UNREADABLE_SHARE * len(text):
        raise CommandError(f"{label(name)} is not a text in UTF-8, UTF-16 or UTF-32.")
    return lines_of(text)


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
