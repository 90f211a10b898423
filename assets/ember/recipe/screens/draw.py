"""`draw(rng, width, height)`: one drawn screen with its items."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np

from .canvas import Box, Canvas, Kit
from .desktop import Desktop
from .drawn_web import WebPage
from .looks import make_look
from .words import Words

_opened: dict[str, Kit] = {}


def kit(path: Path | str | None = None) -> Kit:
    """The process's pack: `path` or the file named by EMBER_SCREENS_PACK. Loader workers inherit an opened one."""
    place = path or os.environ.get("EMBER_SCREENS_PACK")
    if place is not None:
        current = _opened.get("kit")
        if current is None or current.path != str(place):
            _opened["kit"] = Kit(place)
    if "kit" not in _opened:
        raise RuntimeError("Set EMBER_SCREENS_PACK to the pack made by `python -m assets.ember.recipe.screens assets`.")
    return _opened["kit"]


def _compose(rng: random.Random, width: int, height: int, scale: float, held: bool) -> tuple[Canvas, Words]:
    """Draw one whole screen: a web page, or desktop windows with panels, dialogs and menus; and its vocabulary."""
    box = kit()
    web = rng.random() < 0.45
    look = make_look(box, rng, scale, held, web)
    words = Words(box, rng, held)
    background = tuple(rng.randint(0, 255) for _ in range(3))
    canvas = Canvas(box, rng, width, height, background if not web else look.bg)  # type: ignore[arg-type]
    full: Box = (0, 0, width, height)
    if web:
        page = WebPage(canvas, look, words)
        if rng.random() < 0.4:
            full = page.browser(full)
        page.page(full)
        if rng.random() < 0.12:
            _dialog(canvas, rng, words, held, scale)
        return canvas, words
    desktop = Desktop(canvas, look, words)
    top = bottom = 0.0
    if rng.random() < 0.4:
        if rng.random() < 0.5:
            top = desktop.panel(True)
        else:
            bottom = desktop.panel(False)
    if rng.random() < 0.55:
        desktop.window((0, top, width, height - bottom))
    else:
        if rng.random() < 0.4:
            desktop.tiles(desktop.u(10), top + desktop.u(10), width * 0.3, height - bottom)
        n = rng.choice([1, 1, 2, 2, 3])
        for i in range(n):
            other = desktop if i == 0 else Desktop(canvas, make_look(box, rng, scale, held), words)
            other.windows = n
            w, h = (
                rng.randint(int(width * 0.45), width - 4),
                rng.randint(int((height - top - bottom) * 0.45), int(height - top - bottom - 2)),
            )
            x, y = rng.randint(0, width - w), top + rng.randint(0, max(0, int(height - top - bottom - h)))
            other.window((x, y, x + w, y + h))
    if rng.random() < 0.2:
        _dialog(canvas, rng, words, held, scale)
    if rng.random() < 0.28:
        desktop.popup(rng.uniform(0, width * 0.7), rng.uniform(0, height * 0.5))
    return canvas, words


def _dialog(canvas: Canvas, rng: random.Random, words: Words, held: bool, scale: float) -> None:
    look = make_look(kit(), rng, scale, held)
    dialog = Desktop(canvas, look, words)
    dialog.windows = 2
    w, h = min(canvas.w - 8, dialog.u(rng.randint(320, 640))), min(canvas.h - 8, dialog.u(rng.randint(130, 520)))
    x, y = (canvas.w - w) / 2, (canvas.h - h) / 2
    dialog.window((x, y, x + w, y + h), dialog=True)


def draw(
    rng: random.Random | int, width: int, height: int, held: bool = False
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """One whole screen: uint8 [height, width, 3] and its items (format: README.md); a seed always gives the same.
    Items without a box are near to what is there, but are not there.

    Large screens are more often drawn at a HiDPI factor. `held` draws from held-out icons, strings and phrases only.
    """
    if isinstance(rng, int):
        rng = random.Random(rng)
    factors = [6, 1.5, 1, 0.4, 0] if width < 1500 else [5, 2, 2, 1, 0] if width < 2300 else [2, 1, 3, 4, 1]
    canvas, words = _compose(rng, width, height, rng.choices([1, 1.25, 1.5, 2, 2.5], factors)[0], held)
    return np.asarray(canvas.image), canvas.items + words.absent
