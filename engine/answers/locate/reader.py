"""Asks one question of windows of pieces, and says what the heads think of each piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.answers.asking import OnProgress, Terms, head_span, prompt_parts, run
from engine.answers.locate.combine import Evidence, Scores, evidence
from engine.answers.locate.kept import kept_windows, key_of
from engine.answers.locate.windows import Piece
from engine.answers.readouts import Readout
from engine.messages import PrefixGoneError, Prompt, RequestError, RetainRequest, label_of

if TYPE_CHECKING:
    from engine.engine import Engine

WINDOW = 2048
"""Tokens of text in a window, unless the head list says what it was chosen on."""
LONGEST = 512
"""Tokens of a segment that are read at once; a longer one is read in pieces and answers with any of them."""
LEAST = 128
"""Tokens of text that must fit beside a question."""


class Reader:
    """``room``: tokens of text that fit a window beside the question; ``longest``: of a piece."""

    def __init__(
        self, engine: Engine, readout: Readout, query: str, terms: Terms, on_progress: OnProgress | None
    ) -> None:
        """Raises ``RequestError`` when the question leaves no room for a text."""
        self.readout = readout
        self.terms = terms
        self.input_tokens = 0
        self.cached_tokens = 0
        self._engine = engine
        self._label = label_of(query)
        self._tokenizer = engine.tokenizer
        self._kept = kept_windows(engine)
        self.most_kept = self._kept.most
        """Windows whose state is kept at once."""
        self._on_progress = on_progress
        self._done = self._told = self._total = 0
        parts = prompt_parts(readout, self._tokenizer)
        self._before = tuple(parts.before)
        asked = [query] if readout.baseline is None else [query, readout.baseline]
        self._ends = [(*parts.between, *self._tokenizer.encode(text), *parts.after) for text in asked]
        longest = max(map(len, self._ends))
        self.room = min(readout.max_keys or WINDOW, engine.info.context_length - len(self._before) - longest)
        self.longest = min(LONGEST, self.room // 2)
        if self.room < LEAST:
            raise RequestError(f"The question has {longest:,} tokens; ask it in fewer words.", code="question_too_long")

    def ids(self, text: str) -> list[int]:
        """A segment's tokens, its newline included."""
        return self._tokenizer.encode(text + "\n")

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(self._tokenizer.encode(text)) for text in texts]

    def expect(self, tokens: int) -> None:
        """Progress counts the first reading of the text, so many tokens."""
        self._total = tokens

    def read(self, window: Sequence[Piece], header: Sequence[int] = (), *, keep: bool = False) -> Evidence:
        """What the heads say of a window's pieces.

        Args:
            header: tokens before the pieces that are no answer themselves.
            keep: whether other questions are likely to be asked about the same window.
        """
        ids = tuple(token for piece in window for token in piece.ids)
        start = len(self._before) + len(header)
        prefix = (*self._before, *header, *ids)
        span = (start, start + len(ids))
        found = [self._scores(prefix, end, span, keep=keep or len(self._ends) > 1) for end in self._ends]
        self._done += len(ids)
        return evidence(
            self.readout, found[0], found[1] if len(found) > 1 else None, [len(piece.ids) for piece in window]
        )

    def _scores(self, prefix: tuple[int, ...], end: tuple[int, ...], span: tuple[int, int], *, keep: bool) -> Scores:
        if not keep:
            return self._read(Prompt((*prefix, *end)), span, None, len(prefix))
        layers = 1 + self.readout.layers[-1]
        key = key_of(prefix, layers)
        held = self._kept.find(key)
        if held is not None:
            try:
                scores = self._read(Prompt(end), span, held, 0)
                self.input_tokens += len(prefix)
                self.cached_tokens += len(prefix)
                return scores
            except PrefixGoneError:
                self._kept.forget(key, held)
        held = self._retain(prefix, key, layers)
        try:
            return self._read(Prompt(end), span, held, 0)
        except PrefixGoneError:  # others' state needed the room at once
            self._kept.forget(key, held)
            return self._read(Prompt((*prefix, *end)), span, None, len(prefix))

    def _retain(self, prefix: tuple[int, ...], key: bytes, layers: int) -> str:
        from engine.engine import new_id

        terms = self.terms
        request = RetainRequest(
            id=new_id("window"),
            prompt=Prompt(prefix),
            layers=layers,
            request_class=terms.request_class,
            client=terms.client,
            label=self._label,
            deadline=terms.deadline,
        )
        try:
            _, finished = run(self._engine, request, self._progress(len(prefix)), terms.cancelled)
        except BaseException:
            self._engine.release(request.id)  # it may have been retained just before the asker gave up
            raise
        self.input_tokens += len(prefix)
        self.cached_tokens += finished.usage.cached_tokens
        self._kept.put(self._engine, key, request.id)
        return request.id

    def _read(self, prompt: Prompt, span: tuple[int, int], prefix: str | None, counts: int) -> Scores:
        request = self.terms.read(prompt, head_span(self.readout, *span), self._label, prefix)
        scores, _ = run(self._engine, request, self._progress(counts), self.terms.cancelled)
        assert scores is not None
        assert scores.heads is not None
        self.input_tokens += len(prompt)
        out: Scores = np.asarray(scores.heads)
        return out

    def _progress(self, counts: int) -> OnProgress | None:
        """Told how much of a request was read, of which up to ``counts`` tokens are text."""
        if self._on_progress is None:
            return None
        tell, done = self._on_progress, self._done

        def progress(read: int, _total: int) -> None:
            self._told = max(self._told, min(done + min(read, counts), self._total))
            tell(self._told, self._total)

        return progress
