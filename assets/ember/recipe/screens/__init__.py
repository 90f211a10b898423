"""Screens with questions for Ember's pointing: icon sets, interface strings, drawn screens and real renderings."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def drawer(
    pack: Path | str, held_out: bool = False
) -> Callable[[random.Random, int, int], tuple[np.ndarray, list[dict[str, Any]]]]:
    """A `draw(rng, width, height)` over a pack; with `held_out` from what training never sees."""
    from .draw import draw, kit

    kit(pack)
    return partial(draw, held=held_out)
