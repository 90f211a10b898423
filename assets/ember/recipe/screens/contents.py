"""What fills drawn windows: lists, trees, tables, forms, settings pages, text, keypads, spreadsheets."""

from __future__ import annotations

from .bars import Bars
from .looks import mix
from .words import Label


class Contents(Bars):
    """Fills rectangles of a window, splitting large ones."""

    def content(self, x: float, y: float, w: float, bottom: float, depth: int = 0) -> None:
        k, rng = self.k, self.rng
        h = bottom - y
        if w < self.u(90) or h < self.u(50):
            return
        if depth < 2 and w > self.u(430) and self.chance(0.5):
            cut = w * rng.uniform(0.2, 0.45)
            self.content(x, y, cut, bottom, depth + 1)
            self.c.line(x + cut, y, x + cut, bottom, k.line)
            self.content(x + cut + 1, y, w - cut - 1, bottom, depth + 1)
            return
        if self.chance(0.4):
            self.c.rect((x, y, x + w, bottom), k.base)
        p = self.u(rng.choice([4, 8, 12, 18]))
        kind = rng.choices(
            ["rows", "tree", "table", "form", "settings", "text", "code", "tiles", "sheet", "keys", "canvas"],
            [2, 2, 2.5 if w > self.u(260) else 0.2, 3, 3, 1.2, 1.2, 1.6, 1 if w > self.u(300) else 0, 0.5, 0.6],
        )[0]
        if kind in ("rows", "tree"):
            self.rows(
                x, y + self.u(3), w, bottom, rng.choice(["item", "item", "file"]), rng.choice("lt"), tree=kind == "tree"
            )
        elif kind == "table":
            self.table(x + (p if self.chance(0.4) else 0), y, w - 2 * p, bottom, actions=self.chance(0.25))
        elif kind == "form":
            self.form(x + p, y + p, w - 2 * p, bottom - p)
        elif kind == "settings":
            self.settings(x + p, y + p, w - 2 * p, bottom - p)
        elif kind == "text":
            top = (
                self.heading(x + p, y + p, w - 2 * p, round(k.size * rng.choice([1.2, 1.5, 2])))
                if self.chance(0.5)
                else y + p
            )
            self.paragraph(x + p, top, w - 2 * p, bottom - p)
        elif kind == "code":
            self.paragraph(
                x + self.u(4),
                y + self.u(4),
                w - self.u(8),
                bottom - self.u(4),
                round(k.size * rng.choice([0.9, 1, 1.1])),
                mono=True,
                links=0,
                numbers=self.chance(0.6),
            )
        elif kind == "tiles":
            self.tiles(x + p, y + p, w - 2 * p, bottom - p)
        elif kind == "keys":
            self.keys(x + p, y + p, w - 2 * p, bottom - p)
        elif kind == "sheet":
            self.sheet(x, y, w, bottom)
        else:  # a picture being edited, without targets
            self.c.rect((x, y, x + w, bottom), mix(k.bg, (0, 0, 0), 0.3))
            self.c.rect(
                (x + w * 0.2, y + h * 0.15, x + w * 0.8, bottom - h * 0.15),
                tuple(rng.randint(0, 255) for _ in range(3)),
            )  # type: ignore[arg-type]

    def form(self, x: float, y: float, w: float, bottom: float) -> None:
        k, rng = self.k, self.rng
        w, above, gap = min(w, self.u(520)), self.chance(0.35), self.u(rng.choice([4, 7, 11]))
        lead = self.u(rng.choice([90, 120, 150])) if self.chance(0.6) and w > self.u(240) else None
        while y < bottom - k.size * 5:
            z = rng.random()
            y = (self.field(x, y, w, above, lead) if z < 0.6 else self.check(x, y, w)) + gap
        at, h = x, round(k.size * 2.0)
        for _ in range(rng.randint(0, 3)):
            label = self.w.label("b", 16)
            if label is None or at + self.length(label.text) + self.u(40) > x + w:
                break
            at = self.button(at, bottom - h, label, h) + self.u(8)

    def settings(self, x: float, y: float, w: float, bottom: float) -> None:
        """A preferences page: groups of switches, check boxes and combos, plain or as cards with rows."""
        k, rng = self.k, self.rng
        cards = self.chance(0.45)
        w = min(w, self.u(rng.choice([420, 560, 760])))
        while y < bottom - k.size * 4:
            label = self.w.label("t", 26)
            if label is not None:
                self.string(x, y + k.size * 0.7, label.text, bold=True)
                y += round(k.size * 1.8)
            for _ in range(rng.randint(2, 6)):
                if y > bottom - k.size * 2.4:
                    return
                inner = x + (self.u(12) if cards or self.chance(0.8) else 0)
                top = y
                y = (
                    self.check(inner, y + (self.u(5) if cards else 0), w - self.u(24), "switch" if cards else None)
                    if self.chance(0.72)
                    else self.field(inner, y + self.u(3), w - self.u(24)) + self.u(4)
                )
                if cards:
                    y += self.u(5)
                    self.c.line(x, y, x + w, y, k.line)
                elif y == top:
                    return
            y += round(k.size * rng.choice([0.6, 1.0]))

    def keys(self, x: float, y: float, w: float, bottom: float) -> None:
        """A keypad: a calculator or a telephone."""
        k, rng = self.k, self.rng
        said = {
            "+": "plus",
            "-": "minus",
            "*": "times",
            "×": "multiply",
            "÷": "divide",
            "=": "equals",
            "%": "percent",
            ".": "decimal point",
            "C": "clear",
            "CE": "clear entry",
        }
        does = {
            "=": ["finish the sum", "what does it all make", "show what comes out"],
            "C": ["forget the sum so far", "begin a fresh sum", "make the figures zero"],
            "AC": ["forget everything typed", "begin anew with zero", "reset the calculator"],
            "CE": ["drop the number I just typed", "correct the last number only"],
            "⌫": ["take the last digit away", "I mistyped one digit"],
            "+": ["put two amounts together", "increase it by something"],
            "÷": ["share it into equal parts", "how often does one go into the other"],
            "×": ["so many times the amount", "find the product"],
            "-": ["take something off the amount", "find the difference"],
            "%": ["parts of a hundred", "reckon the interest"],
            "√": ["which number times itself gives this", "undo a square"],
            "x²": ["a number times itself", "area of a square"],
            "±": ["swap debt and credit", "put a minus in front of it", "change the sign"],
            "sin": ["the ratio of an angle's opposite side", "function of a wave"],
            "ln": ["logarithm to the base e", "natural logarithm"],
            "π": ["ratio of a circle's round to its width", "3.14159"],
            "(": ["work this part out first", "begin a group"],
            ")": ["end the group", "close what was begun before"],
            "MS": ["keep this number for later", "remember what is shown"],
            "MR": ["use the number kept before", "recall what I kept"],
            "MC": ["forget the number kept before", "empty the store"],
            "M+": ["add this to the number kept", "count it towards the store"],
            "Ans": ["go on with what came out last", "the outcome of the line above"],
            "1/x": ["one part of so many", "turn the fraction over"],
            "!": ["product of all numbers up to it", "in how many orders can they stand"],
        }
        names = [
            *"789456123",
            "0",
            ".",
            "=",
            "+",
            "-",
            "×",
            "÷",
            "%",
            "C",
            "CE",
            "sin",
            "cos",
            "tan",
            "log",
            "ln",
            "√",
            "(",
            ")",
            "M+",
            "MR",
            "exp",
            "mod",
            "Ans",
        ]
        if self.chance(0.6):  # another make of calculator
            other = ["AC", "⌫", "x²", "±", "π", "MS", "MC", "1/x", "!"]
            names[13:] = rng.sample(names[13:] + other, rng.randint(9, 20))
        columns = rng.randint(4, 6)
        cell, high, i = w / columns, min(self.u(60), max(self.u(26), (bottom - y) / 5.2)), 0
        self.c.rect((x, y, x + w, y + high), k.base, k.line, k.radius)
        top = y + high + self.u(4)
        while top + high <= bottom and i < len(names):
            for column in range(columns):
                if i >= len(names):
                    break
                text = names[i]
                i += 1
                box = (x + column * cell + 2, top + 2, x + (column + 1) * cell - 2, top + high - 2)
                self.c.rect(box, k.accent if text == "=" else k.button, k.line, k.radius)
                self.string(
                    (box[0] + box[2]) / 2 - self.length(text) / 2,
                    (box[1] + box[3]) / 2,
                    text,
                    (255, 255, 255) if text == "=" else k.fg,
                )
                self.w.take(text)
                queries = self.w.ask("key", Label(text, does.get(text, [])))
                if text in said:
                    queries.append({"q": f"the {said[text]} key", "by": "name"})
                self.c.add(box, "key", queries)
            top += high

    def sheet(self, x: float, y: float, w: float, bottom: float) -> None:
        """A spreadsheet: lettered columns, numbered rows, cells."""
        k, rng = self.k, self.rng
        row, lead, col = round(k.size * rng.choice([1.5, 1.7])), self.u(36), self.u(rng.choice([64, 80, 100]))
        self.c.rect((x, y, x + w, bottom), k.base)
        self.c.rect((x, y, x + w, y + row), k.panel)
        self.c.rect((x, y, x + lead, bottom), k.panel)
        at, i = x + lead, 0
        while at + col <= x + w and i < 26:
            letter = chr(65 + i)
            self.string(at + col / 2 - 4, y + row / 2, letter)
            self.c.line(at, y, at, bottom, k.line)
            self.c.add(
                (at, y, at + col, y + row),
                "header",
                [
                    {"q": f"column {letter}", "by": "text"},
                    {"q": f"the header of column {letter}", "by": "text"},
                    {"q": f"select column {letter}", "by": "name"},
                ],
            )
            at, i = at + col, i + 1
        top, n = y + row, 1
        while top + row <= bottom:
            self.string(x + self.u(8), top + row / 2, str(n), k.dim)
            self.c.line(x, top, x + w, top, k.line)
            for c in range(i):
                if self.chance(0.3):
                    text = self.w.value()
                    _, shown = self.string(x + lead + c * col + 3, top + row / 2, text, most=col - 6)
                    if self.w.take(text) and self.chance(0.15):
                        self.c.add(
                            (x + lead + c * col, top, x + lead + (c + 1) * col, top + row),
                            "cell",
                            self.w.ask("cell", Label(text, []), shown),
                        )
            if self.chance(0.2) and i:
                c = rng.randrange(i)
                box = (x + lead + c * col, top, x + lead + (c + 1) * col, top + row)
                self.c.add(
                    box,
                    "cell",
                    [
                        {"q": f"cell {chr(65 + c)}{n}", "by": "name"},
                        {"q": f"the cell in column {chr(65 + c)}, row {n}", "by": "name"},
                    ],
                )
            top, n = top + row, n + 1

    # -- windows
