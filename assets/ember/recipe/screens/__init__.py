"""Screens with questions for Ember's pointing: icon sets, interface strings, drawn screens and real renderings."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def drawer(
    pack: Path | str, held_out: bool = False, glosses: list[tuple[str, str]] | None = None
) -> Callable[[random.Random, int, int], tuple[np.ndarray, list[dict[str, Any]]]]:
    """A `draw(rng, width, height)` over a pack; with `held_out` from what training never sees. `glosses` are words with
    their meanings, shown as labels and asked for by what they mean."""
    from .draw import draw, kit

    kit(pack).glosses[held_out] = glosses or []
    return partial(draw, held=held_out)
