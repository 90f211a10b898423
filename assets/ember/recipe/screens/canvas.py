"""Drawing in device pixels with anti-aliased corners, cached fonts and icons, and the list of what was drawn where."""

from __future__ import annotations

import io
import random
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from .icons import Concepts
from .pack import Pack

Box = tuple[float, float, float, float]
Colour = tuple[int, int, int]
_FONTS: dict[tuple[int, int, int], ImageFont.FreeTypeFont] = {}
_COMMON = frozenset(list(dict.fromkeys(concept.key for concept in Concepts().by_name.values()))[:200])
"""The meanings that most programs show: `concepts.txt` begins with them."""


class Kit:
    """The pack as the drawer uses it: icons grouped by set, fonts by style. One a process; bitmaps decode on demand."""

    def __init__(self, path: Path | str) -> None:
        self.path, self.pack = str(path), Pack(path)
        self.strings: dict[str, Any] = self.pack.index["strings"]
        self.fonts: dict[str, list[list[Any]]] = self.pack.index["fonts"]
        self.icons: list[dict[str, Any]] = self.pack.index["icons"]
        self.sets: dict[bool, dict[str, list[int]]] = {False: {}, True: {}}
        for i, icon in enumerate(self.icons):
            self.sets[icon["held"]].setdefault(icon["set"], []).append(i)
        self.glosses: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
        """(word, its meaning) for training and for held-out screens, as far as the data has them."""
        self._meant: dict[str, tuple[dict[Any, list[int]], list[float]]] = {}
        self._bitmap = lru_cache(maxsize=3000)(self._decode)

    def _meanings(self, icons: list[int]) -> tuple[dict[Any, list[int]], list[float]]:
        """A set's icons with a known function by meaning, and the running sums of the meanings' weights."""
        name = self.icons[icons[0]]["set"]
        if name not in self._meant:
            groups: dict[Any, list[int]] = {}
            for i in icons:
                if self.icons[i]["functions"]:
                    groups.setdefault(self.icons[i]["concept"] or i, []).append(i)
            self._meant[name] = groups, list(accumulate(3.0 if key in _COMMON else 1.0 for key in groups))
        return self._meant[name]

    def choose(self, icons: list[int], rng: random.Random, known: float) -> int:
        """One of a set's icons. With probability `known` one whose function is known, every meaning alike and common
        ones three times as often: a set holds thousands of signs, an interface shows few of them."""
        groups, sums = self._meanings(icons)
        if not groups or rng.random() >= known:
            return rng.choice(icons)
        return rng.choice(rng.choices(list(groups.values()), cum_weights=sums)[0])

    def meaning(self, icons: list[int], concept: str, rng: random.Random) -> int | None:
        """One of a set's icons for `concept`, if it has any."""
        found = self._meanings(icons)[0].get(concept)
        return rng.choice(found) if found else None

    def _decode(self, icon: int, size: int) -> np.ndarray:
        """uint8 [size, size] alpha of a mono icon or [size, size, 4] of a coloured one."""
        entry = self.icons[icon]
        sizes = sorted(map(int, entry["blobs"]))
        source = next((s for s in sizes if s >= size), sizes[-1])
        if source != size and sizes[-1] > source and size > 20:
            source = sizes[-1]
        image = Image.open(io.BytesIO(self.pack.blob(entry["blobs"][str(source)])))
        image = image.convert("L") if entry["mono"] else image.convert("RGBA")
        if image.width != size:
            image = image.resize((size, size), Image.Resampling.BOX if source % size == 0 else Image.Resampling.LANCZOS)
        return np.asarray(image)

    def bitmap(self, icon: int, size: int) -> np.ndarray:
        return self._bitmap(icon, size)

    def font(self, blob: int, size: int) -> ImageFont.FreeTypeFont:
        key = (id(self), blob, size)
        if key not in _FONTS:
            if len(_FONTS) > 300:
                _FONTS.clear()
            _FONTS[key] = ImageFont.truetype(
                io.BytesIO(self.pack.blob(blob)), size, layout_engine=ImageFont.Layout.BASIC
            )
        return _FONTS[key]


@lru_cache(maxsize=256)
def _corner(radius: int) -> Image.Image:
    """Alpha of the top-left quarter of a disc of `radius` px, from four times the resolution."""
    big = Image.new("L", (radius * 4, radius * 4))
    ImageDraw.Draw(big).pieslice((0, 0, radius * 8, radius * 8), 180, 270, fill=255)
    return big.resize((radius, radius), Image.Resampling.BOX)


@dataclass
class Look:
    """Colours, fonts and metrics of one interface. Sizes are in device pixels; `s` is the HiDPI factor."""

    s: float
    dark: bool
    bg: Colour
    panel: Colour
    base: Colour
    fg: Colour
    dim: Colour
    line: Colour
    button: Colour
    accent: Colour
    radius: int
    size: int
    font: int
    bold: int
    mono: int
    serif: int
    flat: bool
    icons: list[int] = field(default_factory=list)
    icon_tint: Colour | None = None


