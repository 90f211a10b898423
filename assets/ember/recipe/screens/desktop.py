"""Drawn desktop programs: windows, dialogs and open menus of one look."""

from __future__ import annotations

from .canvas import Box
from .contents import Contents
from .looks import mix


class Desktop(Contents):
    """Windows, dialogs, menus and panels."""

    def window(self, box: Box, dialog: bool = False) -> None:
        x, y, right, bottom = box
        w, k, rng = right - x, self.k, self.rng
        self.c.cover((x - 2, y - 2, right + 2, bottom + 2))
        self.c.rect((x - 1, y - 1, right + 1, bottom + 1), k.bg, k.line)
        if dialog or self.windows > 1 or self.chance(0.75):
            y = self.title_bar(x, y, w, dialog)
        if dialog:
            self.dialog(x, y, w, bottom)
            return
        if self.chance(0.62):
            y = self.menu_bar(x, y, w)
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
            y = self.tool_bar(x, y, w)
        if self.chance(0.35):
            y = self.tab_bar(x, y, w)
        if self.chance(0.5):
            bottom = self.status_bar(x, bottom, w)
        if self.chance(0.3):
            x = self.tool_bar(x, y, w, vertical=bottom)
        if self.chance(0.35) and right - x > self.u(420):
            side = self.u(rng.uniform(130, 230))
            self.c.rect((x, y, x + side, bottom), k.panel)
            self.rows(x, y + self.u(4), side, bottom, letter=rng.choice("lt"), tree=self.chance(0.4))
            x += side
        self.content(x, y, right - x, bottom)

    def dialog(self, x: float, y: float, w: float, bottom: float) -> None:
        k, rng = self.k, self.rng
        if bottom - y > self.u(170):
            if self.chance(0.5):
                y = self.tab_bar(x, y, w, documents=False)
            rng.choice([self.form, self.settings])(x + self.u(14), y + self.u(10), w - self.u(28), bottom - self.u(46))
        else:
            side = self.u(rng.choice([32, 48]))
            self.c.icon(x + self.u(16), y + self.u(16), side, self.any_icon(), k.accent)
            text = self.w.sentence(int(w / k.size * 1.5))
            self.string(x + side + self.u(28), y + self.u(26), text, most=w - side - self.u(40), bold=True)
            self.string(
                x + side + self.u(28),
                y + self.u(26) + k.size * 1.8,
                self.w.sentence(80),
                k.dim,
                most=w - side - self.u(40),
            )
        at, h, least = x + w - self.u(12), round(k.size * 2.1), self.u(rng.choice([0, 70, 86]))
        for _ in range(rng.randint(1, 4)):
            label = self.w.label("b", 16)
            if label is None:
                break
            wide = max(self.length(label.text) + 2 * round(k.size * 0.9), least)
            if at - wide < x + self.u(8):
                break
            before = k.flat
            self.button(at - wide, bottom - h - self.u(10), label, h, least=round(wide))
            k.flat = before
            at -= wide + self.u(10)

    def popup(self, x: float, y: float) -> None:
        """An open menu with icons, shortcuts, separators and submenu arrows."""
        k, rng = self.k, self.rng
        n, row, w = rng.randint(4, 16), round(k.size * rng.choice([1.6, 1.8, 2.1])), round(k.size * rng.uniform(11, 20))
        n = min(n, int((self.c.h - self.u(8)) / row))
        h = n * row + self.u(8)
        x, y = max(0.0, min(x, self.c.w - w - 2)), max(0.0, min(y, self.c.h - h - 2))
        self.c.cover((x - 2, y - 2, x + w + 2, y + h + 2))
        self.c.rect((x, y, x + w, y + h), mix(k.bg, k.base, 0.5), k.line, k.radius if k.flat else 0)
        icons, at = self.chance(0.45), y + self.u(4)
        lead = self.u(30) if icons or self.chance(0.5) else self.u(12)
        for i in range(n):
            if i and i < n - 1 and self.chance(0.12):
                self.c.line(x + 4, at + row / 2, x + w - 4, at + row / 2, k.line)
                at += row
                continue
            label = self.w.label("m", int((w - lead) / k.size * 1.5))
            if label is None:
                continue
            if icons and self.chance(0.7):
                side = round(k.size * 1.2)
                self.c.icon(x + self.u(7), at + (row - side) / 2, side, self.any_icon(), k.fg)
            _, shown = self.string(
                x + lead, at + row / 2, label.text, k.fg if self.chance(0.9) else k.dim, most=w - lead - self.u(20)
            )
            if self.chance(0.4):
                keys = rng.choice(["Ctrl+", "Ctrl+", "Shift+Ctrl+", "Alt+", "F"]) + (chr(65 + rng.randint(0, 25)))
                wide = self.length(keys)
                if x + lead + self.length(label.text) + wide + self.u(24) < x + w:
                    self.string(x + w - wide - self.u(8), at + row / 2, keys, k.dim)
            elif self.chance(0.15):
                a, cx, cy = self.u(4), x + w - self.u(14), at + row / 2
                self.c.glyph([(cx, cy - a), (cx + a, cy), (cx, cy + a)], k.fg, max(1.0, k.s))
            self.c.add((x + 2, at, x + w - 2, at + row), "menuitem", self.w.ask("menuitem", label, shown))
            at += row
