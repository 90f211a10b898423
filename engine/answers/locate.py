"""Which segment of a text answers a question: read from attention heads, no token generated.

A text longer than a window is read in windows of about equal size. Each hands on its best segments, and one last read
over those alone ranks them, so that scores of different windows are never compared with each other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.answers.asking import (
    Cancelled,
    OnProgress,
    Reading,
    find_readout,
    head_span,
    is_found,
    prompt_parts,
    question_text,
    reading,
    run,
)
from engine.answers.heads import Readout
from engine.answers.segments import segments_of
from engine.messages import Prompt, ReadRequest, RequestClass, RequestError, label_of

if TYPE_CHECKING:
    from engine.engine import Engine

WINDOW = 3072
"""Tokens of text in a window: Ember finds the line more often among a hundred than among four hundred."""
KEEP = 4
"""Segments that a window hands on."""
LONGEST = 512
"""Tokens of a segment that are read at once; a longer one is read in pieces and answers with any of them."""
LEAST = 128
"""Tokens of text that must fit beside a question."""


@dataclass(frozen=True)
class Ranked:
    """A candidate: ``segment`` is its 0-based number, ``line`` its 1-based line in the text as given."""

    segment: int
    line: int
    value: str
    confidence: float


@dataclass(frozen=True)
class LocateAnswer:
    found: bool
    kind: str
    segment: int
    line: int
    value: str
    confidence: float
    ranking: tuple[Ranked, ...]
    timing_ms: dict[str, float]
    input_tokens: int
    cached_tokens: int


@dataclass(frozen=True)
class _Piece:
    """A segment's tokens, or at most ``_Reader.longest`` of them."""

    segment: int
    ids: list[int]


