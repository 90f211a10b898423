"""Bars of drawn programs: title bars with small controls, menus, toolbars of bare icons, tabs, status lines, panels."""

from __future__ import annotations

from .looks import mix
from .widgets import Widgets
from .words import Label

_CONTROLS = {
    "close": (
        ["window close button", "the X button", "close", "the close button of the window"],
        [
            "close the window",
            "dismiss this window",
            "make the window go away",
            "end the program from its frame",
            "be done with this program",
            "exit the application",
            "stop the whole program",
            "I have finished, put it away",
            "shut the program's window",
            "quit by the title bar",
        ],
    ),
    "minimize": (
        ["minimize", "the minimise button", "minimize button"],
        [
            "hide the window in the task bar",
            "put the window away for now",
            "minimize the window",
            "make the window disappear without closing it",
            "send the window down to the panel",
        ],
    ),
    "maximize": (
        ["maximize", "the maximise button", "maximize button"],
        [
            "make the window fill the screen",
            "maximize the window",
            "enlarge the window as far as it goes",
            "give the window all of the screen",
            "blow the window up to full size",
        ],
    ),
}
_MENUS = {
    "File": "Save As...; Print...; Export...; Page Setup...; Quit; Import...; Recent Files; New Window; "
    "Properties; Save All",
    "Edit": "Undo; Redo; Cut; Paste; Select All; Find...; Replace...; Duplicate; Preferences; Select None",
    "View": "Zoom In; Zoom Out; Full Screen; Toolbar; Statusbar; Sidebar; Word Wrap; Line Numbers; Show Hidden Files; "
    "Sort by Size; Sort by Date; Normal Size; Show thumbnails",
    "Search": "Find Next; Replace...; Go to Line...; Find References; Go to Definition",
    "Tools": "Check Spelling; Extensions; Build; Take Screenshot; Commit; Command line",
    "Format": "Bold; Italic; Underline; Align Left; Center; Bullets; Superscript; Line spacing",
    "Insert": "Insert Row; Insert Column; Comment; Sum; Attach file",
    "Help": "About; Report a Bug...; Keyboard Shortcuts; Check for Updates; Tutorials; Release notes",
    "Window": "New Window; Always on top; Close Tab",
    "Go": "Home; Back; Next; Desktop; Recent; File System",
    "Bookmarks": "",
    "Documents": "Save All; Close Tab",
}
"""Usual menus with commands that people look for in them."""


