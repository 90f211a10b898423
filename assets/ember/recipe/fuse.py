"""Optional ``torch.compile`` for the memory-bound pieces of the forward.

Only small functions with dynamic shapes are compiled: their graphs are reused for every bucket, so the whole set
compiles once (and once more without gradients). ``enable()`` switches them on; until then they run eagerly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

_compiled: dict[Callable, Callable] = {}
_state = {"on": False}


def enable() -> None:
    """Compile the fused functions from their next call on; a graph that fails to compile stays eager."""
    torch._dynamo.config.suppress_errors = True
    torch._dynamo.config.recompile_limit = 64
    _state["on"] = True


def fused(function: Callable) -> Callable:
    """Mark a pure tensor function as worth fusing."""

    @functools.wraps(function)
    def call(*args):
        if not _state["on"]:
            return function(*args)
        if function not in _compiled:
            _compiled[function] = torch.compile(function, dynamic=True)
        return _compiled[function](*args)

    return call