def locate(
    engine: Engine,
    state: str | Sequence[object],
    question: str,
    *,
    kind: str = "auto",
    top: int = 5,
    request_class: RequestClass = "interactive",
    client: str = "",
    deadline: float | None = None,
    on_progress: OnProgress | None = None,
    cancelled: Cancelled | None = None,
) -> LocateAnswer:
    """Find the line, sentence or record of ``state`` that answers ``question``.

    Raises:
        RequestError: an empty text or question, an unknown kind, a model without a head list for lines.
        EngineError: a head could not be read, the deadline passed, ...
    """
    begun = time.monotonic()
    query = question_text(question)
    if not 1 <= top <= 100:
        raise RequestError(f"top must be 1 to 100, not {top}.", code="bad_top", param="top")
    readout = find_readout(engine, "line", "lines")
    found_kind, segments = segments_of(state, kind)
    if not segments:
        raise RequestError("The text is empty; there is nothing to find in it.", code="empty_state", param="state")
    reader = _Reader(engine, readout, query, request_class, client, deadline, cancelled)
    pieces = reader.pieces([segment.value for segment in segments])
    cut = time.monotonic()
    reader.expect(sum(len(piece.ids) for piece in pieces), on_progress)
    chosen = pieces
    keep = KEEP
    while len(windows := _windows(chosen, reader.room)) > 1:
        chosen = [piece for window in windows for piece in reader.best(window, keep)]
        keep = max(1, keep // 2)  # long segments could fill as many windows again; one of two or more is fewer
    read = time.monotonic()
    shares, nothing = reader.shares(windows[0])
    done = time.monotonic()
    order = sorted(shares, key=lambda segment: -shares[segment])[:top]
    ranking = tuple(Ranked(i, segments[i].line, segments[i].value, shares[i]) for i in order)
    best = ranking[0]
    return LocateAnswer(
        found=is_found(readout, nothing, best.confidence),
        kind=found_kind,
        segment=best.segment,
        line=best.line,
        value=best.value,
        confidence=best.confidence,
        ranking=ranking,
        timing_ms={
            "split": (cut - begun) * 1e3,
            "read": (read - cut) * 1e3,
            "choose": (done - read) * 1e3,
            "total": (done - begun) * 1e3,
        },
        input_tokens=reader.input_tokens,
        cached_tokens=0,
    )


def _windows(pieces: Sequence[_Piece], room: int) -> list[list[_Piece]]:
    """Consecutive pieces in as few windows as ``room`` tokens allow, all of about the same size.

    As no piece is longer than half of ``room``, every window but the last holds two or more.
    """
    total = sum(len(piece.ids) for piece in pieces)
    count = -(-total // room)
    goal = min(room, -(-total // count))
    windows: list[list[_Piece]] = [[]]
    size = 0
    for piece in pieces:
        if windows[-1] and (size + len(piece.ids) > room or size >= goal):
            windows.append([])
            size = 0
        windows[-1].append(piece)
        size += len(piece.ids)
    return windows


class _Reader:
    """Asks one question of windows of pieces."""

    def __init__(
        self,
        engine: Engine,
        readout: Readout,
        query: str,
        request_class: RequestClass,
        client: str,
        deadline: float | None,
        cancelled: Cancelled | None,
    ) -> None:
        self._engine = engine
        self._readout = readout
        self._class: RequestClass = request_class
        self._client = client
        self._deadline = deadline
        self._cancelled = cancelled
        self._label = label_of(query)
        self._tokenizer = engine.tokenizer
        parts = prompt_parts(readout, self._tokenizer)
        self._before = parts.before
        self._rest = parts.between + self._tokenizer.encode(query) + parts.after
        space = engine.info.context_length - len(self._before) - len(self._rest)
        self.room = min(WINDOW, space)
        """Tokens of text that fit a window beside the question."""
        self.longest = min(LONGEST, self.room // 2)
        if self.room < LEAST:
            raise RequestError(
                f"The question has {len(self._rest):,} tokens; ask it in fewer words.", code="question_too_long"
            )
        self.input_tokens = 0
        self._total = 0
        self._on_progress: OnProgress | None = None

    def pieces(self, values: Sequence[str]) -> list[_Piece]:
        out: list[_Piece] = []
        for number, value in enumerate(values):
            ids = self._tokenizer.encode(value + "\n")
            out.extend(_Piece(number, ids[at : at + self.longest]) for at in range(0, len(ids), self.longest))
        return out

    def expect(self, tokens: int, on_progress: OnProgress | None) -> None:
        """Progress counts the first reading of every piece."""
        self._total = tokens
        self._on_progress = on_progress

    def best(self, window: Sequence[_Piece], keep: int) -> list[_Piece]:
        """The ``keep`` pieces with most attention, in their order."""
        masses, _ = self._masses(window)
        order = np.sort(np.argsort(-masses, kind="stable")[:keep])
        return [window[i] for i in order]

    def shares(self, window: Sequence[_Piece]) -> tuple[dict[int, float], float]:
        """Attention on each segment, and on the key that stands for no answer; together 1."""
        masses, nothing = self._masses(window)
        shares: dict[int, float] = {}
        for piece, mass in zip(window, masses, strict=True):
            shares[piece.segment] = shares.get(piece.segment, 0.0) + float(mass) * (1 - nothing)
        return shares, nothing

    def _masses(self, window: Sequence[_Piece]) -> tuple[np.ndarray, float]:
        ids = [token for piece in window for token in piece.ids]
        start = len(self._before)
        answer = self._read(Prompt((*self._before, *ids, *self._rest)), start, start + len(ids))
        edges = np.cumsum([0, *(len(piece.ids) for piece in window[:-1])])
        return np.add.reduceat(answer.keys, edges), answer.nothing

    def _read(self, prompt: Prompt, start: int, end: int) -> Reading:
        from engine.engine import new_id

        before = self.input_tokens

        def progress(done: int, _total: int) -> None:
            if self._on_progress is not None:
                self._on_progress(min(before + done, self._total), self._total)

        request = ReadRequest(
            id=new_id("locate"),
            prompt=prompt,
            heads=head_span(self._readout, start, end),
            request_class=self._class,
            client=self._client,
            label=self._label,
            deadline=self._deadline,
        )
        scores, finished = run(self._engine, request, progress, self._cancelled)
        assert scores is not None
        assert scores.heads is not None
        self.input_tokens += finished.usage.prompt_tokens
        return reading(self._readout, scores.heads, finished.usage)
