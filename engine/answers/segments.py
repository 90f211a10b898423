"""Cutting a text into the segments an answer can be: lines, sentences or records."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.messages import RequestError

Kind = Literal["log", "prose", "records"]
KINDS = ("auto", "log", "prose", "records")

_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?![\s\"')\]])[^.!?\n]*)*[.!?]*[\"')\]]*\s?", re.UNICODE)
_NEWLINE = re.compile(r"\r\n|\n|\r")
"""What ends a line to an editor; other separators do not."""
_PROSE_LINE = 200
"""Characters of a typical line from which a text counts as prose written a paragraph a line."""


@dataclass(frozen=True)
class Segment:
    """One possible answer: ``line`` is 1-based in the text as given, ``value`` is what stands there."""

    line: int
    value: str


def segments_of(state: str | Sequence[object], kind: str) -> tuple[Kind, list[Segment]]:
    """The kind that was found or asked for, and the segments; empty ones are left out.

    ``state`` is a text or an array (then each element is a record, and its line is its place in the array).

    Raises:
        RequestError: an unknown kind, or records asked of a text that has none.
    """
    if kind not in KINDS:
        raise RequestError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}.", code="unknown_kind", param="kind")
    if not isinstance(state, str):
        return "records", [Segment(i + 1, _one_line(element)) for i, element in enumerate(state)]
    records = _json_records(state) if kind in ("auto", "records") else None
    if records is not None:
        return "records", records
    lines = [Segment(i, line) for i, line in enumerate(_NEWLINE.split(state), 1) if line.strip()]
    if kind == "auto" and len(lines) >= 2 and all(_is_object(line.value) for line in lines):
        return "records", lines
    if kind == "records":
        if not all(line.value.lstrip().startswith(("{", "[")) for line in lines):
            raise RequestError(
                "The text holds no records: send a JSON array or one JSON object a line, or ask with kind auto.",
                code="no_records",
            )
        return "records", lines
    if kind == "prose" or (kind == "auto" and _is_prose(lines)):
        return "prose", [Segment(line.line, s) for line in lines for s in _sentences(line.value)]
    return "log", lines


def _is_object(line: str) -> bool:
    """Whether a line looks like a record of JSON lines."""
    line = line.strip()
    return line.startswith("{") and line.endswith("}")


def _is_prose(lines: Sequence[Segment]) -> bool:
    lengths = sorted(len(line.value) for line in lines)
    typical = lengths[len(lengths) // 2] if lengths else 0
    return typical >= _PROSE_LINE and not any(line.value.lstrip().startswith(("{", "[")) for line in lines)


def _sentences(line: str) -> list[str]:
    return [s.strip() for s in _SENTENCE.findall(line) if s.strip()] or [line]


def _one_line(element: object) -> str:
    return element if isinstance(element, str) else json.dumps(element, ensure_ascii=False)


def _json_records(text: str) -> list[Segment] | None:
    """Elements of a JSON array of two objects or more, each with the line it begins on; None for anything else."""
    at = _skip_space(text, 0)
    if not text.startswith("[", at):
        return None
    decoder, records = json.JSONDecoder(), list[Segment]()
    line, counted = 1, 0
    try:
        while True:
            at = _skip_space(text, at + 1)  # behind the bracket or a comma
            value, end = decoder.raw_decode(text, at)
            if not isinstance(value, dict):
                return None
            line, counted = line + len(_NEWLINE.findall(text, counted, at)), at
            parts = (part.strip() for part in _NEWLINE.split(text[at:end]))
            records.append(Segment(line, " ".join(part for part in parts if part)))
            at = _skip_space(text, end)
            if not text.startswith(",", at):
                break
    except (ValueError, RecursionError):
        return None
    whole = text.startswith("]", at) and _skip_space(text, at + 1) == len(text)
    return records if whole and len(records) >= 2 else None


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
