"""Tokens of one answer to text, as they come: whole characters only, ended by stop strings."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from engine.text.tokenizer import Tokenizer


class TextStream:
    """Turns token ids into text that may be shown at once.

    Bytes of an unfinished character, and text that may turn out to be the beginning of a stop string, are held back
    until they are decided.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._bytes = tokenizer.token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop = tuple(s for s in stop if s)
        self._held = ""
        self.stopped: str | None = None
        """The stop string that was met; nothing comes out after it."""

    def push(self, token: int) -> str:
        """The text that became certain with this token, without the stop string and what follows it."""
        data = self._bytes[token] if 0 <= token < len(self._bytes) else b""
        return self._release(self._decoder.decode(data))

    def flush(self) -> str:
        """What was held back, at the end of the answer."""
        text = self._release(self._decoder.decode(b"", final=True))
        if self.stopped is None:
            text, self._held = text + self._held, ""
        return text

    def _release(self, text: str) -> str:
        if self.stopped is not None:
            return ""
        if not self._stop:
            return text
        text = self._held + text
        # The one that is complete first, whatever pieces the text comes in; of two, the longer.
        found = min(((at + len(s), at, s) for s in self._stop if (at := text.find(s)) >= 0), default=None)
        if found is not None:
            _, at, self.stopped = found
            self._held = ""
            return text[:at]
        keep = max(overlap(text, s) for s in self._stop)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def overlap(text: str, stop: str) -> int:
    """Length of the longest end of ``text`` that begins ``stop`` and is shorter than it."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