class Bars(Widgets):
    """The bars along the edges of windows and of the screen."""

    windows = 1  # how many windows share the screen: with several, controls are asked for by the window's title

    def title_bar(self, x: float, y: float, w: float, dialog: bool) -> float:
        k, rng = self.k, self.rng
        style = rng.choice(["flat", "flat", "round", "lights", "small", "small"])
        h = self.u(
            rng.choice(
                {"flat": [28, 30, 32], "round": [36, 40, 46], "lights": [24, 28, 32], "small": [18, 20, 22, 24]}[style]
            )
        )
        file = None if self.chance(0.5) else self.w.file()
        name = file.text if file else self.w.words(rng.choice([1, 1, 2]))
        title = (
            f"{name} - {rng.choice(['Text Editor', 'Files', 'Viewer', 'Mail', 'Studio', name])}"
            if self.chance(0.4)
            else name
        )
        fill = rng.choice([k.panel, k.panel, k.bg, k.accent, mix(k.panel, (0, 0, 0), 0.6)])
        self.c.rect((x, y, x + w, y + h), fill)
        ink = (255, 255, 255) if sum(fill) < 380 else (25, 25, 25)
        order = ["close"] if dialog and self.chance(0.6) else ["close", "maximize", "minimize"]
        left = style == "lights" or self.chance(0.08)
        if left:
            order = ["close", "minimize", "maximize"][: len(order)]
        side = {"flat": h * 1.4, "round": h * 0.8, "lights": self.u(20), "small": h}[style]
        at = x + self.u(6) if left else x + w - side - (0 if style == "flat" else self.u(4))
        red, start = self.chance(0.3), at
        for control in order:
            self._control(control, style, at, y, side, h, ink, red, name)
            at += side if left else -side
        edge = at if left else start
        if style == "round" and not dialog:  # a header bar carries buttons of its own
            place, side_ = x + self.u(8) + (edge - x if left else 0), round(k.size * 1.25)
            for _ in range(rng.randint(0, 4)):
                place = self.icon_button(
                    place, y + h / 2, side_, self.u(6), framed=self.chance(0.3), tint=ink
                ) + self.u(4)
            place = (at if not left else x + w) - self.u(44)
            for _ in range(rng.randint(0, 3)):
                self.icon_button(place, y + h / 2, side_, self.u(6), tint=ink)
                place -= self.u(40)
        centre = self.chance(0.5)
        most = w * (0.4 if style == "round" else 0.6)
        tx = x + w / 2 - min(self.length(title), most) / 2 if centre else (edge + self.u(8) if left else x + self.u(10))
        if not (style == "round" and not centre):
            (x0, y0, x1, y1), shown = self.string(tx, y + h / 2, title, ink, most, bold=self.chance(0.5))
            if self.w.take(title):
                self.c.add((x0, y0, x1, y1), "text", self.w.ask("text", Label(title, []), shown))
        return y + h

    def _control(
        self,
        control: str,
        style: str,
        x: float,
        y: float,
        side: float,
        h: float,
        ink: tuple[int, int, int],
        red: bool,
        name: str,
    ) -> None:
        cx, cy, a, k = x + side / 2, y + h / 2, max(3.0, min(side, h) * 0.2), self.k
        pen = max(1.0, k.s * self.rng.choice([1.0, 1.4]))
        if style == "lights":
            self.c.disc(
                cx,
                cy,
                self.u(6),
                {"close": (255, 95, 86), "minimize": (255, 189, 46), "maximize": (39, 201, 63)}[control],
            )
        else:
            if style == "round":
                self.c.disc(cx, cy, side * 0.34, mix(k.panel, ink, 0.15))
            elif control == "close" and red:
                self.c.rect((x, y, x + side, y + h), (212, 55, 50))
                ink = (255, 255, 255)
            if control == "close":
                self.c.glyph([(cx - a, cy - a), (cx + a, cy + a)], ink, pen)
                self.c.glyph([(cx - a, cy + a), (cx + a, cy - a)], ink, pen)
            elif control == "minimize":
                low = cy + (a if style == "small" else 0)
                self.c.glyph([(cx - a, low), (cx + a, low)], ink, pen)
            elif style == "small" and self.chance(0.3):
                self.c.glyph([(cx - a, cy + a * 0.6), (cx, cy - a * 0.6), (cx + a, cy + a * 0.6)], ink, pen)
            else:
                self.c.draw.rectangle(
                    (round(cx - a), round(cy - a), round(cx + a), round(cy + a)), outline=ink, width=max(1, round(pen))
                )
        names, does = _CONTROLS[control]
        if self.windows == 1 and self.w.take(f"window-{control}", control):
            queries = [{"q": q, "by": "name"} for q in self.rng.sample(names, 2)]
            queries += self.w.functions(does[-1:] if self.w.held else does[:-1], 2)
        else:
            queries = [
                {"q": q.format(control, name), "by": "name"} for q in ("{0} the {1} window", "the {0} button of {1}")
            ]
        tight = self.u(11) if style == "lights" else min(side, h * 1.1)
        self.c.add(
            (cx - tight / 2, cy - min(h, tight) / 2, cx + tight / 2, cy + min(h, tight) / 2), "window-control", queries
        )

    def menu_bar(self, x: float, y: float, w: float) -> float:
        k, rng = self.k, self.rng
        h, at = round(k.size * rng.choice([1.6, 1.8, 2.1])), x + self.u(rng.choice([4, 8]))
        self.c.rect((x, y, x + w, y + h), k.bg if self.chance(0.6) else k.panel)
        usual = [m for m in _MENUS if self.chance(0.75)] if self.chance(0.6) else []
        for i in range(rng.randint(4, 10)):
            label = self.w.named("n", usual[i]) if i < len(usual) else self.w.label("n", 13)
            if label is None:
                continue
            wide = self.length(label.text) + round(k.size * rng.choice([1.0, 1.3]))
            if at + wide > x + w:
                break
            self.string(at + (wide - self.length(label.text)) / 2, y + h / 2, label.text)
            queries = self.w.ask("menu", label)
            if self.chance(0.6):
                queries += self.w.within([c for c in _MENUS.get(label.text, "").split("; ") if c])
            self.c.add((at, y, at + wide, y + h), "menu", queries)
            at += wide
        if self.chance(0.4):
            self.c.line(x, y + h - 1, x + w, y + h - 1, k.line)
        return y + h

    def tool_bar(self, x: float, y: float, w: float, vertical: float = 0.0) -> float:
        """A row of icon buttons; with `vertical` (its bottom) a column or two of them. Returns the edge after it."""
        k, rng = self.k, self.rng
        side, pad = self.u(rng.choice([16, 16, 18, 20, 22, 24, 24, 32])), self.u(rng.choice([3, 4, 6, 8]))
        if vertical:
            columns, at = rng.choice([1, 1, 2]), y + self.u(4)
            wide = columns * (side + 2 * pad) + self.u(4)
            self.c.rect((x, y, x + wide, vertical), k.panel if self.chance(0.6) else mix(k.bg, (0, 0, 0), 0.25))
            while at + side + 2 * pad < vertical and (self.chance(0.94)):
                for col in range(columns):
                    self.icon_button(
                        x + self.u(2) + col * (side + 2 * pad),
                        at + side / 2 + pad,
                        side,
                        pad,
                        tint=k.dim if self.chance(0.3) else None,
                    )
                at += side + 2 * pad + (self.u(6) if self.chance(0.1) else 0)
            return x + wide
        words = rng.choices(["none", "beside", "below"], [7, 1.5, 1.5])[0]
        h = side + 2 * pad + self.u(rng.choice([2, 6, 10])) + (round(k.size * 1.3) if words == "below" else 0)
        self.c.rect((x, y, x + w, y + h), k.panel if self.chance(0.6) else k.bg)
        at, framed = x + self.u(5), self.chance(0.15)
        while at + side + 2 * pad < x + w - self.u(8) and self.chance(0.96):
            z = rng.random()
            if z < 0.1:
                self.c.line(at + self.u(4), y + self.u(4), at + self.u(4), y + h - self.u(5), k.line)
                at += self.u(9)
            elif words == "none" and z < 0.16 and at + self.u(130) < x + w:
                wide, high = self.u(rng.choice([52, 90, 130])), round(k.size * 1.8)
                self.c.rect((at, y + (h - high) / 2, at + wide, y + (h + high) / 2), k.base, k.line, k.radius)
                self.string(at + self.u(5), y + h / 2, self.w.value(), most=wide - self.u(22))
                cx, cy, a = at + wide - self.u(10), y + h / 2, self.u(3)
                self.c.glyph([(cx - a, cy - a / 2), (cx, cy + a / 2), (cx + a, cy - a / 2)], k.fg, max(1.0, k.s))
                at += wide + self.u(6)
            elif words == "none":
                at = self.icon_button(
                    at, y + h / 2, side, pad, framed, ("action", "status", "place", "device"), None
                ) + (self.u(2) if self.chance(0.3) else 0)
                if self.chance(0.07):
                    a = self.u(3)
                    self.c.glyph(
                        [(at, y + h / 2 - a / 2), (at + a, y + h / 2 + a / 2), (at + 2 * a, y + h / 2 - a / 2)],
                        k.fg,
                        max(1.0, k.s),
                    )
                    at += 2 * a + self.u(3)
            else:
                at = self._labelled_tool(at, y, h, side, pad, words == "below", x + w)
                if at < 0:
                    break
        if self.chance(0.3) and x + w - at > self.u(160):
            high = round(k.size * 1.9)
            self.search(x + w - self.u(150), y + (h - high) / 2, self.u(140), high)
        if self.chance(0.5):
            self.c.line(x, y + h - 1, x + w, y + h - 1, k.line)
        return y + h

    def _labelled_tool(self, x: float, y: float, h: float, side: int, pad: int, below: bool, right: float) -> float:
        k = self.k
        icon = self.pick_icon(("action", "status", "place"))
        if icon is None:
            return -1
        entry = self.c.kit.icons[icon]
        text = entry["names"][0][:1].upper() + entry["names"][0][1:]
        if len(text) > 18:
            return x
        size = round(k.size * 0.92)
        wide = self.length(text, size)
        total = max(side, wide) + 2 * pad if below else side + wide + self.u(4) + 2 * pad
        if x + total > right:
            return -1
        if below:
            self.c.icon(x + (total - side) / 2, y + pad, side, icon, k.fg)
            self.string(x + (total - wide) / 2, y + pad + side + size * 0.8, text, size=size)
        else:
            self.c.icon(x + pad, y + (h - side) / 2, side, icon, k.fg)
            self.string(x + pad + side + self.u(4), y + h / 2, text, size=size)
        label = Label(text, entry["asked"] if self.w.held and entry["asked"] else entry["functions"])
        self.c.add((x, y + 1, x + total, y + h - 1), "button", self.w.ask("button", label))
        return x + total

    def tab_bar(self, x: float, y: float, w: float, documents: bool | None = None) -> float:
        k, rng = self.k, self.rng
        h, at = round(k.size * rng.choice([1.9, 2.2, 2.6])), x + self.u(rng.choice([0, 4, 8]))
        documents = self.chance(0.4) if documents is None else documents
        style = rng.choice(["box", "line", "pill"])
        self.c.rect((x, y, x + w, y + h), k.panel)
        active = rng.randint(0, 2)
        for i in range(rng.randint(2, 8)):
            label = self.w.file() if documents else self.w.label("t", 18)
            if label is None:
                continue
            closing = documents and self.chance(0.7)
            wide = self.length(label.text) + round(k.size * 1.8) + (self.u(16) if closing else 0)
            if at + wide > x + w - self.u(30):
                break
            if style == "box":
                self.c.rect(
                    (at, y + 2, at + wide, y + h + 1),
                    k.bg if i == active else k.panel,
                    k.line,
                    min(k.radius, self.u(5)),
                )
            elif style == "pill" and i == active:
                self.c.rect((at + 2, y + 3, at + wide - 2, y + h - 3), k.button, None, h)
            elif i == active:
                self.c.rect((at, y + h - self.u(3), at + wide, y + h), k.accent)
            self.string(at + k.size * 0.8, y + h / 2, label.text, k.fg if i == active else k.dim)
            right = at + wide
            if closing:
                cx, cy, a = right - self.u(12), y + h / 2, self.u(3.5)
                self.c.glyph([(cx - a, cy - a), (cx + a, cy + a)], k.dim, max(1.0, k.s))
                self.c.glyph([(cx - a, cy + a), (cx + a, cy - a)], k.dim, max(1.0, k.s))
                self.c.add(
                    (cx - self.u(8), cy - self.u(8), cx + self.u(8), cy + self.u(8)),
                    "button",
                    [
                        {"q": f"close the {label.text} tab", "by": "name"},
                        {"q": f"the x on the {label.text} tab", "by": "name"},
                    ],
                )
                right -= self.u(21)
            self.c.add((at, y, right, y + h), "tab", self.w.ask("tab", label))
            at += wide + self.u(2)
        if documents and at < x + w - self.u(24) and self.w.take("tab-new", "new tab"):
            a, cx, cy = self.u(5), at + self.u(14), y + h / 2
            self.c.glyph([(cx - a, cy), (cx + a, cy)], k.fg, max(1.2, k.s * 1.3))
            self.c.glyph([(cx, cy - a), (cx, cy + a)], k.fg, max(1.2, k.s * 1.3))
            self.c.add(
                (cx - 2 * a, cy - 2 * a, cx + 2 * a, cy + 2 * a),
                "icon",
                [
                    {"q": "the plus button beside the tabs", "by": "name"},
                    *self.w.functions(["open another tab", "start one more page here"], 2),
                ],
            )
        return y + h

    def status_bar(self, x: float, bottom: float, w: float) -> float:
        k, rng = self.k, self.rng
        h = round(k.size * 1.7)
        y, at = bottom - h, x + self.u(8)
        self.c.rect((x, y, x + w, bottom), rng.choice([k.panel, k.bg, k.accent]))
        ink = (255, 255, 255) if self.chance(0.1) else k.dim
        for _ in range(rng.randint(1, 5)):
            text = rng.choice(
                [
                    self.w.value(),
                    f"Ln {rng.randint(1, 400)}, Col {rng.randint(1, 90)}",
                    "UTF-8",
                    self.w.sentence(30),
                    f"{rng.randint(1, 90)} items",
                    "INS",
                    f"{rng.randint(10, 400)}%",
                ]
            )
            if at + self.length(text) > x + w - self.u(10):
                break
            box, _ = self.string(at, y + h / 2, text, ink, size=round(k.size * 0.92))
            if self.w.take(text):
                self.c.add(box, "text", self.w.ask("text", Label(text, [])))
            at = box[2] + self.u(rng.choice([12, 24, 60]))
        return y

    # -- contents

    def panel(self, top: bool) -> float:
        """A task bar: launcher, windows, tray icons, clock. Returns its height in pixels."""
        k, rng = self.k, self.rng
        h = self.u(rng.choice([24, 28, 32, 40, 48]))
        y = 0 if top else self.c.h - h
        self.c.cover((0, y, self.c.w, y + h))
        self.c.rect((0, y, self.c.w, y + h), k.panel)
        side, at, middle = min(round(h * 0.62), self.u(28)), float(self.u(4)), y + h / 2
        for _ in range(rng.randint(2, 9)):
            at = self.icon_button(at, middle, side, self.u(4), kinds=("app", "category", "place", "device"))
        for _ in range(rng.randint(0, 3)):
            label = Label(self.w.words(2), [])
            if self.w.take(label.text) and at + self.u(170) < self.c.w * 0.7:
                self.c.rect((at + 2, y + 2, at + self.u(150), y + h - 2), k.button, k.line, k.radius)
                self.c.icon(at + self.u(8), middle - side / 2, side, self.any_icon(), k.fg)
                self.string(at + self.u(14) + side, middle, label.text, most=self.u(140) - side - self.u(10))
                self.c.add((at + 2, y + 2, at + self.u(150), y + h - 2), "button", self.w.ask("button", label))
                at += self.u(154)
        clock = rng.choice(
            [
                f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}",
                f"Mon {rng.randint(1, 30)} Nov, {rng.randint(0, 23)}:{rng.randint(0, 59):02d}",
            ]
        )
        right = self.c.w - self.length(clock) - self.u(10)
        box, _ = self.string(right, middle, clock)
        if self.w.take("clock"):
            self.c.add(
                box,
                "text",
                [{"q": q, "by": "name"} for q in ("the clock", clock, "the time of day")]
                + self.w.functions(["see what time it is"]),
            )
        small = self.u(rng.choice([14, 16, 18, 22]))
        for _ in range(rng.randint(2, 7)):
            right -= small + self.u(10)
            if right < at:
                break
            self.icon_button(right, middle, small, self.u(4), kinds=("status", "device"))
        return float(h)
