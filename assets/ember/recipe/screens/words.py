"""What is written on a drawn screen and how its elements are asked for: by text, by common name, by function."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .actions import action
from .canvas import Kit
from .files import described, extensions, stems
from .framing import asked, is_order, spoken
from .labels import Subjects, known_as, load_labels, sense, stock, taught
from .meanings import reword

__all__ = ["Label", "Words", "load_labels"]

_GENERAL = {"h": 0.5, "n": 0.3, "b": 0.35, "m": 0.3, "c": 0.25, "f": 0.25}
"""Share of common rows of ``written/labels`` among a screen's labels, where it is not 0.09: more for kinds of element
that a screen has few of."""
_CLOSER = {"c": 1.3, "f": 1.3, "b": 1.2, "m": 1.3}
"""Factors of the share that the screen's subjects have of the others."""
_NEAR, _ABSENT = 4, 12
"""Elements noted as absent: of made commands, and together with those of the screen's subjects."""
_MADE = frozenset("bmctlnfh")
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
_NAME = ["the {n} icon", "{n} icon", "the {n} button", "click the {n} icon", "{n}", "icon for {n}", "press {n}"]


@dataclass
class Label:
    """A text on screen with the phrases for what it is for (none for plain words; "=" before one that is a sentence of
    its own)."""

    text: str
    functions: list[str]


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
        self.subjects = Subjects(rng)
        self.close = rng.uniform(0.25, 0.6)
        """Share of the labels that the screen's subjects give as long as they have any."""
        self._near: list[dict[str, Any]] = []
        self._absent: list[dict[str, Any]] | None = None
        self.phrases: set[str] = set()
        """What the labels on the screen are for."""

    def take(self, *senses: str) -> bool:
        """Reserve senses (texts, concept keys); False when one of them is on the screen already."""
        return self._take([sense(text) for text in senses])

    def _take(self, keys: Iterable[str]) -> bool:
        if not self.taken.isdisjoint(keys):
            return False
        self.taken.update(keys)
        return True

    def _row(self, i: int, most: int) -> Label | None:
        row = stock().rows[i]
        fit = [s for s in row.spellings if len(s) <= most]
        if not fit or not self._take(row.keys):
            return None
        self.subjects.take(i)
        self.phrases.update(row.phrases)
        return Label(self.rng.choice(fit), taught(row.spellings, row.phrases, held=self.held))

    def _close(self, kind: str, most: int) -> Label | None:
        """A label of one of the screen's subjects; None when they have none left for such an element."""
        return next(filter(None, (self._row(i, most) for i in self.subjects.candidates(kind))), None)

    def label(self, kind: str = "", most: int = 26) -> Label | None:
        """A label fit for a kind of element (letters of ``written/labels``), at most `most` characters long."""
        rng, general, close = self.rng, _GENERAL.get(kind, 0.09), self.close * _CLOSER.get(kind, 1.0)
        for _ in range(12):
            found: Label | None = None
            if kind and rng.random() < general and (row := self.subjects.general(kind)) is not None:
                found = self._row(row, most)
            elif kind and rng.random() < close:
                found = self._close(kind, most)
            if found:
                return found
            z = rng.random()
            if z < 0.25 and kind in _MADE:
                found = self._action(kind, most)
            elif z < 0.62 and self.pairs and kind != "h":
                found = self._plain(*rng.choice(self.pairs), most)
            elif z < 0.84 and self.kit.glosses[self.held]:
                text, meaning = rng.choice(self.kit.glosses[self.held])
                found = self._plain(text[0].upper() + text[1:], [f"={meaning}"], most)
            else:
                text = rng.choice(self.short) if z < 0.94 else self.words(rng.choice([1, 1, 2, 2, 3]))
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
        if len(self._near) < _NEAR and self.rng.random() < 0.5 and self.take(near.text.rstrip("."), near.sense):
            self._near.append(self._lacking(near.text.rstrip("."), list(near.ways)))
        return Label(found.text, list(found.ways))

    def _lacking(self, text: str, functions: list[str]) -> dict[str, Any]:
        queries = [{"q": text, "by": "text"}, *self.functions(functions, 2)]
        return {"box": None, "kind": "absent", "queries": queries}

    @property
    def absent(self) -> list[dict[str, Any]]:
        """Elements that the screen does not have, near to ones that it has: most of them of its subjects. To be read
        when the screen is complete; they are chosen once."""
        if self._absent is None:
            self._absent = self._near
            for i in self.subjects.missing():
                row = stock().rows[i]
                if len(self._absent) >= _ABSENT:
                    break
                if self.phrases.isdisjoint(row.phrases) and self._take(row.keys):
                    text = self.rng.choice(row.spellings).rstrip(".")
                    self._absent.append(self._lacking(text, taught(row.spellings, row.phrases, held=self.held)))
        return self._absent

    def named(self, kind: str, text: str) -> Label | None:
        """The label `text` with what it is for, if ``written/labels`` has it for this kind; None when it is taken."""
        for i in known_as(text):
            if kind in stock().rows[i].kinds:
                found = self._row(i, 99)
                return Label(text, found.functions) if found else None
        return Label(text, []) if self.take(text) else None

    def within(self, commands: list[str]) -> list[dict[str, str]]:
        """Questions that lead to a menu by what a command in it does; the command is not shown anywhere else."""
        command = self.rng.choice(commands) if commands else ""
        for i in known_as(command):
            if not stock().rows[i].kinds.isdisjoint("mlb") and (label := self._row(i, 99)):
                forms = ("which menu lets me {f}", "where is the command to {f}?", "open the menu to {f}", "{f}")
                said = [phrase for phrase in label.functions if is_order(phrase)][:3]
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
            said = spoken(phrase)
            if not self.held and rng.random() < 0.5 and not said.startswith(("let ", "make ")):  # "allow" wants "to"
                said = reword(said, rng)
            queries.append({"q": asked(said, rng), "by": "function"})
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
