"""Screens drawn here, with what is on them: labelled material for choosing pointing heads.

Simple windows in several looks: a title, menus, tool buttons, labelled fields, check boxes, a list. Nothing is needed
beside Pillow and its built-in font.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from PIL import Image, ImageDraw, ImageFont

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""
SIZES = ((640, 448), (768, 512), (512, 512))
MENUS = ("File", "Edit", "View", "Insert", "Format", "Tools", "Window", "Help")
BUTTONS = (
    "Save", "Open", "Print", "Cancel", "Delete", "Search", "Share", "Undo", "Redo", "Copy", "Paste", "Export", "Import",
    "Refresh", "Back", "Next", "Stop", "Start", "Upload", "Download", "Send", "Reply", "Archive", "Install", "Remove",
)  # fmt: skip
FIELDS = (
    "Name",
    "Address",
    "City",
    "Phone",
    "Title",
    "Author",
    "Folder",
    "Password",
    "Subject",
    "Server",
    "Port",
    "Date",
)
CHECKS = (
    "Show hidden files", "Remember me", "Start at login", "Use dark mode", "Check spelling", "Wrap long lines",
    "Notify me by mail", "Keep a backup", "Play sounds", "Limit the speed",
)  # fmt: skip
ENTRIES = (
    "Budget 2025", "Holiday photos", "Meeting notes", "Invoices", "Music", "Recipes", "Travel plan", "Contracts",
    "Old letters", "Garden", "Drawings", "Manuscript", "Insurance", "Reports",
)  # fmt: skip


@dataclass(frozen=True)
class Item:
    question: str
    box: Box


@dataclass(frozen=True)
class Scene:
    picture: Image.Image
    items: tuple[Item, ...]
    absent: tuple[str, ...]
    """Questions about things that are not there."""


@dataclass(frozen=True)
class _Look:
    """Colours and measures of a window."""

    paper: str
    ink: str
    face: str
    edge: str
    size: int
    round: int


_LOOKS = (
    _Look("#f6f6f6", "#1c1c1c", "#e2e2e2", "#b4b4b4", 14, 4),
    _Look("#ffffff", "#202124", "#dbe7ff", "#8aa4d6", 15, 8),
    _Look("#26282c", "#e8e8e8", "#3c4048", "#5a606c", 14, 5),
    _Look("#efe9df", "#33261d", "#d9cdb8", "#a2927a", 16, 0),
)


@dataclass
class _Drawing:
    draw: ImageDraw.ImageDraw
    look: _Look
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont
    items: list[Item] = field(default_factory=list)

    def width(self, text: str) -> int:
        return int(self.draw.textlength(text, self.font))

    def text(self, x: int, y: int, text: str) -> None:
        self.draw.text((x, y), text, fill=self.look.ink, font=self.font)

    def frame(self, box: Box, *, filled: bool = True) -> None:
        fill = self.look.face if filled else None
        self.draw.rounded_rectangle(box, self.look.round, fill=fill, outline=self.look.edge)

    def add(self, question: str, box: Box) -> None:
        self.items.append(Item(question, box))


def make_scenes(count: int, seed: int) -> list[Scene]:
    """``count`` different scenes, always the same for a seed."""
    rng = random.Random(seed)
    return [_scene(rng) for _ in range(count)]


def _scene(rng: random.Random) -> Scene:
    size, look = rng.choice(SIZES), rng.choice(_LOOKS)
    picture = Image.new("RGB", size, look.paper)
    drawing = _Drawing(ImageDraw.Draw(picture), look, ImageFont.load_default(look.size))
    bottom = _menus(rng, drawing, size)
    bottom = _buttons(rng, drawing, size, bottom)
    half = size[0] // 2
    for column, parts in ((12, (_fields, _checks)), (half + 12, (_entries,))):
        top = bottom
        for part in parts:
            top = part(rng, drawing, column, half - 32, top, size[1] - 16)
    said = {item.question for item in drawing.items}
    others = [_wording(rng, "button", text) for text in BUTTONS] + [f"the {text} field" for text in FIELDS]
    others += [f"the {text} menu" for text in MENUS]
    absent = [question for question in others if not any(_word(question) == _word(known) for known in said)]
    return Scene(picture, tuple(drawing.items), tuple(rng.sample(absent, min(3, len(absent)))))


def _word(question: str) -> str:
    """What a question is about, however it is put."""
    return question.removeprefix("the ").removesuffix(" button").removesuffix(" field").removesuffix(" menu").lower()


def _wording(rng: random.Random, kind: str, text: str) -> str:
    return rng.choice((f"the {text} {kind}", f"{text} {kind}", text))


def _menus(rng: random.Random, drawing: _Drawing, size: tuple[int, int]) -> int:
    drawing.draw.rectangle((0, 0, size[0], 28), fill=drawing.look.face)
    x = 10
    for text in rng.sample(MENUS, rng.randint(3, 6)):
        wide = drawing.width(text)
        if x + wide + 20 > size[0]:
            break
        drawing.text(x + 8, 6, text)
        drawing.add(f"the {text} menu", (x, 0, x + wide + 16, 28))
        x += wide + 20
    return 40


def _buttons(rng: random.Random, drawing: _Drawing, size: tuple[int, int], top: int) -> int:
    x, high = 12, rng.randint(28, 40)
    for text in rng.sample(BUTTONS, 9):
        wide = drawing.width(text) + rng.randint(20, 36)
        if x + wide > size[0] - 12:
            break
        box = (x, top, x + wide, top + high)
        drawing.frame(box)
        drawing.text(x + (wide - drawing.width(text)) // 2, top + (high - drawing.look.size) // 2 - 1, text)
        drawing.add(_wording(rng, "button", text), box)
        x += wide + rng.randint(8, 24)
    return top + high + 18


def _fields(rng: random.Random, drawing: _Drawing, left: int, wide: int, top: int, bottom: int) -> int:
    for text in rng.sample(FIELDS, rng.randint(2, 4)):
        if top + 58 > bottom:
            break
        drawing.text(left, top, text)
        box = (left, top + 20, left + wide, top + 50)
        drawing.frame(box, filled=False)
        drawing.add(f"the {text} field", box)
        top += 64
    return top


def _checks(rng: random.Random, drawing: _Drawing, left: int, wide: int, top: int, bottom: int) -> int:
    for text in rng.sample(CHECKS, 4):
        if top + 26 > bottom or drawing.width(text) + 26 > wide:
            break
        drawing.draw.rectangle((left, top + 2, left + 16, top + 18), outline=drawing.look.ink, width=2)
        drawing.text(left + 26, top + 1, text)
        drawing.add(_wording(rng, "check box", text), (left, top, left + 26 + drawing.width(text), top + 20))
        top += 32
    return top


def _entries(rng: random.Random, drawing: _Drawing, left: int, wide: int, top: int, bottom: int) -> int:
    high = 30
    texts = rng.sample(ENTRIES, min(len(ENTRIES), max(1, (bottom - top) // high)))
    drawing.frame((left, top, left + wide, top + high * len(texts)), filled=False)
    for text in texts:
        drawing.text(left + 10, top + 7, text)
        drawing.add(text, (left, top, left + wide, top + high))
        top += high
    return top
