"""Windows: pieces of a text that are read at once, all of about the same size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """Tokens of a segment, or a part of them if it is long. ``segment`` is its number."""

    segment: int
    ids: tuple[int, ...]


def pieces_of(segment: int, ids: Sequence[int], longest: int) -> list[Piece]:
    return [Piece(segment, tuple(ids[at : at + longest])) for at in range(0, len(ids), longest)]


def windows_of(pieces: Sequence[Piece], room: int) -> list[list[Piece]]:
    """Consecutive pieces in as few windows as ``room`` tokens allow, all of about the same size.

    No piece is longer than half of ``room``, so that every window but the last holds two or more.
    """
    total = sum(len(piece.ids) for piece in pieces)
    count = -(-total // room)
    goal = min(room, -(-total // max(1, count)))
    windows: list[list[Piece]] = [[]]
    size = 0
    for piece in pieces:
        if windows[-1] and (size + len(piece.ids) > room or size >= goal):
            windows.append([])
            size = 0
        windows[-1].append(piece)
        size += len(piece.ids)
    return windows
