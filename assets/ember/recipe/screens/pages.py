"""Web pages written for rendering, full of labels: navigation, toolbars, cards, tables, forms, menus, dialogs of a kit.

Every element that can be asked for carries `data-k`, the number of its questions in `Page.items`; where it lies is
read from the browser afterwards.
"""

from __future__ import annotations

import base64
import html
import random
from pathlib import Path
from string import Template
from typing import Any

from .canvas import Kit as Assets
from .kits import Kit
from .words import Label, Words

_FAMILIES = ["Inter", "Roboto", "Open Sans", "Lato", "Noto Sans", "Cantarell", "DejaVu Sans", "Carlito", "Noto Serif"]
_STYLE = Template("""
body { $font $size }
.wrap { padding: ${padding}px; $width }
.bar { display: flex; align-items: center; gap: ${gap}px; flex-wrap: nowrap; margin: 6px 0 }
.space { flex: 1 }
.end { justify-content: flex-end }
.grid { display: grid; gap: 16px; margin: 12px 0 }
.beside { display: grid; grid-template-columns: ${side}px 1fr; gap: 20px }
.icon { display: inline-block; background: currentColor; vertical-align: middle; mask-mode: luminance }
.image { display: inline-block; vertical-align: middle }
.entry { margin: 8px 0 }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 4px 18px }
.tabs { display: flex; list-style: none; padding: 0; gap: 4px }
.side { list-style: none; padding-left: 8px }
.bar > button, .bar > a, .bar > input { flex: none; width: auto }
[data-pop] { position: fixed !important; border: 1px solid GrayText; padding: 8px 12px; list-style: none }
.menu { z-index: 50; width: max-content }
.dialog { z-index: 60; left: 50%; top: 38%; transform: translate(-50%, -50%); width: 440px }
.corner { position: absolute; right: 8px; top: 8px }
""")
# Floating parts take the page's own colours, since themes differ in what they call a surface.
SETTLE = """
const solid = e => !e ? 'Canvas' : /rgba\\(.*, 0\\)|transparent/.test(getComputedStyle(e).backgroundColor)
  ? solid(e.parentElement) : getComputedStyle(e).backgroundColor;
for (const e of document.querySelectorAll('[data-pop]')) {
  e.style.setProperty('background', solid(document.body), 'important');
  e.style.setProperty('color', getComputedStyle(document.body).color, 'important');
}
"""


