"""An answer that is being written, and what is kept of it when it ends."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from engine.messages import Finished
from ignis_desktop.engine_thread import Reply

_SAVE_SECONDS = 2.0
"""How often an answer that is being written is kept, in case the program dies."""


@dataclass
class Running:
    """Times are monotonic seconds; ``message`` is the answer's id."""

    reply: Reply
    message: str
    began: float
    progress: tuple[int, int] = (0, 0)
    """Prompt tokens read, prompt tokens in all."""
    thought: bool = False
    thinking_ended: float | None = None
    saved: float = 0.0

    def take(self, thought: str, text: str) -> bool:
        """Notes what has arrived; True when it is time to keep it."""
        now = time.monotonic()
        self.thought = self.thought or bool(thought)
        if text and self.thought and self.thinking_ended is None:
            self.thinking_ended = now
        due = now - self.saved > _SAVE_SECONDS
        if due:
            self.saved = now
        return due

    def numbers(self, finished: Finished) -> dict[str, Any]:
        """What the engine reported, as it is kept with the message."""
        numbers: dict[str, Any] = {
            "reason": finished.reason,
            "prompt_tokens": finished.usage.prompt_tokens,
            "cached_tokens": finished.usage.cached_tokens,
            "output_tokens": finished.usage.output_tokens,
            "decode_seconds": finished.decode_seconds,
            "first_token_seconds": finished.queue_seconds + finished.prefill_seconds,
            "seed": finished.seed,
        }
        if self.thought:
            numbers["thinking_seconds"] = (self.thinking_ended or time.monotonic()) - self.began
        return numbers
