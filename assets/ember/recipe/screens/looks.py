"""Colours, fonts and metrics for drawn interfaces: toolkits' palettes with variation, light and dark."""

from __future__ import annotations

import random

from .canvas import Colour, Kit, Look

_ACCENTS = [
    (53, 132, 228),
    (0, 120, 212),
    (38, 162, 105),
    (230, 97, 0),
    (145, 65, 172),
    (192, 28, 40),
    (61, 174, 233),
    (0, 150, 136),
    (98, 0, 238),
    (233, 84, 32),
    (13, 110, 253),
    (72, 95, 199),
    (0, 209, 178),
    (33, 133, 208),
    (9, 105, 218),
    (32, 32, 40),
]
_LIGHT = [
    (246, 245, 244),
    (239, 240, 241),
    (240, 240, 240),
    (255, 255, 255),
    (232, 232, 231),
    (214, 214, 214),
    (245, 246, 247),
    (236, 233, 216),
]
_DARK = [
    (36, 36, 36),
    (49, 54, 59),
    (43, 43, 43),
    (30, 30, 30),
    (24, 26, 27),
    (13, 17, 23),
    (40, 44, 52),
    (56, 60, 74),
    (18, 18, 18),
    (60, 63, 65),
]


def mix(a: Colour, b: Colour, t: float) -> Colour:
    return tuple(round(x + (y - x) * t) for x, y in zip(a, b, strict=True))  # type: ignore[return-value]


def make_look(kit: Kit, rng: random.Random, scale: float, held: bool, web: bool = False) -> Look:
    """A look at HiDPI factor `scale`; text is 10–16 px at factor 1."""
    dark = rng.random() < 0.42
    bg = rng.choice(
        _DARK if dark else _LIGHT if not web else [(255, 255, 255), (255, 255, 255), (250, 250, 252), (246, 248, 250)]
    )
    shift = tuple(rng.randint(-5, 5) for _ in range(3))
    bg = tuple(max(0, min(255, c + d)) for c, d in zip(bg, shift, strict=True))
    far: Colour = (255, 255, 255) if dark else (0, 0, 0)
    fg = mix(bg, far, rng.uniform(0.72, 0.97))
    fonts = list(kit.fonts["sans"])
    plain = [f for f in fonts if "Bold" not in f[0] and "Semi" not in f[0]]
    name, font = rng.choice(plain)
    family = name.split("-")[0]
    bold = next(
        (b for n, b in fonts if n.split("-")[0] == family and ("Bold" in n or "Semi" in n or "Medium" in n)), font
    )
    serif = rng.choice(kit.fonts["serif"])[1]
    size = max(
        9, round(rng.choice([11, 12, 12, 13, 13, 14, 14, 15, 16] if not web else [13, 14, 14, 15, 16, 16]) * scale)
    )
    sets = kit.sets[held]
    office = [k for k in sets if k.startswith("office")]
    mono_sets = [k for k in sets if kit.icons[sets[k][0]]["mono"]]
    colour_sets = [k for k in sets if k not in mono_sets and k not in office]
    group = mono_sets if web or rng.random() < 0.4 else colour_sets if rng.random() < 0.75 or not office else office
    icon_set = rng.choice(group or list(sets))
    accent = rng.choice(_ACCENTS)
    return Look(
        s=scale,
        dark=dark,
        bg=bg,
        panel=mix(bg, far, rng.uniform(0.02, 0.07)),
        base=mix(bg, (0, 0, 0) if dark else (255, 255, 255), rng.uniform(0.2, 0.9)),
        fg=fg,
        dim=mix(bg, fg, rng.uniform(0.5, 0.75)),
        line=mix(bg, far, rng.uniform(0.12, 0.3)),
        button=mix(bg, far, rng.choice([0.0, 0.04, 0.07, 0.12])),
        accent=accent,
        radius=round(rng.choice([0, 2, 3, 4, 6, 8, 12]) * scale),
        size=size,
        font=font if rng.random() < 0.94 or web else serif,
        bold=bold,
        mono=rng.choice(kit.fonts["mono"])[1],
        serif=serif,
        flat=rng.random() < 0.35,
        icons=sets[icon_set],
        icon_tint=None if rng.random() < 0.8 else accent,
    )
