"""Interface elements drawn the way toolkits draw them, each registered with its questions."""

from __future__ import annotations

import itertools

from .canvas import Box, Canvas, Colour, Look
from .looks import mix
from .words import Label, Words


class Widgets:
    """Draws elements with one look on one canvas. Methods take a place in pixels, return the next free coordinate."""

    def __init__(self, canvas: Canvas, look: Look, words: Words) -> None:
        self.c, self.k, self.w, self.rng = canvas, look, words, canvas.rng

    def u(self, px: float) -> int:
        """Logical to device pixels."""
        return round(px * self.k.s)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def string(
        self,
        x: float,
        middle: float,
        text: str,
        colour: Colour | None = None,
        most: float | None = None,
        bold: bool = False,
        size: int | None = None,
    ) -> tuple[Box, str]:
        size = size or self.k.size
        return self.c.text(
            x, middle - size * 0.62, text, colour or self.k.fg, self.k.bold if bold else self.k.font, size, most
        )

    def length(self, text: str, size: int | None = None) -> float:
        return self.c.width_of(text, self.k.font, size or self.k.size)

    def pick_icon(self, kinds: tuple[str, ...] = (), known: float = 0.8) -> int | None:
        """An icon of the look's set whose meaning is still free; mostly of those with a known meaning."""
        icons = self.c.kit.icons
        for _ in range(24):
            i = self.c.kit.choose(self.k.icons, self.rng, known)
            entry = icons[i]
            if kinds and entry["kind"] not in kinds and not entry["mono"]:
                continue
            if self.w.take_icon(entry):
                return i
        return None

    def any_icon(self) -> int:
        return self.rng.choice(self.k.icons)

    # -- buttons
    def button(
        self,
        x: float,
        y: float,
        label: Label | None = None,
        h: int | None = None,
        primary: bool | None = None,
        least: int = 0,
    ) -> float:
        k, rng = self.k, self.rng
        label = label or self.w.label("b", 20)
        if label is None:
            return x
        h = h or round(k.size * rng.choice([1.7, 1.9, 2.1, 2.4]))
        pad = round(k.size * rng.choice([0.6, 0.9, 1.2]))
        icon = self.any_icon() if self.chance(0.15) else None
        side = round(k.size * 1.15)
        w = max(self.length(label.text) + 2 * pad + (side + 5 if icon is not None else 0), least)
        primary = self.chance(0.22) if primary is None else primary
        fill = k.accent if primary else k.button
        colour = (255, 255, 255) if primary else k.fg
        if primary or not (k.flat and self.chance(0.3)):
            self.c.rect((x, y, x + w, y + h), fill, None if primary else k.line, k.radius)
        inner = self.length(label.text) + (side + 5 if icon is not None else 0)
        at = x + (w - inner) / 2
        if icon is not None:
            self.c.icon(at, y + (h - side) / 2, side, icon, colour)
            at += side + 5
        self.string(at, y + h / 2, label.text, colour)
        self.c.add((x, y, x + w, y + h), "button", self.w.ask("button", label))
        return x + w

    def icon_button(
        self,
        x: float,
        middle: float,
        side: int,
        pad: int = 5,
        framed: bool = False,
        kinds: tuple[str, ...] = (),
        tint: Colour | None = None,
    ) -> float:
        """A bare icon to press; returns its right edge (x when no icon is free)."""
        icon = self.pick_icon(kinds)
        if icon is None:
            return x
        k = self.k
        box = (x, middle - side / 2 - pad, x + side + 2 * pad, middle + side / 2 + pad)
        if framed:
            self.c.rect(box, k.button, k.line, k.radius)
        elif self.chance(0.06):
            self.c.rect(box, mix(k.bg, k.accent, 0.25), None, k.radius)
        self.c.icon(x + pad, middle - side / 2, side, icon, tint or k.icon_tint or k.fg, faint=self.chance(0.08))
        self.c.add(box, "icon", self.w.icon_questions(self.c.kit.icons[icon]))
        return box[2]

    # -- choices and fields
    def check(self, x: float, y: float, w: float, kind: str | None = None) -> float:
        k, rng = self.k, self.rng
        kind = kind or rng.choice(["check", "check", "check", "radio", "switch"])
        label = self.w.label("c", max(12, int(w / k.size * 1.7)))
        if label is None:
            return y
        side, on, row = round(k.size * 1.15), self.chance(0.5), round(k.size * rng.choice([1.6, 1.9, 2.2]))
        middle = y + row / 2
        if kind == "switch":
            (x0, _, x1, _), shown = self.string(x, middle, label.text, most=w - side * 2.6)
            right = min(x + w, x1 + side * 1.9 + rng.choice([self.u(12), w]))
            box = (right - side * 1.9, middle - side / 2, right, middle + side / 2)
            self.c.rect(box, k.accent if on else k.line, None, side // 2)
            self.c.disc(box[2] - side / 2 if on else box[0] + side / 2, middle, side * 0.4, (250, 250, 250))
            target = box if self.chance(0.5) else (x0, box[1], right, box[3])
        else:
            box = (x, middle - side / 2, x + side, middle + side / 2)
            if kind == "radio":
                self.c.disc(x + side / 2, middle, side / 2, k.base, k.accent if on else k.dim)
                if on:
                    self.c.disc(x + side / 2, middle, side * 0.25, k.accent)
            else:
                self.c.rect(box, k.accent if on else k.base, None if on else k.dim, min(k.radius, self.u(3)))
                if on:
                    self.c.glyph(
                        [
                            (x + side * 0.22, middle),
                            (x + side * 0.42, middle + side * 0.22),
                            (x + side * 0.8, middle - side * 0.25),
                        ],
                        (255, 255, 255),
                        max(1.2, side / 9),
                    )
            (_, _, x1, _), shown = self.string(x + side + self.u(6), middle, label.text, most=w - side - self.u(8))
            target = (x, middle - side * 0.6, x1, middle + side * 0.6)
        self.c.add(target, kind, self.w.ask(kind, label, shown))
        return y + row

    def field(self, x: float, y: float, w: float, above: bool = False, label_width: float | None = None) -> float:
        k, rng = self.k, self.rng
        label = self.w.label("f", 22)
        if label is None:
            return y
        h = round(k.size * rng.choice([1.7, 2.0, 2.3]))
        shown = label.text + rng.choice([":", ":", "", " *"])
        if above:
            self.string(x, y + k.size * 0.7, shown)
            y += round(k.size * 1.6)
        else:
            lead = label_width or max(self.length(shown) + self.u(8), min(w * 0.35, self.u(130)))
            self.string(x, y + h / 2, shown, most=lead - 4)
            x, w = x + lead, w - lead
        if w < self.u(44):
            return y + h
        kind = rng.choices(["field", "combo", "spin"], [6, 2.5, 1])[0]
        if kind == "spin":
            w = min(w, self.u(90))
        if k.flat and self.chance(0.3):
            self.c.line(x, y + h - 1, x + w, y + h - 1, k.dim)
        else:
            self.c.rect((x, y, x + w, y + h), k.base if kind != "combo" else k.button, k.line, k.radius)
        if self.chance(0.6) or kind != "field":
            value = str(rng.randint(0, 400)) if kind == "spin" else self.w.value()
            self.string(x + self.u(7), y + h / 2, value, k.fg if self.chance(0.7) else k.dim, most=w - self.u(26))
        if kind != "field":
            cx, cy, a = x + w - self.u(12), y + h / 2, self.u(4)
            self.c.glyph([(cx - a, cy - a / 2), (cx, cy + a / 2), (cx + a, cy - a / 2)], k.fg, max(1.2, k.s * 1.3))
        self.c.add(
            (x, y, x + w, y + h),
            "combo" if kind == "combo" else "field",
            self.w.ask("combo" if kind == "combo" else "field", label),
        )
        return y + h

    def search(self, x: float, y: float, w: float, h: int) -> None:
        k, rng = self.k, self.rng
        self.c.rect((x, y, x + w, y + h), k.base, k.line, rng.choice([k.radius, h // 2]))
        lens = self.c.kit.meaning(self.k.icons, "edit-find", self.rng)
        side = round(k.size * 1.1)
        at = x + self.u(8)
        if lens is not None and self.chance(0.75):
            self.c.icon(at, y + (h - side) / 2, side, lens, k.dim)
            at += side + self.u(5)
        if self.chance(0.85):
            hint = rng.choice(
                [
                    "Search",
                    "Search...",
                    "Type to search",
                    "Find",
                    "Filter",
                    f"Search {rng.choice(self.w.vocabulary).lower()}s",
                    "Search or enter address",
                ]
            )
            self.string(at, y + h / 2, hint, k.dim, most=w - (at - x) - 4)
        if self.w.take("search", "edit-find", "find"):
            queries = [
                {"q": q, "by": "name"}
                for q in rng.sample(["search field", "the search box", "search bar", "search", "the search input"], 2)
            ]
            does = [
                "type what I am looking for",
                "look something up",
                "find an item by its name",
                "enter words to search for",
            ]
            self.c.add(
                (x, y, x + w, y + h),
                "field",
                queries + self.w.functions(does if not self.w.held else ["hunt for something by typing"], 2),
            )

    # -- lists
    def rows(
        self,
        x: float,
        y: float,
        w: float,
        bottom: float,
        kind: str = "item",
        letter: str = "l",
        icons: bool | None = None,
        tree: bool = False,
    ) -> float:
        k, rng = self.k, self.rng
        row, icons = round(k.size * rng.choice([1.5, 1.7, 2.0, 2.5])), self.chance(0.55) if icons is None else icons
        side, selected, i, depth = round(k.size * 1.2), rng.randint(-2, 7), 0, 0
        same = self.any_icon() if self.chance(0.4) else None
        while y + row <= bottom and i < 60:
            label = self.w.file() if kind == "file" else self.w.label(letter, 30)
            if label is None:
                break
            if tree:
                depth = max(0, min(4, depth + rng.choice([-1, 0, 0, 0, 1, 1 if depth == 0 else 0])))
            on = i == selected
            if on:
                self.c.rect((x + 2, y, x + w - 2, y + row), k.accent, None, k.radius if k.flat else 0)
            colour = (255, 255, 255) if on else k.fg
            at = x + self.u(8) + depth * self.u(14)
            if tree:
                a, cy = self.u(4), y + row / 2
                points = (
                    [(at, cy - a / 2), (at + a, cy + a / 2), (at + 2 * a, cy - a / 2)]
                    if self.chance(0.4)
                    else [(at + a / 2, cy - a), (at + a * 1.5, cy), (at + a / 2, cy + a)]
                )
                self.c.glyph(points, k.dim, max(1.0, k.s))
                at += self.u(13)
            if icons:
                self.c.icon(
                    at,
                    y + (row - side) / 2,
                    side,
                    same if same is not None and self.chance(0.7) else self.any_icon(),
                    colour,
                )
                at += side + self.u(6)
            (_, _, x1, _), shown = self.string(at, y + row / 2, label.text, colour, most=x + w - at - self.u(6))
            self.c.add(
                (x + 2, y, x + w - 2 if not tree else min(x + w - 2, x1 + self.u(8)), y + row),
                kind,
                self.w.ask(kind, label, shown),
            )
            y, i = y + row, i + 1
        return y

    def table(self, x: float, y: float, w: float, bottom: float, actions: bool = False) -> float:
        k, rng = self.k, self.rng
        n = rng.randint(2, 6 if w > self.u(420) else 3)
        shares = [rng.uniform(0.6, 1.6) for _ in range(n)]
        edges = [x]
        spare = self.u(60) if actions else 0
        for share in shares:
            edges.append(edges[-1] + share / sum(shares) * (w - spare))
        row, grid, striped, files = (
            round(k.size * rng.choice([1.6, 1.9, 2.3, 2.8])),
            self.chance(0.4),
            self.chance(0.4),
            self.chance(0.4),
        )
        for a, b in itertools.pairwise(edges):
            label = self.w.label("h", max(4, int((b - a) / k.size * 1.5)))
            if label is not None:
                self.c.rect((a, y, b, y + row), k.panel, k.line if grid else None)
                _, shown = self.string(
                    a + self.u(6), y + row / 2, label.text, most=b - a - self.u(10), bold=self.chance(0.5)
                )
                self.c.add((a, y, b, y + row), "header", self.w.ask("header", label, shown))
        y += row
        i = 0
        while y + row <= bottom and i < 50:
            if striped and i % 2:
                self.c.rect((x, y, x + w, y + row), k.panel)
            for col, (a, b) in enumerate(itertools.pairwise(edges)):
                file = self.w.file() if files and col == 0 else None
                text = file.text if file else self.w.value() if col else self.w.words(2)
                fresh = file is not None or self.w.take(text)
                _, shown = self.string(
                    a + self.u(6), y + row / 2, text, k.fg if col == 0 else k.dim, most=b - a - self.u(10)
                )
                if fresh and len(shown) > 3 and (col == 0 or self.chance(0.25)):
                    self.c.add(
                        (a, y, b, y + row),
                        "cell" if col else "item",
                        self.w.ask("cell" if col else "item", file or Label(text, []), shown),
                    )
            if actions and i == 0:
                at = edges[-1]
                for _ in range(2):
                    at = self.icon_button(at, y + row / 2, round(k.size * 1.1), self.u(4))
            if grid or actions:
                self.c.line(x, y + row, x + w, y + row, k.line)
            y, i = y + row, i + 1
        if grid:
            for edge in edges[1:]:
                self.c.line(edge, y - row * (i + 1), edge, y, k.line)
        return y

    def tiles(
        self, x: float, y: float, w: float, bottom: float, kinds: tuple[str, ...] = (), letter: str = "l"
    ) -> None:
        """Large icons over their names: file managers, control centres, desktops."""
        k, rng = self.k, self.rng
        side = round(k.size * rng.choice([1.8, 2.4, 3.2, 4.0]))
        cell, high = max(side + self.u(24), round(k.size * rng.choice([6, 7.5, 9]))), side + round(k.size * 2.4)
        files = self.chance(0.4) and letter == "l"
        top = y
        while top + high <= bottom:
            left = x
            while left + cell <= x + w:
                label = self.w.file() if files else self.w.label(letter, 16)
                if label is None:
                    return
                self.c.icon(left + (cell - side) / 2, top, side, self.any_icon(), k.icon_tint or k.fg)
                wide = min(self.length(label.text), cell - 6)
                _, shown = self.string(left + (cell - wide) / 2, top + side + k.size * 0.9, label.text, most=cell - 6)
                self.c.add(
                    (left + 3, top - 2, left + cell - 3, top + high - self.u(4)),
                    "file" if files else "item",
                    self.w.ask("file" if files else "item", label, shown),
                )
                left += cell
            top += high + self.u(6)

    def paragraph(
        self,
        x: float,
        y: float,
        w: float,
        bottom: float,
        size: int | None = None,
        mono: bool = False,
        links: float = 0.12,
        numbers: bool = False,
    ) -> float:
        """Running text; some stretches of it are links (their own targets)."""
        k, rng = self.k, self.rng
        size = size or k.size
        step, font = round(size * rng.choice([1.35, 1.5, 1.65])), k.mono if mono else k.font
        i = 1
        while y + step <= bottom:
            if numbers:
                self.c.text(x, y, f"{i:3d}", k.dim, font, size)
            at = (
                x
                + (self.c.width_of("0000 ", font, size) if numbers else 0)
                + (self.u(rng.choice([0, 0, 14, 28])) if mono else 0)
            )
            text = self.w.sentence(90)
            if self.chance(links):
                label = self.w.label("l", 30)
                if label is not None:
                    before = text[: rng.randint(0, 18)].rsplit(" ", 1)[0]
                    if before:
                        (_, _, at, _), _ = self.c.text(at, y, before + " ", k.fg, font, size)
                    if at + self.c.width_of(label.text, font, size) < x + w:
                        (x0, y0, x1, y1), _ = self.c.text(at, y, label.text, k.accent, font, size)
                        if self.chance(0.6):
                            self.c.line(x0, y1, x1, y1, k.accent)
                        self.c.add((x0, y0, x1, y1), "link", self.w.ask("link", label))
                        self.c.text(x1 + size * 0.4, y, text[20:], k.fg, font, size, max(8.0, x + w - x1 - size))
            elif at < x + w - size * 3:
                box, shown = self.c.text(
                    at, y, text, k.fg if not mono or self.chance(0.6) else k.accent, font, size, x + w - at
                )
                if self.w.take(shown) and self.chance(0.25) and len(shown) > 6:
                    self.c.add(box, "text", self.w.ask("text", Label(text, []), shown))
            y, i = y + step, i + 1
            if self.chance(0.08) and not numbers:
                y += step // 2
        return y

    def heading(self, x: float, y: float, w: float, size: int) -> float:
        text = self.w.sentence(max(14, int(w / size * 1.6)))
        box, shown = self.c.text(x, y, text, self.k.fg, self.k.bold, size, w)
        if self.w.take(shown):
            self.c.add(box, "heading", self.w.ask("heading", Label(text, []), shown))
        return y + size * 1.5
