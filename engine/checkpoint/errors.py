"""The one exception of this package."""

from __future__ import annotations

from engine.messages import EngineError


class CheckpointError(EngineError):
    """A checkpoint that cannot be used: one sentence naming the file, the tensor and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="bad_checkpoint")
