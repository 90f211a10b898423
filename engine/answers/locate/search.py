"""From a text's overview to the units that answer: words and heads choose lines, the lines' units are read again.

Neither is enough alone. Words find what is asked for in the text's own words and nothing else; heads know other words
for it, but tell near-duplicates apart badly. What each says of a line is added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.answers.locate.combine import standardised
from engine.answers.locate.corpus import Corpus, Overview, Units
from engine.answers.locate.lexical import Words
from engine.answers.locate.reader import Reader
from engine.answers.locate.windows import Piece, pieces_of, windows_of

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

KEEP = 16
"""Lines of the overview whose units are looked at."""
ROWS = 16
"""Units of a line that are read again; of more, those are chosen that differ as the question asks."""
ALIKE = 256
"""Units of a line that are compared for that."""
VALUES_ROOM = 1024
FINAL_ROOM = 1536
"""Tokens of the two last readings, of units as values alone and of units as they stand."""
FINAL = 32
SHORT = 100
"""Units of a text that may be read all at once."""
LEADERS = 12
"""Units that are read again for their words, whatever their line."""


@dataclass(frozen=True)
class Found:
    """``units``: candidates, best first, with their ``shares``; ``nothing``: the share of no answer; together 1.
    ``held``: the share of the question's words, by weight, that the best one holds."""

    units: list[int]
    shares: list[float]
    nothing: float
    held: float


class Search:
    """One question over one corpus."""

    def __init__(self, corpus: Corpus, overview: Overview, words: Words, allowed: Mask | None, reader: Reader) -> None:
        """``allowed``: bool [units], the candidates; all are without it."""
        self._corpus = corpus
        self._overview = overview
        self._words = words
        self._allowed = allowed
        self._reader = reader
        self._weight = reader.readout.words
        most = float(words.total.max()) or 1.0
        self._told: Floats = words.total.astype(np.float64) / most
        """What words say of each unit, at most 1."""

    def members(self, line: int) -> Units:
        """The candidates that a line of the overview stands for."""
        found = self._overview.members[line]
        return found if self._allowed is None else found[self._allowed[found]]

    def find(self) -> Found:
        """Reads what must be read. Some unit is always found if one is allowed."""
        window = self._whole()
        if window:
            self._reader.expect(sum(len(piece.ids) for piece in window))
            read = self._reader.read(window, keep=True)
            units = np.array([piece.segment for piece in window])
            inside = np.ones(len(units), np.bool_) if self._allowed is None else self._allowed[units]
            return self._found(units[inside].tolist(), standardised(read.segments[inside]), read.nothing)
        lines = self._lines()
        chosen = self._candidates(lines)
        pieces = self._pieces([self._corpus.shown(unit) for unit in chosen], self._reader.room, FINAL_ROOM)
        # In the text's own order, as models saw texts in training.
        order = sorted(range(len(pieces)), key=lambda i: chosen[i])
        chosen = [chosen[i] for i in order]
        window = [Piece(place, pieces[i].ids) for place, i in enumerate(order)]
        read = self._reader.read(window)
        return self._found(chosen, standardised(read.segments), read.nothing)

    def _found(self, chosen: list[int], heads: Floats, nothing: float) -> Found:
        total = heads + self._weight * self._told[chosen]
        order = np.argsort(-total, kind="stable")
        shares = np.exp(total - total.max())
        shares *= (1 - nothing) / shares.sum()
        units = [chosen[i] for i in order.tolist()]
        return Found(units, shares[order].tolist(), nothing, float(self._words.held[units[0]]))

    def _whole(self) -> list[Piece]:
        """The whole text as one window if it is short enough for the last reading: a first one would say the same."""
        corpus, room = self._corpus, min(self._reader.room, FINAL_ROOM)
        if corpus.units > SHORT:
            return []
        texts = {unit: text for unit in range(corpus.units) if (text := corpus.shown(unit)).strip()}
        pieces = [Piece(unit, tuple(self._reader.ids(text))) for unit, text in texts.items()]
        return pieces if sum(len(piece.ids) for piece in pieces) <= room else []

    def _lines(self) -> list[int]:
        """Lines of the overview that have candidates, best first."""
        reader, overview = self._reader, self._overview
        header = [token for line in overview.header for token in reader.ids(line)][: reader.room // 4]
        room = reader.room - len(header)
        pieces = self._pieces(overview.lines, room)
        reader.expect(sum(len(piece.ids) for piece in pieces))
        scores = np.full(len(overview.lines), -np.inf)
        for number, window in enumerate(windows_of(pieces, room) if pieces else []):
            found = reader.read(window, header, keep=number < reader.most_kept)
            for piece, score in zip(window, found.standard, strict=True):
                scores[piece.segment] = max(scores[piece.segment], score)
        for line in range(len(scores)):
            members = self.members(line)
            told = float(self._told[members].max()) if len(members) else -np.inf
            scores[line] += self._weight * told
        order = np.argsort(-scores, kind="stable")
        return [line for line in order.tolist() if scores[line] > -np.inf]

    def _pieces(self, texts: Sequence[str], room: int, most: int | None = None) -> list[Piece]:
        """Texts as pieces that fit ``room`` in twos; with ``most``, one piece of each of the first texts, that many
        tokens in all."""
        longest = min(self._reader.longest, room // 2)
        out: list[Piece] = []
        left = room if most is None else min(room, most)
        for number, text in enumerate(texts):
            pieces = pieces_of(number, self._reader.ids(text), longest)
            if most is not None:
                pieces = pieces[:1]
                left -= len(pieces[0].ids)
                if left < 0 and out:
                    break
            out += pieces
        return out

    def _candidates(self, lines: Sequence[int]) -> list[int]:
        """Units to read as they stand: those with most of the words, and the best lines' own."""
        leaders = self._leaders(LEADERS)
        best = [self._best_of(line, ROWS >> place or 1, read=place == 0) for place, line in enumerate(lines[:KEEP])]
        firsts = (units[0] for units in best if units)
        chosen = dict.fromkeys(
            (*leaders[: LEADERS // 2], *firsts, *(unit for units in best for unit in units), *leaders)
        )
        return list(chosen)[:FINAL]

    def _leaders(self, most: int) -> list[int]:
        scores = self._told if self._allowed is None else np.where(self._allowed, self._told, 0)
        some = np.flatnonzero(scores)
        if len(some) > most:
            least = np.partition(scores[some], -most)[-most]
            some = some[scores[some] >= least]
        out: list[int] = some[np.argsort(-scores[some], kind="stable")][:most].tolist()
        return out

    def _best_of(self, line: int, most: int, *, read: bool) -> list[int]:
        """Up to ``most`` units of a line: by the question's words, and where these say nothing by a reading of what
        the units differ in."""
        members = self.members(line)
        scores = self._words.scores[members]
        order = np.argsort(-self._told[members], kind="stable")[:ALIKE]
        ranked = members[order]
        if len(ranked) <= most:
            return [int(unit) for unit in ranked]
        if not read:
            return [int(unit) for unit in ranked[:most]]
        first = {int(units[0]): text for text, units in self._corpus.alike(np.sort(ranked))}
        units = [unit for unit in ranked.tolist() if unit in first]
        told_apart = scores[order[0]] > scores[order[min(most, len(order) - 1)]]
        if told_apart or len(units) <= most:
            return units[:most]
        pieces = self._pieces([first[unit] for unit in units], self._reader.room, VALUES_ROOM)
        heads = self._reader.read(pieces).segments
        best = np.argsort(-heads, kind="stable")[:most]
        return [units[pieces[i].segment] for i in np.sort(best).tolist()]
