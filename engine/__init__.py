"""The inference engine: one model of the ``qwen3_5`` family, eight lanes, answers with and without generating."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.messages import EngineError

if TYPE_CHECKING:
    from engine.engine import Engine

# Read once, when torch is loaded: idle threads of a matrix product sleep instead of spinning. Beside other busy
# programs spinning made decoding ten times slower (0.8 against 7.7 tokens/s, two threads on two busy cores).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__all__ = ["Engine", "EngineConfig", "EngineError"]


def __getattr__(name: str) -> object:
    """``Engine`` brings torch, which takes seconds to import: only for those who use it, not for its messages."""
    if name == "Engine":
        from engine.engine import Engine

        return Engine
    raise AttributeError(name)