class Canvas:
    """A picture being drawn together with its items (`box`, `kind`, `queries`)."""

    def __init__(self, kit: Kit, rng: random.Random, width: int, height: int, background: Colour) -> None:
        self.kit, self.rng, self.w, self.h = kit, rng, width, height
        self.image = Image.new("RGB", (width, height), background)
        self.draw = ImageDraw.Draw(self.image)
        self.items: list[dict[str, Any]] = []

    # -- shapes
    def rect(
        self, box: Box, fill: Colour | None = None, outline: Colour | None = None, radius: int = 0, width: int = 1
    ) -> None:
        x0, y0, x1, y1 = (round(v) for v in box)
        if x1 <= x0 or y1 <= y0:
            return
        radius = min(radius, (x1 - x0) // 2, (y1 - y0) // 2)
        if radius < 2:
            self.draw.rectangle((x0, y0, x1 - 1, y1 - 1), fill=fill, outline=outline, width=width)
            return
        if outline is not None:
            self._fill(x0, y0, x1, y1, outline, radius)
            inner = fill if fill is not None else self._under(x0 + radius, y0 + radius)
            self._fill(x0 + width, y0 + width, x1 - width, y1 - width, inner, max(1, radius - width))
        elif fill is not None:
            self._fill(x0, y0, x1, y1, fill, radius)

    def _under(self, x: int, y: int) -> Colour:
        return self.image.getpixel((min(max(x, 0), self.w - 1), min(max(y, 0), self.h - 1)))  # type: ignore[return-value]

    def _fill(self, x0: int, y0: int, x1: int, y1: int, fill: Colour, r: int) -> None:
        if x1 <= x0 or y1 <= y0:
            return
        r = min(r, (x1 - x0) // 2, (y1 - y0) // 2)
        if r < 1:
            self.draw.rectangle((x0, y0, x1 - 1, y1 - 1), fill=fill)
            return
        if x1 - x0 > 2 * r:
            self.draw.rectangle((x0 + r, y0, x1 - r - 1, y1 - 1), fill=fill)
        if y1 - y0 > 2 * r:
            self.draw.rectangle((x0, y0 + r, x1 - 1, y1 - r - 1), fill=fill)
        mask = _corner(r)
        flip, turn = mask.transpose(Image.Transpose.FLIP_LEFT_RIGHT), mask.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
        both = flip.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
        for part, x, y in ((mask, x0, y0), (flip, x1 - r, y0), (turn, x0, y1 - r), (both, x1 - r, y1 - r)):
            self.image.paste(fill, (x, y), part)

    def line(self, x0: float, y0: float, x1: float, y1: float, fill: Colour, width: int = 1) -> None:
        self.draw.line((round(x0), round(y0), round(x1), round(y1)), fill=fill, width=width)

    def disc(self, cx: float, cy: float, r: float, fill: Colour, outline: Colour | None = None) -> None:
        """A filled circle with smooth edges."""
        r = max(2, round(r))
        x, y = round(cx - r), round(cy - r)
        if outline is not None:
            self._fill(x, y, x + 2 * r, y + 2 * r, outline, r)
            self._fill(x + 1, y + 1, x + 2 * r - 1, y + 2 * r - 1, fill, r - 1)
        else:
            self._fill(x, y, x + 2 * r, y + 2 * r, fill, r)

    def glyph(self, points: list[tuple[float, float]], fill: Colour, width: float) -> None:
        """A smooth polyline (window-control crosses, check marks, arrows), drawn at four times the size."""
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        pad = width + 1
        x0, y0 = int(min(xs) - pad), int(min(ys) - pad)
        w, h = int(max(xs) + pad) - x0 + 1, int(max(ys) + pad) - y0 + 1
        big = Image.new("L", (w * 4, h * 4))
        ImageDraw.Draw(big).line(
            [((x - x0) * 4, (y - y0) * 4) for x, y in points], fill=255, width=max(3, round(width * 4)), joint="curve"
        )
        self.image.paste(fill, (x0, y0), big.resize((w, h), Image.Resampling.BOX))

    # -- text and icons
    def width_of(self, text: str, font: int, size: int) -> float:
        return self.kit.font(font, size).getlength(text)

    def text(
        self, x: float, y: float, text: str, fill: Colour, font: int, size: int, most: float | None = None
    ) -> tuple[Box, str]:
        """Draw one line with its top at `y`; too long ones end in an ellipsis. Returns its box and what is shown."""
        face = self.kit.font(font, size)
        length = face.getlength(text)
        if most is not None and length > most:
            keep = max(1, int(len(text) * most / length) - 1)
            while keep > 1 and face.getlength(text[:keep] + "…") > most:
                keep -= 1
            text = text[:keep].rstrip() + "…"
            length = face.getlength(text)
        self.draw.text((round(x), round(y)), text, fill=fill, font=face)
        return (x, y, x + length, y + size * 1.25), text

    def icon(self, x: float, y: float, size: int, icon: int, tint: Colour, faint: bool = False) -> None:
        bitmap = self.kit.bitmap(icon, size)
        at = (round(x), round(y))
        if bitmap.ndim == 2:
            mask = Image.fromarray(bitmap if not faint else bitmap // 2)
            self.image.paste(tint, at, mask)
        else:
            picture = Image.fromarray(bitmap)
            alpha = picture.getchannel("A")
            self.image.paste(picture.convert("RGB"), at, alpha if not faint else alpha.point(lambda a: a // 2))

    # -- items
    def add(self, box: Box, kind: str, queries: list[dict[str, str]]) -> None:
        x0, y0, x1, y1 = max(0.0, box[0]), max(0.0, box[1]), min(float(self.w), box[2]), min(float(self.h), box[3])
        area = max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
        if queries and x1 - x0 >= 4 and y1 - y0 >= 4 and (x1 - x0) * (y1 - y0) > 0.7 * area:
            self.items.append({"box": [round(v, 1) for v in (x0, y0, x1, y1)], "kind": kind, "queries": queries})

    def cover(self, box: Box) -> None:
        """Forget the items that something drawn into `box` hides."""

        def hidden(item: dict[str, Any]) -> bool:
            x0, y0, x1, y1 = item["box"]
            over = max(0.0, min(x1, box[2]) - max(x0, box[0])) * max(0.0, min(y1, box[3]) - max(y0, box[1]))
            return over > 0.1 * (x1 - x0) * (y1 - y0)

        self.items = [item for item in self.items if not hidden(item)]
