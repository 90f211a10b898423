"""Web pages written for rendering: a kit's navigation, toolbars, cards, tables, forms, menus and dialogs full of labels.

Every element that can be asked for carries `data-k`, the number of its questions in `Page.items`; where it lies is
read from the browser afterwards.
"""

from __future__ import annotations

import base64
import html
import random
from pathlib import Path
from typing import Any

from .canvas import Kit as Assets
from .kits import Kit
from .words import Label, Words

_FAMILIES = [
    "Inter",
    "Roboto",
    "Open Sans",
    "Lato",
    "Noto Sans",
    "Cantarell",
    "DejaVu Sans",
    "Liberation Sans",
    "Carlito",
    "Quicksand",
    "Noto Serif",
    "sans-serif",
]


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
        sets = assets.sets[False]
        self.icons = sets[
            rng.choice(
                [s for s in sets if assets.icons[sets[s][0]]["mono"]]
                if rng.random() < 0.8
                else [s for s in sets if not s.startswith("office")]
            )
        ]
        self.size = rng.choice([14, 16, 16, 18, 20, 24])

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def mark(self, kind: str, queries: list[dict[str, str]]) -> str:
        self.items.append((kind, queries))
        return f' data-k="{len(self.items) - 1}"'

    def part(self, name: str) -> str:
        return self.kit.classes(name)

    def picture(self, icon: int, size: int | None = None) -> str:
        entry, size = self.assets.icons[icon], size or self.size
        blob = entry["blobs"].get("48") or entry["blobs"][max(entry["blobs"], key=int)]
        data = "data:image/webp;base64," + base64.b64encode(self.assets.pack.blob(blob)).decode()
        if entry["mono"]:
            return f'<span class="ic" style="width:{size}px;height:{size}px;-webkit-mask:url({data}) center/contain no-repeat;mask:url({data}) center/contain no-repeat;mask-mode:luminance"></span>'
        return f'<img class="im" width="{size}" height="{size}" src="{data}">'

    def fresh_icon(self) -> int | None:
        for _ in range(30):
            icon = self.rng.choice(self.icons)
            entry = self.assets.icons[icon]
            if (entry["functions"] or self.rng.random() < 0.2) and self.words.take_icon(entry):
                return icon
        return None

    # -- elements
    def icon_button(self) -> str:
        icon = self.fresh_icon()
        if icon is None:
            return ""
        mark = self.mark("icon", self.words.icon_questions(self.assets.icons[icon]))
        tag = self.rng.choice(["button", "button", 'a href="#"'])
        return f"<{tag}{self.part('small')}{mark}>{self.picture(icon)}</{tag.split()[0]}>"

    def button(self, primary: bool | None = None) -> str:
        label = self.words.label("b", 20)
        if label is None:
            return ""
        style = (
            "primary"
            if (self.chance(0.3) if primary is None else primary)
            else self.rng.choice(["button", "button", "ghost"])
        )
        inner = html.escape(label.text)
        if self.chance(0.2):
            inner = self.picture(self.rng.choice(self.icons), 16) + " " + inner
        return f'<button type="button"{self.part(style)}{self.mark("button", self.words.ask("button", label))}>{inner}</button>'

    def link(
        self, part: str = "link", kind: str = "link", letter: str = "l", most: int = 28, icon: bool = False
    ) -> str:
        label = self.words.label(letter, most)
        if label is None:
            return ""
        inner = (self.picture(self.rng.choice(self.icons), 16) + " " if icon else "") + html.escape(label.text)
        return f'<a href="#" style="white-space:nowrap"{self.part(part)}{self.mark(kind, self.words.ask(kind, label))}>{inner}</a>'

    def field(self) -> str:
        label = self.words.label("f", 24)
        if label is None:
            return ""
        text, rng = html.escape(label.text), self.rng
        if rng.random() < 0.25:
            options = "".join(f"<option>{html.escape(self.words.value())}</option>" for _ in range(3))
            control = (
                f"<select{self.part('select')}{self.mark('combo', self.words.ask('combo', label))}>{options}</select>"
            )
        elif rng.random() < 0.08:
            control = f'<textarea rows="3"{self.part("input")}{self.mark("field", self.words.ask("field", label))}></textarea>'
        else:
            value = (
                f' value="{html.escape(self.words.value())}"'
                if self.chance(0.4)
                else f' placeholder="{html.escape(self.words.words(2))}"'
                if self.chance(0.4)
                else ""
            )
            control = (
                f'<input type="text"{value}{self.part("input")}{self.mark("field", self.words.ask("field", label))}>'
            )
        if self.kit.name == "fomantic":
            control = f'<div class="ui input">{control}</div>'
        return f'<div class="fl"><label{self.part("label")}>{text}</label>{control}</div>'

    def check(self) -> str:
        kind = self.rng.choice(["checkbox", "checkbox", "radio"])
        label = self.words.label("c", 44)
        if label is None:
            return ""
        on = " checked" if self.chance(0.5) else ""
        asked = "check" if kind == "checkbox" else "radio"
        name = f"r{len(self.items)}"
        return f'<div class="ck"><label{self.mark(asked, self.words.ask(asked, label))}><input type="{kind}" name="{name}"{on}{self.part("check")}> {html.escape(label.text)}</label></div>'

    # -- parts of a page
    def nav(self) -> str:
        rng = self.rng
        name = self.words.words(1)
        self.words.take(name)
        brand = f'<a href="#"{self.part("brand")}{self.mark("link", [{"q": f"the {name} logo", "by": "name"}, {"q": name, "by": "text"}])}><b>{name}</b></a>'
        links = "".join(self.link("navlink", most=16) for _ in range(rng.randint(2, 7)))
        right = "".join(self.icon_button() for _ in range(rng.randint(0, 5))) + "".join(
            self.button() for _ in range(rng.randint(0, 2))
        )
        search = ""
        if self.chance(0.5) and self.words.take("search", "edit-find", "find"):
            mark = self.mark(
                "field",
                [
                    {"q": "the search box", "by": "name"},
                    {"q": "search field", "by": "name"},
                    *self.words.functions(["type what I am looking for", "look something up"], 1),
                ],
            )
            search = f'<input type="search" placeholder="{rng.choice(["Search", "Search...", "Find", "Type / to search"])}" style="width:180px"{self.part("input")}{mark}>'
        return (
            f'<nav{self.part("nav")}><div class="bar">{brand}{links}<span class="sp"></span>{search}{right}</div></nav>'
        )

    def tool_bar(self) -> str:
        return f'<div class="bar tb">{"".join(self.icon_button() for _ in range(self.rng.randint(4, 16)))}</div>'

    def tabs(self) -> str:
        n = self.rng.randint(3, 7)
        rows = "".join(f"<li>{self.link('active' if i == 0 else 'tab', 'tab', 't', 18)}</li>" for i in range(n))
        return f'<ul{self.part("tabs")} style="display:flex;list-style:none;padding:0;gap:4px">{rows}</ul>'

    def cards(self) -> str:
        rng, cells = self.rng, []
        for _ in range(rng.randint(2, 8)):
            actions = (
                "".join(self.icon_button() for _ in range(rng.randint(0, 3))) if self.chance(0.5) else self.button()
            )
            title = self.link("link", most=26)
            cells.append(
                f"<div{self.part('card')}><div{self.part('body')}><h4{self.part('heading')}>{title}</h4><p{self.part('text')}>{html.escape(self.words.sentence(90))}</p>{actions}</div></div>"
            )
        return f'<div class="grid" style="grid-template-columns:repeat({rng.randint(2, 4)},1fr)">{"".join(cells)}</div>'

    def table(self) -> str:
        rng = self.rng
        n, act = rng.randint(3, 6), self.chance(0.5)
        head = ""
        for _ in range(n):
            label = self.words.label("", 18)
            if label is not None:
                label.functions.clear()
                head += f"<th{self.mark('header', self.words.ask('header', label))}>{html.escape(label.text)}</th>"
        rows = ""
        for i in range(rng.randint(4, 16)):
            first = self.words.words(2)
            cell = (
                f"<td{self.mark('item', self.words.ask('item', Label(first, [])))}>{first}</td>"
                if self.words.take(first)
                else f"<td>{first}</td>"
            )
            cell += "".join(f"<td>{html.escape(self.words.value())}</td>" for _ in range(n - 1))
            if act:
                cell += f"<td>{self.icon_button() + self.icon_button() if i == 0 else ''}</td>"
            rows += f"<tr>{cell}</tr>"
        return f"<table{self.part('table')}><thead><tr>{head}{'<th></th>' if act else ''}</tr></thead><tbody>{rows}</tbody></table>"

    def form(self) -> str:
        rng = self.rng
        fields = "".join(self.field() for _ in range(rng.randint(2, 7)))
        checks = "".join(self.check() for _ in range(rng.randint(0, 5)))
        buttons = "".join(self.button(i == 0) for i in range(rng.randint(1, 3)))
        return f'<form onsubmit="return false" style="max-width:{rng.choice([360, 480, 640])}px" class="g{rng.randint(1, 2)}">{fields}{checks}<div class="bar">{buttons}</div></form>'

    def article(self) -> str:
        text = ""
        for _ in range(self.rng.randint(1, 4)):
            title = self.words.sentence(50)
            mark = self.mark("heading", self.words.ask("heading", Label(title, []))) if self.words.take(title) else ""
            body = " ".join(
                html.escape(self.words.sentence(80)) + (f" {self.link()} " if self.chance(0.3) else ".")
                for _ in range(self.rng.randint(3, 9))
            )
            text += f"<h3{self.part('heading')}><span{mark}>{html.escape(title)}</span></h3><p{self.part('text')}>{body}</p>"
        return text

    def side(self) -> str:
        icon = self.chance(0.4)
        rows = "".join(
            f"<li{self.part('row')}>{self.link('link', most=22, icon=icon)}</li>"
            for _ in range(self.rng.randint(5, 16))
        )
        return f'<ul{self.part("list")} style="list-style:none;padding-left:8px">{rows}</ul>'

    def menu(self) -> str:
        rows = ""
        for _ in range(self.rng.randint(4, 9)):
            rows += f"<li>{self.link('item', 'menuitem', 'm', 22, icon=self.chance(0.4))}</li>"
        left, top = self.rng.randint(5, 60), self.rng.randint(8, 40)
        return f'<ul data-pop="1"{self.part("menu")} style="position:fixed!important;left:{left}%;top:{top}%;list-style:none;padding:6px 10px;z-index:50;border:1px solid GrayText;width:max-content">{rows}</ul>'

    def dialog(self) -> str:
        close = ""
        if self.words.take("close", "window-close"):
            mark = self.mark(
                "window-control",
                [
                    {"q": "the X of the dialog", "by": "name"},
                    {"q": "close button", "by": "name"},
                    *self.words.functions(["close the dialog", "dismiss this box"], 1),
                ],
            )
            close = f'<button{self.part("small")} style="position:absolute;right:8px;top:8px"{mark}>&#10005;</button>'
        inner = f"<h4>{html.escape(self.words.sentence(40))}</h4><p>{html.escape(self.words.sentence(90))}</p>{self.check() if self.chance(0.5) else ''}<div class='bar' style='justify-content:flex-end'>{self.button(False)}{self.button(True)}</div>"
        return f'<div data-pop="1"{self.part("card")} style="position:fixed!important;z-index:60;left:50%;top:38%;transform:translate(-50%,-50%);width:440px;padding:16px;border:1px solid GrayText">{close}{inner}</div>'

    def render(self) -> str:
        """The whole page as HTML."""
        rng = self.rng
        choice = [self.cards, self.cards, self.table, self.form, self.form, self.article, self.article, self.tabs]
        parts = [*rng.sample(choice, rng.randint(3, 6)), *[self.tool_bar] * rng.randint(0, 3)]
        rng.shuffle(parts)
        top = self.nav() if self.chance(0.85) else ""
        body = "".join(part() for part in parts)
        if self.chance(0.5):
            body = f'<div style="display:grid;grid-template-columns:{rng.choice([180, 220, 260])}px 1fr;gap:20px">{self.side()}<main>{body}</main></div>'
        if self.chance(0.25):
            body += f"<footer class='bar'>{''.join(self.link(most=18) for _ in range(rng.randint(3, 9)))}</footer>"
        if self.chance(0.2):
            body += self.menu()
        elif self.chance(0.15):
            body += self.dialog()
        sheets = "".join(f'<link rel="stylesheet" href="file://{self.modules / sheet}">' for sheet in self.kit.sheets)
        font = f"font-family:'{rng.choice(_FAMILIES)}',sans-serif;" if self.chance(0.5) else ""
        size = f"font-size:{rng.choice([13, 14, 15, 16])}px;" if self.chance(0.6) else ""
        width = f"max-width:{rng.choice([960, 1140, 1320])}px;margin:0 auto;" if self.chance(0.3) else ""
        style = (f"body{{{font}{size}}}.wrap{{padding:{rng.choice([8, 16, 28])}px;{width}}}.bar{{display:flex;align-items:center;gap:{rng.choice([4, 8, 14])}px;flex-wrap:nowrap;margin:6px 0}}"
                 ".sp{flex:1}.grid{display:grid;gap:16px;margin:12px 0}.ic{display:inline-block;background:currentColor;vertical-align:middle}.im{display:inline-block;vertical-align:middle}"
                 ".fl{margin:8px 0}.g2{display:grid;grid-template-columns:1fr 1fr;gap:4px 18px}.tb button,.tb a{flex:none}a,button{width:auto}nav .bar input{flex:none}")  # fmt: skip
        attribute = f" {self.kit.dark}" if self.dark and self.kit.dark else ""
        scheme = "dark" if self.dark else "light"
        return (f'<!doctype html><html lang="en"{attribute}><head><meta charset="utf-8"><meta name="color-scheme" content="{scheme}">{sheets}<style>{style}</style></head>'
                f'<body class="{self.kit.body}">{top}<div class="wrap">{body}</div></body></html>')  # fmt: skip

    def placed(self, elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Items with the boxes that the browser found for the marked elements."""
        items = []
        for element in elements:
            if element["k"]:
                kind, queries = self.items[int(element["k"])]
                items.append({"box": element["box"], "kind": kind, "queries": queries})
        return items
