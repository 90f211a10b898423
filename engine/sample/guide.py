"""What one answer is held to while it is written: a grammar, and an end to its reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future

import torch
from torch import Tensor

from engine.sample.grammar import Matcher, mask_words, set_bits
from engine.text.thinking import CLOSE


class ThinkingBudget:
    """Closes the reasoning block that a prompt opened, once it has so many tokens."""

    def __init__(self, tokens: int, closing: Sequence[int], token_bytes: Sequence[bytes]) -> None:
        """
        Args:
            tokens: how many may be drawn freely.
            closing: the tokens that close the block.
            token_bytes: the bytes of every token, by id.
        """
        self._left = tokens
        self._closing = list(closing)
        self._bytes = token_bytes
        self._tail = b""
        self._open = True

    @property
    def forced(self) -> int | None:
        """The one token that may come next; None leaves it open."""
        return self._closing[0] if self._open and self._left <= 0 else None

    def accept(self, token: int) -> None:
        if not self._open:
            return
        if self._left <= 0:
            del self._closing[0]
            self._open = bool(self._closing)
            return
        self._left -= 1
        # The model may close it by itself, in one token or in several.
        self._tail = self._tail[-len(CLOSE) :] + (self._bytes[token] if token < len(self._bytes) else b"")
        self._open = CLOSE.encode() not in self._tail


class Guide:
    """Masks for one answer, the next one worked out on another thread while the model computes logits for it."""

    def __init__(self, vocabulary: int, matcher: Matcher | None = None, budget: ThinkingBudget | None = None) -> None:
        self._matcher = matcher
        self._budget = budget
        self._bits = torch.empty(mask_words(vocabulary), dtype=torch.int32)
        self._forced = torch.empty_like(self._bits)
        self._work: Future[None] | None = None

    def start(self, pool: Executor) -> None:
        """Begin to work out the first mask."""
        if self._matcher is not None:
            self._work = pool.submit(self._matcher.fill, self._bits)

    def accept(self, token: int, pool: Executor) -> None:
        """Go on by a token and begin to work out the next mask."""
        if self._budget is not None:
            self._budget.accept(token)
        if self._matcher is not None:
            self._work = pool.submit(self._go_on, self._matcher, token)

    def ready(self, timeout: float | None = 0.0) -> bool:
        """Whether the mask is there; waits for it up to ``timeout`` seconds (None: as long as it takes)."""
        if self._work is None:
            return True
        if timeout == 0.0 or self._work.done():
            return self._work.done()
        try:
            self._work.exception(timeout)
        except TimeoutError:
            return False
        return True

    def mask(self) -> Tensor | None:
        """int32 [ceil(V / 32)], as :meth:`Matcher.fill` writes it; None when any token may come. Valid until
        :meth:`accept`. Waits until it is there. Raises ``EngineError`` when the grammar cannot be followed."""
        if self._work is not None:
            self._work.result()
        forced = self._budget.forced if self._budget is not None else None
        if forced is not None:
            set_bits(self._forced, (forced,))
            return self._forced
        return self._bits if self._matcher is not None else None

    def _go_on(self, matcher: Matcher, token: int) -> None:
        matcher.accept(token)
        matcher.fill(self._bits)
