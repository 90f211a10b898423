"""What is written on a drawn screen and how its elements are asked for: by text, by common name, by function."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.ember.recipe.written import is_unseen, rows

from .actions import action
from .canvas import Kit
from .files import described, extensions, stems
from .meanings import reword

_VERBS = frozenset(
    word
    for line in Path(__file__).with_name("verbs.txt").read_text().splitlines()
    if not line.startswith("#")
    for word in line.split()
)
"""What a phrase begins with that can follow "I want to"."""
_MADE = frozenset("bmctlnf")
"""Elements whose labels may be put together from a verb and an object."""
_KINDS = {
    "button": ["the {t} button", "{t} button", "click {t}", "press {t}", 'click "{t}"', "the button labelled {t}"],
    "menu": ["the {t} menu", "open the {t} menu", "{t} menu", "click {t}"],
    "menuitem": ["{t} menu item", "the {t} entry", "choose {t}", "click {t} in the menu"],
    "tab": ["the {t} tab", "{t} tab", "switch to {t}", "go to the {t} tab"],
    "link": ["the {t} link", "{t} link", "click {t}", "follow the link {t}", "open {t}"],
    "check": ["{t} checkbox", "the {t} checkbox", "tick {t}", "the {t} option"],
    "radio": ["{t} radio button", "select {t}", "the {t} option"],
    "switch": ["{t} switch", "toggle {t}", "the {t} toggle"],
    "field": ["{t} field", "the {t} text field", "type in {t}", "fill in {t}", "the {t} box", "{t} input"],
    "combo": ["{t} dropdown", "the {t} drop-down list", "choose {t}", "the {t} combo box"],
    "item": ["the {t} item", "select {t}", "open {t}", "click {t}", "{t} in the list"],
    "file": ["the file {t}", "open {t}", "select {t}"],
    "cell": ["the cell {t}", "{t} in the table"],
    "header": ["the {t} column", "sort by {t}", "{t} column header"],
    "heading": ["the heading {t}", "{t} heading"],
    "text": ["the text {t}", "where it says {t}"],
    "key": ["the {t} key", "press {t}", "{t} button"],
}
_FUNCTION = [
    "{f}",
    "{f}",
    "{f}",
    "{f}, please",
    "the button to {f}",
    "the control to {f}",
    "the command to {f}",
    "I want to {f}",
    "I would like to {f}",
    "I need to {f}",
    "let me {f}",
    "help me {f}",
    "please {f}",
    "where do I click to {f}?",
    "where can I {f}?",
    "what do I press to {f}?",
    "which one lets me {f}",
    "which of these is used to {f}?",
    "how can I {f}?",
    "how do I {f}?",
    "is there a way to {f}?",
    "can I {f}?",
    "so that I can {f}",
    "the thing for people who want to {f}",
    "my aim is to {f}",
    "it is time to {f}",
]
_PHRASE = ["{f}", "{f}", "{f}", "{f}, please", "the one for this: {f}", "what I want: {f}", "I look for this: {f}"]
_NAME = ["the {n} icon", "{n} icon", "the {n} button", "click the {n} icon", "{n}", "icon for {n}", "press {n}"]


@dataclass
class Label:
    """A text on screen with the phrases for what it is for (none for plain words; "=" before one that is a sentence of
    its own)."""

    text: str
    functions: list[str]


def load_labels() -> list[tuple[list[str], str, list[str]]]:
    """(spellings, kinds, functions) a line of ``written/labels``."""
    found = []
    for line in rows("labels"):
        spellings, kinds, functions = line.split("|")
        found.append(
            (
                [s.strip() for s in spellings.split(";")],
                kinds,
                [f.strip() for f in functions.split(";") if f.strip()],
            )
        )
    return found


def taught(spellings: list[str], functions: list[str], *, held: bool) -> list[str]:
    """The phrases of a row that are asked: in training all but the last, and none of an unseen row, whose labels are
    only read there; on held-out screens what is left of them."""
    if is_unseen(spellings[0]):
        return list(functions) if held else []
    return functions[-1:] if held else functions[:-1] or list(functions)


_LABELS = load_labels()


class Words:
    """Vocabulary of one screen: nothing is used twice, so that every question has one answer."""

    def __init__(self, kit: Kit, rng: random.Random, held: bool) -> None:
        self.rng, self.held, self.kit = rng, held, kit
        end = "_heldout" if held else ""
        strings = kit.strings
        self.short, self.long = strings["short" + end], strings["long" + end]
        self.pairs, self.vocabulary = strings["pairs" + end], strings["words" + end] or strings["words"]
        self.taken: set[str] = set()
        self.endings: set[str] = set()
        self.sole: set[str] = set()
        """File name extensions on the screen, and those that only one file has."""
        self.absent: list[dict[str, Any]] = []
        """Elements that the screen does not have, near to ones that it has."""
        self.by_kind: dict[str, list[int]] = {}
        for i, (_, kinds, _) in enumerate(_LABELS):
            for kind in kinds.split():
                self.by_kind.setdefault(kind, []).append(i)

    def take(self, *senses: str) -> bool:
        """Reserve senses (texts, concept keys); False when one of them is on the screen already."""
        keys = [re.sub(r"[^a-z0-9]+", " ", sense.lower()).strip() for sense in senses]
        if any(key in self.taken for key in keys):
            return False
        self.taken.update(keys)
        return True

    def _row(self, i: int, most: int) -> Label | None:
        spellings, _, functions = _LABELS[i]
        fit = [s for s in spellings if len(s) <= most]
        if not fit:
            return None
        if not self.take(*(s.rstrip(".") for s in spellings)):
            return None
        return Label(self.rng.choice(fit), taught(spellings, functions, held=self.held))

    def label(self, kind: str = "", most: int = 26) -> Label | None:
        """A label fit for a kind of element (letters of ``written/labels``), at most `most` characters long."""
        rng = self.rng
        for _ in range(12):
            z = rng.random()
            found: Label | None = None
            if kind in self.by_kind and z < 0.28:
                found = self._row(rng.choice(self.by_kind[kind]), most)
            elif kind in _MADE and z < 0.54:
                found = self._action(kind, most)
            elif z < 0.70 and self.pairs:
                found = self._plain(*rng.choice(self.pairs), most)
            elif z < 0.80 and self.kit.glosses[self.held]:
                text, meaning = rng.choice(self.kit.glosses[self.held])
                found = self._plain(text.capitalize(), [f"={meaning}"], most)
            else:
                text = rng.choice(self.short) if z < 0.93 else self.words(rng.choice([1, 1, 2, 2, 3]))
                found = self._plain(text, [], most)
            if found:
                return found
        return None

    def _plain(self, text: str, functions: Iterable[str], most: int) -> Label | None:
        return Label(text, list(functions)) if len(text) <= most and self.take(text) else None

    def _action(self, kind: str, most: int) -> Label | None:
        """A label of verb and object; now and then its neighbour is noted as something the screen does not have."""
        found, near = action(self.rng, kind, self.held)
        if len(found.text) > most or not self.take(found.text.rstrip("."), found.sense):
            return None
        if len(self.absent) < 12 and self.rng.random() < 0.5 and self.take(near.text.rstrip("."), near.sense):
            queries = [{"q": near.text.rstrip("."), "by": "text"}, *self.functions(list(near.ways), 2)]
            self.absent.append({"box": None, "kind": "absent", "queries": queries})
        return Label(found.text, list(found.ways))

    def named(self, kind: str, text: str) -> Label | None:
        """The label `text` with what it is for, if ``written/labels`` has it for this kind; None when it is taken."""
        for i in self.by_kind[kind]:
            if text in _LABELS[i][0]:
                found = self._row(i, 99)
                return Label(text, found.functions) if found else None
        return Label(text, []) if self.take(text) else None

    def within(self, commands: list[str]) -> list[dict[str, str]]:
        """Questions that lead to a menu by what a command in it does; the command is not shown anywhere else."""
        command = self.rng.choice(commands) if commands else ""
        for i in (i for kind in "mlb" for i in self.by_kind.get(kind, ()) if command in _LABELS[i][0]):
            if label := self._row(i, 99):
                forms = ("which menu lets me {f}", "where is the command to {f}?", "open the menu to {f}", "{f}")
                said = [phrase for phrase in label.functions if phrase.split()[0] in _VERBS][:3]
                return [{"q": self.rng.choice(forms).format(f=phrase), "by": "function"} for phrase in said]
        return []

    def words(self, n: int) -> str:
        text = " ".join(self.rng.choice(self.vocabulary).lower() for _ in range(n))
        return self.rng.choice([text.capitalize(), text.capitalize(), text.title(), text])

    def sentence(self, most: int = 70) -> str:
        for _ in range(6):
            text = self.rng.choice(self.long) if self.rng.random() < 0.65 else self.words(self.rng.randint(4, 10))
            if len(text) <= most:
                return text
        return text[:most].rsplit(" ", 1)[0]

    def file(self) -> Label | None:
        """A file's name, half of them with what the file is about or of what sort it is."""
        return next(filter(None, (self._file() for _ in range(8))), None)

    def _file(self) -> Label | None:
        rng = self.rng
        ending = rng.choice([e for e in extensions() if e not in self.sole])
        does: list[str] = []
        if rng.random() < 0.45:
            stem = rng.choice(stems())
            if not self.take(f"file about {stem}"):
                return None
            does += described(rng, stem, self.held)
            stem += rng.choice(
                ["", "", "", f"-{rng.randint(2015, 2027)}", f"_{rng.randint(1, 12):02d}", "-final", " 2"]
            )
            stem = rng.choice([stem, stem, stem.capitalize()])
        else:
            stem = rng.choice(["", "", "", "IMG_", "my_", "2024-"]) + rng.choice(self.vocabulary).lower()
            stem += rng.choice(["", "", f"_{rng.choice(self.vocabulary).lower()}", str(rng.randint(1, 99))])
        if ending not in self.endings and rng.random() < 0.35:  # no other file here will be of this sort
            self.sole.add(ending)
            does += described(rng, f".{ending}", self.held)
        self.endings.add(ending)
        text = f"{stem}.{ending}"
        return Label(text, does) if self.take(text) else None

    def value(self) -> str:
        rng = self.rng
        word = rng.choice(self.vocabulary)
        return rng.choice(
            [
                f"{rng.randint(1990, 2030)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
                f"{rng.randint(1, 9999) / 10:.1f} {rng.choice(['KB', 'MB', 'GB', 'ms', 'km'])}",
                f"{word.lower()}@{rng.choice(self.vocabulary).lower()}.org",
                f"${rng.randint(1, 9999)}.{rng.randint(0, 99):02d}",
                f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}",
                word.capitalize(),
                f"{rng.randint(0, 100)} %",
                str(rng.randint(1, 20000)),
                rng.choice(self.short)[:22],
            ]
        )

    # -- questions
    def ask(self, kind: str, label: Label, shown: str | None = None) -> list[dict[str, str]]:
        """Questions for an element with visible text; cut-off text is asked as far as it is legible."""
        text = (shown or label.text).rstrip("….").strip() or label.text
        rng = self.rng
        queries = [{"q": text, "by": "text"}]
        forms = _KINDS.get(kind, _KINDS["text"])
        queries += [{"q": form.format(t=text), "by": "text"} for form in rng.sample(forms, min(2, len(forms)))]
        return queries + self.functions(label.functions)

    def functions(self, phrases: list[str], most: int = 3) -> list[dict[str, str]]:
        rng = self.rng
        queries = []
        for phrase in rng.sample(phrases, min(most, len(phrases))):
            if phrase.startswith("="):  # a sentence of its own
                queries.append({"q": phrase[1:], "by": "function"})
                continue
            said = (
                re.sub(r"^(Whether (or not )?(to )?|If (true|enabled|set|checked),? ?)", "", phrase).strip().rstrip(".")
            )
            said = said[:1].lower() + said[1:] if not said[1:2].isupper() else said
            if not self.held and rng.random() < 0.5:
                said = reword(said, rng)
            order = said.split()[0].lower() in _VERBS and " " in said
            form = rng.choice(_FUNCTION if order else _PHRASE)
            queries.append({"q": form.format(f=said), "by": "function"})
        return queries

    def icon_questions(self, icon: dict[str, Any], described: bool = True) -> list[dict[str, str]]:
        """Questions for a bare icon: its names, synonyms its set lists, what it does."""
        rng = self.rng
        names = icon["names"][:]
        extra = rng.sample(icon["synonyms"], min(1, len(icon["synonyms"])))
        picked = rng.sample(names, min(2, len(names))) + extra
        queries = [
            {"q": rng.choice(_NAME).format(n=name.lower() if name[1:2].islower() else name), "by": "name"}
            for name in picked
        ]
        phrases = icon["asked"] if self.held and icon["asked"] else icon["functions"]
        return queries + (self.functions(phrases) if described else [])

    def take_icon(self, icon: dict[str, Any]) -> bool:
        """Reserve an icon's meaning and names; False when the screen has them."""
        return self.take(*(icon["names"][:3] + ([icon["concept"]] if icon["concept"] else [])))
