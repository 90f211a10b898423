"""What locating answers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ranked:
    """A candidate: ``segment`` is its 0-based number, ``line`` its 1-based line in the text as given, ``pointer`` the
    JSON pointer of a record."""

    segment: int
    line: int
    value: str
    confidence: float
    pointer: str | None = None


@dataclass(frozen=True)
class LocateAnswer:
    """``segment``, ``line`` and ``value`` are the best candidate's, also when it is not ``found``; ``None`` and empty
    if there is no candidate, as when no line is of the time asked for.

    ``count``: how many lines answer, when that was asked. ``note``: what of the text was not read or not understood,
    in sentences; empty if nothing was left out.
    """

    found: bool
    kind: str
    segment: int | None
    line: int | None
    value: str
    confidence: float
    ranking: tuple[Ranked, ...]
    timing_ms: dict[str, float]
    input_tokens: int
    cached_tokens: int
    count: int | None = None
    note: str = ""
    pointers: tuple[str, ...] = field(default=())
    """Of the ranking's records; empty for other kinds."""
