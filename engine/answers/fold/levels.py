"""How grave a log says that its rows are: ERROR, [warn], level=info, "severity": "critical", E1130.

A level is what a row's writer put there for it; the word "error" within a message is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

Level = Literal["debug", "info", "notice", "warning", "error", "critical"]

NAMES: dict[str, Level] = {"trace": "debug", "debug": "debug", "verbose": "debug", "info": "info", "note": "notice"}
NAMES |= {"notice": "notice", "warn": "warning", "warning": "warning", "error": "error", "err": "error"}
NAMES |= {"severe": "error", "crit": "critical", "critical": "critical", "fatal": "critical", "alert": "critical"}
NAMES |= {"emerg": "critical", "emergency": "critical", "panic": "critical"}
_LETTERS: dict[bytes, Level] = {b"I": "info", b"W": "warning", b"E": "error", b"F": "critical"}
_FIELD_WITHIN, _WORD_WITHIN = 2048, 160
"""Bytes from a row's beginning in which a named field, and a word for itself, says the level."""

_ANY = "|".join(sorted(NAMES, key=len, reverse=True)).encode()
_FIELD = re.compile(
    rb"""\b(?:log\.?)?(?:level|levelname|lvl|severity|severity_text|loglevel)"?\s?[=:]\s?"?(?P<name>%b)\b""" % _ANY,
    re.IGNORECASE,
)
_MARKED = re.compile(
    rb"[\[(<](?:[\w-]+:)?(?i:(?P<marked>%b))[\])>]|(?<![\w.-])(?P<capitals>%b)\d?(?![\w.=/-])"
    rb"|(?:^|[\s\]])(?i:(?P<colon>%b)):\s" % (_ANY, _ANY.upper(), _ANY)
)
_KLOG = re.compile(rb"([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ ")


def level_of(row: bytes) -> Level | None:
    """The level that a row names, ``None`` if it does not."""
    if klog := _KLOG.match(row):
        return _LETTERS[klog[1]]
    found = _FIELD.search(row, 0, _FIELD_WITHIN)
    name = found and found["name"]
    if name is None and (found := _MARKED.search(row, 0, _WORD_WITHIN)):
        name = found["marked"] or found["capitals"] or found["colon"]
    return None if name is None else NAMES[name.decode().lower()]


def rows_of_level(blocks: Iterable[bytes], *levels: Level) -> npt.NDArray[np.int64]:
    """The rows of some levels among those of all blocks in their order, each row ended by a newline."""
    names = [name.encode() for name, of in NAMES.items() if of in levels]
    letters = [letter for letter, of in _LETTERS.items() if of in levels]
    # Only rows that may be of the level are looked at one by one.
    hints = [rb"(?i:%b)" % b"|".join(names), *(rb"^%b\d{4} " % letter for letter in letters)]
    hint = re.compile(b"|".join(hints), re.MULTILINE)
    out: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
    first = 0
    for data in blocks:
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        starts = np.concatenate([[0], ends[:-1] + 1])
        places = np.array([found.start() for found in hint.finditer(data)], np.int64)
        rows = np.unique(np.searchsorted(ends, places))
        fits = [level_of(data[starts[row] : ends[row]]) in levels for row in rows.tolist()]
        out.append(rows[np.array(fits, np.bool_)] + first)
        first += len(ends)
    return np.concatenate(out)
