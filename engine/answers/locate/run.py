"""Locating, from a text in any form to the answer."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, TYPE_CHECKING

import numpy as np

from engine.answers.asking import Cancelled, CancelledError, OnProgress, Terms, is_found, question_text
from engine.answers.fold.fold import Fold
from engine.answers.fold.index import Restriction, read_question
from engine.answers.fold.levels import rows_of_level
from engine.answers.fold.select import select
from engine.answers.fold.source import OnBytes, Source
from engine.answers.locate.answer import LocateAnswer, Ranked
from engine.answers.locate.choice import chosen_by_labels
from engine.answers.locate.corpus import Corpus, LogCorpus, Units
from engine.answers.locate.lexical import Words, match
from engine.answers.locate.like import rows_like
from engine.answers.locate.likely import likely
from engine.answers.locate.near import WITHIN, nearness
from engine.answers.locate.opening import corpus_of
from engine.answers.locate.reader import Reader
from engine.answers.locate.readouts import readout_for
from engine.answers.locate.search import Found, Search
from engine.answers.locate.vectors import word_vectors
from engine.device import choose_device
from engine.messages import DeadlineError, RequestClass, RequestError

if TYPE_CHECKING:
    from engine.engine import Engine

Text = str | bytes | os.PathLike[str] | IO[bytes] | Source | Fold | Sequence[object]

BUDGET_CPU, BUDGET_GPU = 6144, 1 << 18
"""Tokens of a text's overview that are read: some seconds' worth."""


def locate(
    engine: Engine,
    state: Text,
    question: str,
    *,
    kind: str = "auto",
    within: str = "",
    rows: Units | None = None,
    top: int = 5,
    request_class: RequestClass = "interactive",
    client: str = "",
    deadline: float | None = None,
    on_progress: OnProgress | None = None,
    on_fold: OnBytes | None = None,
    cancelled: Cancelled | None = None,
) -> LocateAnswer:
    """Find the line, sentence or record of ``state`` that answers ``question``.

    Args:
        state: the text, its bytes, a file's path (gzip and Zstandard are unpacked), a text that was opened or folded
            before, or an array whose elements are the records.
        within: JSON pointer of the array in the text whose elements are the records.
        rows: only these rows of a log may answer; sorted.
        top: candidates in the ranking, 1 to 100.
        on_fold: called with (bytes folded, bytes in all) before anything is read.

    Raises:
        RequestError: an empty text or question, an unknown kind, a model without a head list for lines.
        EngineError: a head could not be read, the deadline passed, ...
    """
    begun = time.monotonic()
    asked = question_text(question)
    if not 1 <= top <= 100:
        raise RequestError(f"top must be 1 to 100, not {top}.", code="bad_top", param="top")
    terms = Terms(request_class, client, deadline, cancelled)

    def alive(folded_bytes: int, size: int) -> None:
        if cancelled is not None and cancelled():
            raise CancelledError("Cancelled.", code="cancelled")
        if deadline is not None and time.monotonic() >= deadline:
            raise DeadlineError("The deadline passed while the text was folded.", code="deadline_exceeded")
        if on_fold is not None:
            on_fold(folded_bytes, size)

    with ExitStack() as opened:
        corpus = corpus_of(opened, state, kind, within, alive)
        if not corpus.units:
            raise RequestError("The text is empty; there is nothing to find in it.", code="empty_state", param="state")
        folded = time.monotonic()
        locator = _Locator(engine, corpus, asked, rows, terms, on_progress)
        answer = locator.answer(top)
    done = time.monotonic()
    timing = {"fold": folded - begun, **locator.seconds, "total": done - begun}
    return replace(answer, timing_ms={stage: seconds * 1e3 for stage, seconds in timing.items()})


class _Locator:
    """One question about one corpus."""

    def __init__(
        self,
        engine: Engine,
        corpus: Corpus,
        question: str,
        rows: Units | None,
        terms: Terms,
        on_progress: OnProgress | None,
    ) -> None:
        self.seconds = {"read": 0.0, "choose": 0.0}
        self._engine = engine
        self._corpus = corpus
        self._terms = terms
        self._notes: list[str] = []
        self._readout, note = readout_for(engine, corpus.kind)
        self._note(note)
        self._restriction = Restriction(question)
        self._allowed = None if rows is None else np.isin(np.arange(corpus.units), rows)
        if isinstance(corpus, LogCorpus):
            self._restrict(corpus, question)
        query = self._restriction.remaining or question
        self._reader = Reader(engine, self._readout, query, terms, on_progress)
        self._query = query

    def answer(self, top: int) -> LocateAnswer:
        """The answer without its timing."""
        if self._allowed is not None and not self._allowed.any():
            self._note("No line is of that time.")
            return self._answer(found=False, ranking=())
        if self._restriction.bare and not self._restriction.empty:
            return self._by_index(np.arange(self._corpus.units), top)
        graded = self._graded()
        if graded is not None:
            return self._by_index(graded, top)
        begun = time.monotonic()
        words = self._words()
        room = BUDGET_CPU if choose_device(self._engine.config).type == "cpu" else BUDGET_GPU
        overview = self._corpus.overview(room, self._reader.count, words)
        if overview.left_out:
            self._note(
                f"{overview.left_out:,} of {overview.left_out + len(overview.lines):,} {_LINES[self._corpus.kind]} "
                "were too many to read; they were searched for the question's own words only."
            )
        search = Search(self._corpus, overview, words, self._allowed, self._reader)
        found = search.find()
        read = time.monotonic()
        self.seconds["read"] = read - begun
        if self._readout.choose == "labels":
            found = chosen_by_labels(self._engine, self._corpus, self._query, found, self._terms, self._reader)
        answer = self._chosen(found, words, top)
        self.seconds["choose"] = time.monotonic() - read
        return answer

    def _restrict(self, corpus: LogCorpus, question: str) -> None:
        """What the question says of time, order and number is left to the fold's index."""
        asked = read_question(question)
        if asked.empty:
            return
        rows = np.arange(corpus.units) if self._allowed is None else np.flatnonzero(self._allowed)
        rows = rows[corpus.fold.template_of(rows) != 0]
        selection = select(corpus.fold, rows, replace(asked, order=None, count=False))
        if selection is None:
            self._note("The log does not say the time of its lines as the question does; the time was not used.")
            asked = replace(asked, window=None, remaining=question, bare=False)
        elif not len(selection.rows) and not asked.bare:
            self._note("No line is of that time; the time was taken for part of what is looked for.")
            asked = Restriction(question)
        elif asked.window is not None or asked.bare:
            self._allowed = np.zeros(corpus.units, np.bool_)
            self._allowed[selection.rows] = True
        self._restriction = asked

    def _graded(self) -> Units | None:
        """The rows of the level that is all that the question looks for; ``None`` where the log names no such level."""
        level = self._restriction.level
        if level is None or self._restriction.empty:
            return None
        rows = rows_of_level(self._corpus.blocks(), level)
        return rows if len(rows) else None

    def _words(self) -> Words:
        """What words alone say of each unit: the question's own, others for the same and, for a list that counts them,
        those that the model has near them, weighed with what the unit is."""
        corpus, weight = self._corpus, self._readout.near
        words = match(corpus.blocks(), corpus.units, self._query)
        if not weight or corpus.units > WITHIN:
            return words
        near = nearness(corpus.blocks(), corpus.units, self._query, word_vectors(self._engine))
        total = words.scores + np.float32(weight) * near
        return replace(words, total=likely(corpus, total) if isinstance(corpus, LogCorpus) else total)

    def _chosen(self, found: Found, words: Words, top: int) -> LocateAnswer:
        ranking = [self._corpus.ranked(unit, share) for unit, share in zip(found.units, found.shares, strict=True)]
        # What the threshold is compared with: words that stand there say as much as what the heads make of them.
        sure = is_found(self._readout, found.nothing, max(found.held, found.shares[0]))
        if self._restriction.empty or not sure:
            return self._answer(found=sure, ranking=_distinct(ranking)[:top])
        assert isinstance(self._corpus, LogCorpus)
        units = rows_like(self._corpus.fold, self._query, words, found.units[0])
        return self._by_index(units, top, _distinct(ranking))

    def _by_index(self, units: Units, top: int, others: Sequence[Ranked] = ()) -> LocateAnswer:
        """Of units that all answer, those that the question's order asks for; behind them other candidates."""
        assert isinstance(self._corpus, LogCorpus)
        fold = self._corpus.fold
        if self._allowed is not None:
            units = units[self._allowed[units]]
        selection = select(fold, units, replace(self._restriction, window=None))
        assert selection is not None
        count = selection.count if self._restriction.count else None
        if not len(selection.rows):
            few = f"Only {selection.count:,} lines answer; there is no other in that order."
            self._note(few if selection.count else "No line of that time answers.")
            return self._answer(found=False, ranking=tuple(others[:top]), count=count)
        share = others[0].confidence if others else 1.0
        firsts = [self._corpus.ranked(int(unit), share) for unit in selection.rows[:top].tolist()]
        ranking = _distinct([*firsts, *others])[:top]
        return self._answer(found=True, ranking=ranking, count=count)

    def _answer(self, *, found: bool, ranking: Sequence[Ranked], count: int | None = None) -> LocateAnswer:
        best = ranking[0] if ranking else None
        return LocateAnswer(
            found=found,
            kind=self._corpus.kind,
            segment=None if best is None else best.segment,
            line=None if best is None else best.line,
            value="" if best is None else best.value,
            confidence=0.0 if best is None else best.confidence,
            ranking=tuple(ranking),
            timing_ms={},
            input_tokens=self._reader.input_tokens,
            cached_tokens=self._reader.cached_tokens,
            count=count,
            note=" ".join(self._notes),
            pointers=tuple(rank.pointer for rank in ranking if rank.pointer is not None),
        )

    def _note(self, text: str) -> None:
        if text:
            self._notes.append(text)


def _distinct(ranking: Sequence[Ranked]) -> list[Ranked]:
    """Without rows of a line that is ranked before."""
    first: dict[int, Ranked] = {}
    for rank in ranking:
        first.setdefault(rank.segment, rank)
    return list(first.values())


_LINES = {"log": "kinds of lines", "prose": "sentences", "records": "records"}
