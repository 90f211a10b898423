"""Telling reasoning from answer while text streams in: ``<think>…</think>`` split at any boundary."""

from __future__ import annotations

from dataclasses import dataclass

OPEN, CLOSE = "<think>", "</think>"
CLOSING = f"\n{CLOSE}\n\n"
"""How models of the family end a block."""


@dataclass(frozen=True)
class Split:
    """What a piece of text added to either side."""

    reasoning: str = ""
    content: str = ""


class ThinkingSplitter:
    """Feed it text in any pieces; together they always give the same split.

    A block counts as reasoning only where the answer begins (``opened`` says that the prompt opened it already). White
    space around the block belongs to neither side. Tags later in the answer are content.
    """

    def __init__(self, *, opened: bool = False) -> None:
        self._state = "reasoning" if opened else "start"
        self._held = ""
        self._seen = False
        """Something of the current side was given out."""

    @property
    def closed(self) -> bool:
        """No more reasoning comes: its block has ended, or there is none."""
        return self._state == "content"

    def push(self, text: str) -> Split:
        self._held += text
        reasoning, content = "", ""
        while True:
            if self._state == "start":
                begun = self._held.lstrip()
                if begun.startswith(OPEN):
                    self._held, self._state = begun[len(OPEN) :], "reasoning"
                elif OPEN.startswith(begun):
                    return Split(reasoning, content)
                else:
                    self._state, self._seen = "content", True
            elif self._state == "reasoning":
                piece, closed = self._until_close()
                reasoning += piece
                if not closed:
                    return Split(reasoning, content)
                self._state, self._seen = "content", False
            else:
                piece = self._held if self._seen else self._held.lstrip()
                self._held = ""
                self._seen = self._seen or bool(piece)
                return Split(reasoning, content + piece)

    def flush(self) -> Split:
        """What was held back, at the end of the answer."""
        held, self._held = self._held, ""
        if self._state == "reasoning":
            return Split(reasoning=held.rstrip() if self._seen else held.strip())
        return Split(content=held)

    def _until_close(self) -> tuple[str, bool]:
        """Reasoning that is certain now. Trailing white space and a possible beginning of the tag are held back."""
        if not self._seen:
            self._held = self._held.lstrip()
        at = self._held.find(CLOSE)
        if at >= 0:
            piece, self._held = self._held[:at].rstrip(), self._held[at + len(CLOSE) :]
            return piece, True
        keep = next((n for n in range(len(CLOSE) - 1, 0, -1) if self._held.endswith(CLOSE[:n])), 0)
        piece = self._held[: len(self._held) - keep].rstrip()
        self._held = self._held[len(piece) :]
        self._seen = self._seen or bool(piece)
        return piece, False


def split_reasoning(text: str, *, opened: bool = False) -> tuple[str, str]:
    """(reasoning, content) of a whole answer."""
    splitter = ThinkingSplitter(opened=opened)
    first, rest = splitter.push(text), splitter.flush()
    return first.reasoning + rest.reasoning, first.content + rest.content
