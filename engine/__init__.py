"""The inference engine: one model of the ``qwen3_5`` family, eight lanes, answers with and without generating."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.messages import EngineError

if TYPE_CHECKING:
    from engine.engine import Engine

# Read once, when torch's OpenMP is loaded: idle threads of a matrix product spin briefly for the next one, then sleep.
# Measured on two cores, tokens/s of one lane (eight), alone / beside four busy programs: always spinning 38 (119), but
# beside nine busy programs 0.8 (2); this 30 (83) / 7 (19); never spinning 20 (58) / 12 (31).
os.environ.setdefault("GOMP_SPINCOUNT", "5000")

__all__ = ["Engine", "EngineConfig", "EngineError"]


def __getattr__(name: str) -> object:
    """``Engine`` brings torch, which takes seconds to import: only for those who use it, not for its messages."""
    if name == "Engine":
        from engine.engine import Engine

        return Engine
    raise AttributeError(name)
