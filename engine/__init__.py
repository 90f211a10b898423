"""The inference engine: one model of the ``qwen3_5`` family, eight lanes, answers with and without generating."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.messages import EngineError

if TYPE_CHECKING:
    from engine.engine import Engine

__all__ = ["Engine", "EngineConfig", "EngineError"]


def __getattr__(name: str) -> object:
    """``Engine`` brings torch, which takes seconds to import: only for those who use it, not for its messages."""
    if name == "Engine":
        from engine.engine import Engine

        return Engine
    raise AttributeError(name)
