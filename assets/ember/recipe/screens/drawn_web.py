"""Drawn web pages: navigation bars, documentation, shops, dashboards, mail, forms; optionally inside a browser."""

from __future__ import annotations

from .canvas import Box
from .looks import mix
from .widgets import Widgets
from .words import Label


class WebPage(Widgets):
    """Pages of one look inside a box of the canvas."""

    def link(
        self,
        x: float,
        middle: float,
        label: Label | None = None,
        size: int | None = None,
        plain: bool = False,
        most: float = 1e9,
        bold: bool = False,
    ) -> float:
        """A text link at `x`; returns its right edge (x when no label is free or it does not fit)."""
        label = label or self.w.label("l", 28)
        if label is None or self.length(label.text, size) > most:
            return x
        (x0, y0, x1, y1), _ = self.string(
            x, middle, label.text, self.k.fg if plain else self.k.accent, bold=bold, size=size
        )
        if not plain and self.chance(0.3):
            self.c.line(x0, y1 - 1, x1, y1 - 1, self.k.accent)
        self.c.add((x0 - 2, y0, x1 + 2, y1), "link", self.w.ask("link", label))
        return x1

    def browser(self, box: Box) -> Box:
        """Tabs, navigation icons and the address bar of a browser; returns the page's box."""
        x, y, right, bottom = box
        k, rng = self.k, self.rng
        h = self.u(rng.choice([32, 36, 40]))
        self.c.rect((x, y, right, y + h), mix(k.panel, k.fg, 0.12))
        at = x + self.u(8)
        for i in range(rng.randint(1, 6)):
            label = Label(self.w.words(rng.randint(1, 3)), [])
            wide = self.u(rng.choice([110, 160, 200]))
            if at + wide > right - self.u(120) or not self.w.take(label.text):
                break
            if i == 0:
                self.c.rect((at, y + 3, at + wide, y + h), k.panel, None, self.u(7))
            _, shown = self.string(
                at + self.u(12), y + h / 2, label.text, k.fg if i == 0 else k.dim, most=wide - self.u(36)
            )
            self.c.add((at, y + 3, at + wide - self.u(24), y + h), "tab", self.w.ask("tab", label, shown))
            cx, cy, a = at + wide - self.u(13), y + h / 2, self.u(3.5)
            self.c.glyph([(cx - a, cy - a), (cx + a, cy + a)], k.dim, max(1.0, k.s))
            self.c.glyph([(cx - a, cy + a), (cx + a, cy - a)], k.dim, max(1.0, k.s))
            self.c.add(
                (cx - 2 * a, cy - 2 * a, cx + 2 * a, cy + 2 * a),
                "button",
                [{"q": f"close the {label.text} tab", "by": "name"}],
            )
            at += wide + 2
        y += h
        h = self.u(rng.choice([36, 40, 44]))
        self.c.rect((x, y, right, y + h), k.panel)
        side, at = self.u(rng.choice([16, 18, 20])), x + self.u(6)
        for concept in ("go-previous", "go-next", "view-refresh", "go-home"):
            icon = self.c.kit.meaning(self.k.icons, concept, rng)
            if (
                icon is not None
                and (concept != "go-home" or self.chance(0.5))
                and self.w.take_icon(self.c.kit.icons[icon])
            ):
                self.c.icon(at + self.u(7), y + (h - side) / 2, side, icon, k.fg)
                self.c.add(
                    (at + 1, y + 3, at + side + self.u(13), y + h - 3),
                    "icon",
                    self.w.icon_questions(self.c.kit.icons[icon]),
                )
                at += side + self.u(16)
        end = right - self.u(8)
        for _ in range(rng.randint(1, 4)):
            end -= side + self.u(14)
            self.icon_button(end, y + h / 2, side, self.u(6))
        box_ = (at + self.u(6), y + self.u(5), end - self.u(8), y + h - self.u(5))
        if box_[2] - box_[0] > self.u(100):
            self.c.rect(box_, k.base, k.line, (int(h) // 2))
            self.string(
                box_[0] + self.u(14),
                y + h / 2,
                f"https://{rng.choice(self.w.vocabulary).lower()}.example/{rng.choice(self.w.vocabulary).lower()}",
                k.dim,
                most=box_[2] - box_[0] - self.u(30),
            )
            if self.w.take("address bar"):
                asked = (
                    ["type a web address", "go to another site by its address"]
                    if not self.w.held
                    else ["enter the location of a page"]
                )
                self.c.add(
                    box_,
                    "field",
                    [{"q": q, "by": "name"} for q in ("the address bar", "URL bar")] + self.w.functions(asked, 1),
                )
        self.c.line(x, y + h - 1, right, y + h - 1, k.line)
        return (x, y + h, right, bottom)

    def nav(self, x: float, y: float, right: float) -> float:
        k, rng = self.k, self.rng
        h = self.u(rng.choice([44, 52, 60, 68]))
        fill = rng.choice([k.bg, k.panel, k.accent, mix(k.bg, k.fg, 0.9)])
        self.c.rect((x, y, right, y + h), fill)
        ink, keep = (255, 255, 255) if sum(fill) < 420 else (25, 28, 32), (k.fg, k.icon_tint)
        k.fg, k.icon_tint = ink, None
        at, middle = x + self.u(rng.choice([12, 24, 40])), y + h / 2
        if self.chance(0.35):
            at = self.icon_button(at, middle, self.u(20), self.u(6)) + self.u(6)
        name = self.w.words(1)
        self.c.disc(at + self.u(10), middle, self.u(10), k.accent if fill != k.accent else (255, 255, 255))
        box, _ = self.string(at + self.u(26), middle, name, bold=True, size=round(k.size * 1.25))
        if self.w.take(name):
            self.c.add(
                (at, box[1], box[2], box[3]),
                "link",
                [{"q": f"the {name} logo", "by": "name"}, {"q": name, "by": "text"}],
            )
        at, end = box[2] + self.u(28), right - self.u(16)
        for _ in range(rng.randint(0, 3)):
            label = self.w.label("b", 14)
            if label is not None and end - self.length(label.text) - self.u(30) > at:
                wide = self.length(label.text) + self.u(32)
                if self.chance(0.5):
                    k.fg = keep[0] if self.chance(0.5) else ink
                    self.button(
                        end - wide, middle - round(k.size * 1.05), label, round(k.size * 2.1), least=round(wide)
                    )
                    k.fg = ink
                else:
                    self.link(end - wide + self.u(10), middle, label, plain=True)
                end -= wide + self.u(8)
        for _ in range(rng.randint(0, 5)):
            if end - self.u(40) > at:
                end -= self.u(36)
                self.icon_button(end, middle, self.u(rng.choice([16, 18, 20, 24])), self.u(6))
        if self.chance(0.45) and end - at > self.u(260):
            wide, high = self.u(rng.choice([150, 200, 240])), round(k.size * 2.1)
            k.fg = keep[0]
            self.search(end - wide, middle - high / 2, wide, high)
            k.fg = ink
            end -= wide + self.u(14)
        for _ in range(rng.randint(2, 8)):
            label = self.w.label("l", 18)
            if label is None or at + self.length(label.text) + self.u(10) > end:
                break
            at = self.link(at, middle, label, plain=True) + self.u(rng.choice([16, 22, 28]))
        k.fg, k.icon_tint = keep
        self.c.line(x, y + h - 1, right, y + h - 1, k.line)
        return y + h

    def footer(self, x: float, y: float, right: float, bottom: float) -> None:
        k, rng = self.k, self.rng
        self.c.rect((x, y, right, bottom), k.panel)
        n = rng.randint(2, 5)
        size = round(k.size * rng.choice([0.85, 0.92, 1]))
        for column in range(n):
            at, top = x + self.u(24) + column * (right - x - self.u(48)) / n, y + self.u(18)
            self.string(at, top, self.w.words(1), bold=True, size=size)
            while (top := top + size * 1.8) < bottom - self.u(26) and self.chance(0.9):
                self.link(at, top, size=size, plain=self.chance(0.5), most=(right - x) / n - self.u(12))
        at = right - self.u(30)
        for _ in range(rng.randint(0, 5)):
            self.icon_button(at, bottom - self.u(16), self.u(16), self.u(4))
            at -= self.u(30)

    def cards(self, x: float, y: float, right: float, bottom: float) -> None:
        k, rng = self.k, self.rng
        n = max(1, min(rng.randint(2, 5), int((right - x) / self.u(150))))
        gap = self.u(rng.choice([10, 16, 24]))
        wide, high = (right - x - gap * (n - 1)) / n, self.u(rng.choice([120, 180, 240, 300]))
        picture, framed = self.chance(0.6), self.chance(0.7)
        while y + high <= bottom:
            for i in range(n):
                left = x + i * (wide + gap)
                if framed:
                    self.c.rect((left, y, left + wide, y + high), k.base, k.line, k.radius)
                top = y + self.u(10)
                if picture:
                    cut = high * 0.42
                    self.c.rect(
                        (left + 1, y + 1, left + wide - 1, y + cut),
                        mix(tuple(rng.randint(0, 255) for _ in range(3)), k.bg, 0.4),
                    )  # type: ignore[arg-type]
                    side = self.u(rng.choice([24, 32, 48]))
                    self.c.icon(left + wide / 2 - side / 2, y + cut / 2 - side / 2, side, self.any_icon(), k.fg)
                    if self.chance(0.3):
                        self.icon_button(left + wide - self.u(36), y + self.u(20), self.u(18), self.u(5))
                    top = y + cut + self.u(8)
                label = self.w.label("l", int(wide / k.size * 1.4))
                if label is not None:
                    box, shown = self.string(
                        left + self.u(12), top + k.size * 0.8, label.text, bold=True, most=wide - self.u(24)
                    )
                    self.c.add(box, "link", self.w.ask("link", label, shown))
                top += k.size * 1.9
                while top + k.size * 3.2 < y + high:
                    self.string(
                        left + self.u(12),
                        top + k.size * 0.5,
                        self.w.sentence(60),
                        k.dim,
                        most=wide - self.u(24),
                        size=round(k.size * 0.92),
                    )
                    top += k.size * 1.4
                z, foot = rng.random(), y + high - round(k.size * 2.2) - self.u(6)
                if z < 0.45 and top <= foot + k.size:
                    label = self.w.label("b", int(wide / k.size * 1.1))
                    if label is not None and self.length(label.text) + self.u(40) < wide:
                        self.button(left + self.u(12), foot, label, round(k.size * 2.1))
                elif z < 0.75:
                    at = left + self.u(8)
                    for _ in range(rng.randint(1, 4)):
                        if at + self.u(30) < left + wide:
                            at = self.icon_button(at, foot + k.size, self.u(rng.choice([14, 16, 18, 20])), self.u(6))
            y += high + gap

    def article(self, x: float, y: float, right: float, bottom: float) -> None:
        k, rng = self.k, self.rng
        if self.chance(0.5):  # breadcrumbs
            at = x
            for _ in range(rng.randint(2, 4)):
                at = self.link(at, y + k.size, size=round(k.size * 0.92), most=right - at - self.u(20))
                (_, _, at, _), _ = self.string(at + self.u(6), y + k.size, rng.choice(["/", ">", "»"]), k.dim)
                at += self.u(6)
            y += k.size * 2
        while y < bottom - k.size * 4:
            y = self.heading(x, y, right - x, round(k.size * rng.choice([1.2, 1.5, 2.0]))) + self.u(4)
            end = min(bottom, y + k.size * rng.randint(5, 16))
            if self.chance(0.2):
                self.c.rect((x, y, right, end), mix(k.bg, k.fg, 0.06), None, k.radius)
                y = self.paragraph(
                    x + self.u(10),
                    y + self.u(8),
                    right - x - self.u(20),
                    end - self.u(6),
                    round(k.size * 0.9),
                    mono=True,
                    links=0,
                ) + self.u(8)
            elif self.chance(0.2):
                y = self.table(x, y, right - x, end)
            elif self.chance(0.25):
                while y < end - k.size * 1.7:
                    self.c.disc(x + self.u(8), y + k.size * 0.7, self.u(2.5), k.fg)
                    self.link(x + self.u(18), y + k.size * 0.7, most=right - x - self.u(20))
                    y += k.size * 1.6
            else:
                y = self.paragraph(x, y, right - x, end, links=0.3)
            y += k.size

    def side_links(self, x: float, y: float, w: float, bottom: float) -> None:
        k, rng = self.k, self.rng
        icons, step = self.chance(0.4), round(k.size * rng.choice([1.7, 2.0, 2.4]))
        size = round(k.size * rng.choice([0.9, 1.0]))
        active = rng.randint(0, 5)
        i = 0
        while y + step <= bottom:
            if self.chance(0.1):
                self.string(x, y + step / 2, self.w.words(1).upper(), k.dim, bold=True, size=round(size * 0.85))
                y += step
                continue
            label = self.w.label("l", int(w / size * 1.6))
            if label is None:
                break
            if i == active:
                self.c.rect((x - self.u(6), y, x + w - self.u(8), y + step), mix(k.bg, k.accent, 0.18), None, k.radius)
            at = x
            if icons:
                self.c.icon(x, y + (step - size * 1.2) / 2, round(size * 1.2), self.any_icon(), k.dim)
                at += size * 1.9
            box, shown = self.string(
                at,
                y + step / 2,
                label.text,
                k.accent if i == active or self.chance(0.3) else k.fg,
                most=w - (at - x) - self.u(10),
                size=size,
            )
            self.c.add(
                (x - self.u(4), y, max(box[2], x + w * 0.7), y + step) if self.chance(0.5) else box,
                "link",
                self.w.ask("link", label, shown),
            )
            y, i = y + step, i + 1

    def mail(self, x: float, y: float, right: float, bottom: float) -> None:
        """A message list with row check boxes, stars and a row of bare icons above it."""
        k, rng = self.k, self.rng
        at = x + self.u(8)
        for _ in range(rng.randint(4, 9)):
            at = self.icon_button(at, y + self.u(20), self.u(rng.choice([16, 18, 20])), self.u(8))
        y += self.u(42)
        row = round(k.size * rng.choice([2.2, 2.8]))
        while y + row <= bottom:
            side = round(k.size)
            self.c.rect(
                (x + self.u(10), y + (row - side) / 2, x + self.u(10) + side, y + (row + side) / 2), k.base, k.dim, 2
            )
            sender, subject = self.w.words(2), self.w.sentence(60)
            self.string(x + self.u(36), y + row / 2, sender, bold=self.chance(0.4), most=self.u(150))
            lead = min(self.u(200), (right - x) * 0.3)
            _, shown = self.string(x + lead, y + row / 2, subject, most=right - x - lead - self.u(80))
            self.string(
                right - self.u(64), y + row / 2, f"{rng.randint(1, 28)} {rng.choice(['Jan', 'May', 'Oct'])}", k.dim
            )
            if self.w.take(sender, shown):
                queries = [
                    {"q": q, "by": "text"}
                    for q in (shown.rstrip("…"), f"the message from {sender}", f"open the mail {shown.rstrip('…')}")
                ]
                self.c.add((x + self.u(34), y, right, y + row), "item", queries)
                self.c.add(
                    (x + self.u(8), y + (row - side) / 2, x + self.u(12) + side, y + (row + side) / 2),
                    "check",
                    [
                        {"q": f"the checkbox of the message from {sender}", "by": "name"},
                        {"q": f"tick the mail by {sender}", "by": "name"},
                    ],
                )
            self.c.line(x, y + row, right, y + row, k.line)
            y += row

    def page(self, box: Box) -> None:
        x, y, right, bottom = box
        k, rng = self.k, self.rng
        self.c.rect(box, k.bg)
        if self.chance(0.85):
            y = self.nav(x, y, right)
        if self.chance(0.2):  # a second row of tabs
            at, h = x + self.u(20), self.u(36)
            for _ in range(rng.randint(3, 8)):
                label = self.w.label("t", 16)
                if label is None or at + self.length(label.text) + self.u(20) > right:
                    break
                self.string(at, y + h / 2, label.text)
                self.c.add(
                    (at - self.u(8), y, at + self.length(label.text) + self.u(8), y + h),
                    "tab",
                    self.w.ask("tab", label),
                )
                at += self.length(label.text) + self.u(24)
            y += h
            self.c.line(x, y, right, y, k.line)
        if self.chance(0.35) and bottom - y > self.u(300):
            cut = self.u(rng.choice([90, 140, 200]))
            self.footer(x, bottom - cut, right, bottom)
            bottom -= cut
        if self.chance(0.45) and right - x > self.u(560):
            side = self.u(rng.choice([160, 200, 240, 280]))
            if self.chance(0.4):
                self.c.rect((x, y, x + side, bottom), k.panel)
            self.side_links(x + self.u(18), y + self.u(12), side - self.u(24), bottom)
            x += side
        if self.chance(0.2) and right - x > self.u(700):
            side = self.u(rng.choice([150, 200]))
            self.side_links(right - side, y + self.u(16), side - self.u(10), y + (bottom - y) * 0.6)
            right -= side
        margin = (
            self.u(rng.choice([12, 24, 40]))
            if right - x < self.u(1100) or self.chance(0.5)
            else (right - x - self.u(960)) / 2
        )
        x, right, y = x + margin, right - margin, y + self.u(rng.choice([10, 20, 32]))
        if self.chance(0.25):
            y = self.heading(x, y, right - x, round(k.size * rng.choice([1.8, 2.4, 3.2])))
            self.string(x, y + k.size * 0.5, self.w.sentence(90), k.dim, most=right - x)
            y += k.size * 2
            at = x
            for _ in range(rng.randint(1, 3)):
                at = self.button(at, y) + self.u(10)
            y += k.size * 3.6
        kind = rng.choices(["article", "cards", "table", "form", "mail", "settings", "mixed"], [3, 3, 2, 2, 1.2, 1, 2])[
            0
        ]
        if kind == "article":
            self.article(x, y, right, bottom)
        elif kind == "cards":
            self.cards(x, y, right, bottom)
        elif kind == "table":
            at = x
            for _ in range(rng.randint(0, 3)):
                at = self.button(at, y) + self.u(8)
            at = right
            for _ in range(rng.randint(0, 5)):
                at -= self.u(36)
                self.icon_button(at, y + k.size, self.u(18), self.u(6), framed=self.chance(0.5))
            self.table(x, y + k.size * 3, right - x, bottom, actions=self.chance(0.6))
        elif kind == "mail":
            self.mail(x, y, right, bottom)
        elif kind in ("form", "settings"):
            self._form(x, y, min(right, x + self.u(620)), bottom, settings=kind == "settings")
        else:
            middle = y + (bottom - y) * 0.5
            self.cards(x, y, right, middle)
            self.article(x, middle, right, bottom)

    def _form(self, x: float, y: float, right: float, bottom: float, settings: bool) -> None:
        k, rng = self.k, self.rng
        columns = 2 if right - x > self.u(460) and self.chance(0.4) else 1
        while y < bottom - k.size * 6:
            wide = (right - x - self.u(14) * (columns - 1)) / columns
            if rng.random() < (0.3 if settings else 0.75):
                y = max(self.field(x + i * (wide + self.u(14)), y, wide, above=True) for i in range(columns)) + self.u(
                    12
                )
            else:
                y = self.check(x, y, right - x) + self.u(6)
        at = x
        for _ in range(rng.randint(1, 3)):
            at = self.button(at, y, h=round(k.size * 2.4)) + self.u(10)