class Page:
    """One page under construction. `items[k]` is (kind, questions) of the element marked `data-k="k"`."""

    def __init__(self, kit: Kit, assets: Assets, rng: random.Random, modules: Path, dark: bool) -> None:
        self.kit, self.assets, self.rng, self.modules, self.dark = kit, assets, rng, modules, dark
        self.words = Words(assets, rng, held=False)
        self.items: list[tuple[str, list[dict[str, str]]]] = []
        sets = {name: icons for name, icons in assets.sets[False].items() if not name.startswith("office")}
        mono = [name for name in sets if assets.icons[sets[name][0]]["mono"]]
        self.icons = sets[rng.choice(mono if mono and rng.random() < 0.8 else list(sets))]
        self.size = rng.choice([14, 16, 16, 18, 20, 24])

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def several(self, make: Any, least: int, most: int) -> str:
        return "".join(make() for _ in range(self.rng.randint(least, most)))

    def tag(
        self,
        element: str,
        inner: str,
        part: str = "",
        asked: tuple[str, list[dict[str, str]]] | None = None,
        **attributes: str,
    ) -> str:
        """An element with the kit's classes for `part`, the number of its questions and further attributes."""
        classes = " ".join(filter(None, (self.kit.parts.get(part, ""), attributes.pop("also", ""))))
        if classes:
            attributes["class"] = classes
        if asked is not None:
            attributes["data-k"] = str(len(self.items))
            self.items.append(asked)
        written = "".join(f' {key.replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items())
        return f"<{element}{written}>" + ("" if element in ("input", "img", "link") else f"{inner}</{element}>")

    def picture(self, icon: int, size: int | None = None) -> str:
        entry, size = self.assets.icons[icon], size or self.size
        blob = entry["blobs"].get("48") or entry["blobs"][max(entry["blobs"], key=int)]
        data = "data:image/webp;base64," + base64.b64encode(self.assets.pack.blob(blob)).decode()
        if not entry["mono"]:
            return self.tag("img", "", also="image", width=str(size), height=str(size), src=data)
        mask = f"mask-image:url({data});mask-size:contain"
        return self.tag("span", "", also="icon", style=f"width:{size}px;height:{size}px;{mask}")

    def any_picture(self) -> str:
        return self.picture(self.rng.choice(self.icons), 16) + " "

    # -- elements
    def icon_button(self) -> str:
        for _ in range(30):
            icon = self.assets.choose(self.icons, self.rng, 0.8)
            entry = self.assets.icons[icon]
            if self.words.take_icon(entry):
                asked = ("icon", self.words.icon_questions(entry))
                if self.chance(0.3):
                    return self.tag("a", self.picture(icon), "small", asked, href="#")
                return self.tag("button", self.picture(icon), "small", asked)
        return ""

    def button(self, primary: bool | None = None) -> str:
        label = self.words.label("b", 20)
        if label is None:
            return ""
        main = self.chance(0.3) if primary is None else primary
        inner = (self.any_picture() if self.chance(0.2) else "") + html.escape(label.text)
        part = "primary" if main else self.rng.choice(["button", "button", "ghost"])
        return self.tag("button", inner, part, ("button", self.words.ask("button", label)), type="button")

    def link(
        self, part: str = "link", kind: str = "link", letter: str = "l", most: int = 28, icon: bool = False
    ) -> str:
        label = self.words.label(letter, most)
        if label is None:
            return ""
        inner = (self.any_picture() if icon else "") + html.escape(label.text)
        return self.tag("a", inner, part, (kind, self.words.ask(kind, label)), href="#", style="white-space:nowrap")

    def field(self) -> str:
        label = self.words.label("f", 24)
        if label is None:
            return ""
        z = self.rng.random()
        if z < 0.25:
            options = self.several(lambda: self.tag("option", html.escape(self.words.value())), 3, 3)
            control = self.tag("select", options, "select", ("combo", self.words.ask("combo", label)))
        else:
            asked = ("field", self.words.ask("field", label))
            said = (
                {"value": self.words.value()} if z < 0.55 else {"placeholder": self.words.words(2)} if z < 0.8 else {}
            )
            if z > 0.93:
                control = self.tag("textarea", "", "input", asked, rows="3")
            else:
                control = self.tag("input", "", "input", asked, type="text", **said)
        if self.kit.name == "fomantic":
            control = f'<div class="ui input">{control}</div>'
        return self.tag("div", self.tag("label", html.escape(label.text), "label") + control, also="entry")

    def check(self) -> str:
        label = self.words.label("c", 44)
        if label is None:
            return ""
        kind = self.rng.choice(["check", "check", "radio"])
        on = {"checked": ""} if self.chance(0.5) else {}
        box = self.tag(
            "input", "", "check", type="checkbox" if kind == "check" else "radio", name=f"n{len(self.items)}", **on
        )
        return self.tag(
            "div", self.tag("label", f"{box} {html.escape(label.text)}", "", (kind, self.words.ask(kind, label)))
        )

    # -- parts of a page
    def nav(self) -> str:
        name = self.words.words(1)
        self.words.take(name)
        logo = ("link", [{"q": f"the {name} logo", "by": "name"}, {"q": name, "by": "text"}])
        inner = self.tag("a", f"<b>{name}</b>", "brand", logo, href="#")
        inner += self.several(lambda: self.link("navlink", most=16), 2, 7) + '<span class="space"></span>'
        if self.chance(0.5) and self.words.take("search", "edit-find", "find"):
            does = self.words.functions(["type what I am looking for", "look something up"], 1)
            asked = ("field", [{"q": "the search box", "by": "name"}, {"q": "search field", "by": "name"}, *does])
            hint = self.rng.choice(["Search", "Search...", "Find", "Type / to search"])
            inner += self.tag("input", "", "input", asked, type="search", placeholder=hint, style="width:180px")
        inner += self.several(self.icon_button, 0, 5) + self.several(self.button, 0, 2)
        return self.tag("nav", self.tag("div", inner, also="bar"), "nav")

    def tool_bar(self) -> str:
        return self.tag("div", self.several(self.icon_button, 4, 16), also="bar")

    def tabs(self) -> str:
        rows = [self.link("tab" if i else "active", "tab", "t", 18) for i in range(self.rng.randint(3, 7))]
        return self.tag("ul", "".join(self.tag("li", row) for row in rows), "tabs", also="tabs")

    def card(self) -> str:
        inner = self.tag("h4", self.link(most=26), "heading")
        inner += self.tag("p", html.escape(self.words.sentence(90)), "text")
        inner += self.several(self.icon_button, 0, 3) if self.chance(0.5) else self.button()
        return self.tag("div", self.tag("div", inner, "body"), "card")

    def cards(self) -> str:
        columns = f"grid-template-columns:repeat({self.rng.randint(2, 4)},1fr)"
        return self.tag("div", self.several(self.card, 2, 8), also="grid", style=columns)

    def table(self) -> str:
        columns, act = self.rng.randint(3, 6), self.chance(0.5)
        head = ""
        for _ in range(columns):
            label = self.words.label("h", 18)
            if label is not None:
                head += self.tag("th", html.escape(label.text), "", ("header", self.words.ask("header", label)))
        rows = ""
        for i in range(self.rng.randint(4, 16)):
            first = self.words.words(2)
            asked = ("item", self.words.ask("item", Label(first, []))) if self.words.take(first) else None
            cells = self.tag("td", first, "", asked)
            cells += "".join(self.tag("td", html.escape(self.words.value())) for _ in range(columns - 1))
            if act:
                cells += self.tag("td", self.icon_button() + self.icon_button() if i == 0 else "")
            rows += self.tag("tr", cells)
        head = self.tag("thead", self.tag("tr", head + ("<th></th>" if act else "")))
        return self.tag("table", head + self.tag("tbody", rows), "table")

    def form(self) -> str:
        inner = self.several(self.field, 2, 7) + self.several(self.check, 0, 5)
        buttons = self.button(True) + self.several(lambda: self.button(False), 0, 2)
        width = f"max-width:{self.rng.choice([360, 480, 640])}px"
        return self.tag(
            "form", inner + self.tag("div", buttons, also="bar"), also=self.rng.choice(["", "two"]), style=width
        )

    def article(self) -> str:
        text = ""
        for _ in range(self.rng.randint(1, 4)):
            title = self.words.sentence(50)
            asked = ("heading", self.words.ask("heading", Label(title, []))) if self.words.take(title) else None
            text += self.tag("h3", self.tag("span", html.escape(title), "", asked), "heading")
            count = self.rng.randint(3, 9)
            parts = [
                html.escape(self.words.sentence(80)) + (f" {self.link()}" if self.chance(0.3) else ".")
                for _ in range(count)
            ]
            text += self.tag("p", " ".join(parts), "text")
        return text

    def side(self) -> str:
        icon = self.chance(0.4)
        rows = self.several(lambda: self.tag("li", self.link(most=22, icon=icon), "row"), 5, 16)
        return self.tag("ul", rows, "list", also="side")

    def menu(self) -> str:
        rows = self.several(lambda: self.tag("li", self.link("item", "menuitem", "m", 22, self.chance(0.4))), 4, 9)
        place = f"left:{self.rng.randint(5, 60)}%;top:{self.rng.randint(8, 40)}%"
        return self.tag("ul", rows, "menu", also="menu", data_pop="1", style=place)

    def dialog(self) -> str:
        inner = ""
        if self.words.take("close", "window-close"):
            does = self.words.functions(["close the dialog", "dismiss this box"], 1)
            names = [{"q": "the X of the dialog", "by": "name"}, {"q": "close button", "by": "name"}]
            inner = self.tag("button", "&#10005;", "small", ("window-control", names + does), also="corner")
        inner += self.tag("h4", html.escape(self.words.sentence(40))) + self.tag(
            "p", html.escape(self.words.sentence(90))
        )
        inner += self.check() if self.chance(0.5) else ""
        inner += self.tag("div", self.button(False) + self.button(True), also="bar end")
        return self.tag("div", inner, "card", also="dialog", data_pop="1")

    def render(self) -> str:
        """The whole page as HTML."""
        rng = self.rng
        choice = [self.cards, self.cards, self.table, self.form, self.form, self.article, self.article, self.tabs]
        parts = [*rng.sample(choice, rng.randint(3, 6)), *[self.tool_bar] * rng.randint(0, 3)]
        rng.shuffle(parts)
        top = self.nav() if self.chance(0.85) else ""
        body = "".join(part() for part in parts)
        if self.chance(0.5):
            body = self.tag("div", self.side() + self.tag("main", body), also="beside")
        if self.chance(0.25):
            body += self.tag("footer", self.several(lambda: self.link(most=18), 3, 9), also="bar")
        z = rng.random()
        body += self.menu() if z < 0.2 else self.dialog() if z < 0.32 else ""
        style = _STYLE.substitute(
            font=f"font-family: '{rng.choice(_FAMILIES)}', sans-serif;" if self.chance(0.5) else "",
            size=f"font-size: {rng.choice([13, 14, 15, 16])}px;" if self.chance(0.6) else "",
            padding=rng.choice([8, 16, 28]),
            width=f"max-width: {rng.choice([960, 1140, 1320])}px; margin: 0 auto;" if self.chance(0.3) else "",
            gap=rng.choice([4, 8, 14]),
            side=rng.choice([180, 220, 260]),
        )
        head = f'<meta charset="utf-8"><meta name="color-scheme" content="{"dark" if self.dark else "light"}">'
        for sheet in self.kit.sheets:
            head += self.tag("link", "", rel="stylesheet", href=f"file://{self.modules / sheet}")
        attribute = f" {self.kit.dark}" if self.dark and self.kit.dark else ""
        return (
            f'<!doctype html><html lang="en"{attribute}><head>{head}<style>{style}</style></head>'
            f'<body class="{self.kit.body}">{top}<div class="wrap">{body}</div></body></html>'
        )

    def placed(self, elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Items with the boxes that the browser found for the marked elements."""
        items = []
        for element in elements:
            if element["k"]:
                kind, queries = self.items[int(element["k"])]
                items.append({"box": element["box"], "kind": kind, "queries": queries})
        return items
