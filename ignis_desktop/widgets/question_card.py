"""One typed question of a decide request: its id, its type, its words, and what the type asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import IconButton, Select, Switch
from ignis_desktop.widgets.number_field import NumberField
from ignis_desktop.widgets.texts import tr

TYPES = ("noul", "choice", "score", "multi", "number", "locate", "point", "box")
KINDS = ("auto", "log", "prose", "records")
OPTIONED = ("choice", "score", "multi")
PLACES = ("point", "box")
_NAMED = " = "
"""What stands between an option's name and its text."""
_OPTION_LINES, _MOST_LINES = 3, 8
_DIGITS = 3


class QuestionCard(QFrame):
    """Members of a question that it has no field for are kept."""

    changed = Signal()
    removed = Signal()

    def __init__(self, name: str, question: Mapping[str, Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._kept = dict(question)
        kind = {"boolean": "noul", "scalar": "number"}.get(str(question.get("type")), str(question.get("type")))
        self.name = QLineEdit(name)
        self.name.setProperty("kind", "mono")
        self.name.setAccessibleName(tr("decide.id"))
        self.name.setToolTip(tr("decide.id"))
        self.type = Select([(one, tr(f"decide.type_{one}")) for one in TYPES], kind)
        self.type.setAccessibleName(tr("decide.type"))
        remove = IconButton("trash-2", tr("decide.remove"))
        remove.clicked.connect(self.removed)
        self.words = _Lines(str(question.get("instructions") or question.get("question") or ""), 1)
        self.words.setAccessibleName(tr("decide.instructions"))
        self.hint = QLabel(wordWrap=True)
        self.hint.setProperty("kind", "small")
        self.options = _Lines(_option_lines(question), _OPTION_LINES)
        self.options.setAccessibleName(tr("decide.options"))
        self.options.setPlaceholderText(tr("decide.options_placeholder"))
        self.true = QLineEdit(str(question.get("true") or ""), placeholderText=tr("decide.true_hint"))
        self.true.setAccessibleName(tr("decide.true_hint"))
        self.false = QLineEdit(str(question.get("false") or ""), placeholderText=tr("decide.false_hint"))
        self.false.setAccessibleName(tr("decide.false_hint"))
        digits = question.get("digits")
        self.digits = NumberField(digits if isinstance(digits, int) else _DIGITS, 1, 9)
        self.digits.setAccessibleName(tr("decide.digits"))
        self.fraction = Switch(tr("decide.fraction"))
        self.fraction.setChecked(question.get("type") == "scalar")
        self.kind = Select([(one, tr(f"decide.kind_{one}")) for one in KINDS], str(question.get("kind", "auto")))
        self.kind.setAccessibleName(tr("decide.kind"))
        image = question.get("image")
        self.image = NumberField(image + 1 if isinstance(image, int) else 1, 1, 99)
        self.image.setAccessibleName(tr("decide.which_picture"))
        self._faults = {field: _fault_label() for field in ("id", "type", "instructions", "options", "other")}
        self._rows = {
            "noul": _row(self.true, self.false),
            "options": self.options,
            "number": _row(QLabel(tr("decide.digits")), self.digits, QLabel(tr("decide.fraction")), self.fraction),
            "locate": _row(QLabel(tr("decide.kind")), self.kind),
            "picture": _row(QLabel(tr("decide.which_picture")), self.image),
        }
        top = QHBoxLayout()
        top.setSpacing(4)
        top.addWidget(self.name, 1)
        top.addWidget(self.type)
        top.addWidget(remove)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(6)
        column.addLayout(top)
        column.addWidget(self._faults["id"])
        column.addWidget(self._faults["type"])
        column.addWidget(self.words)
        column.addWidget(self._faults["instructions"])
        for row in self._rows.values():
            column.addWidget(row)
        column.addWidget(self.hint)
        column.addWidget(self._faults["options"])
        column.addWidget(self._faults["other"])
        for field in (self.name, self.true, self.false):
            field.textEdited.connect(self.changed)
        for lines in (self.words, self.options):
            lines.textChanged.connect(self.changed)
        for number in (self.digits, self.image):
            number.changed.connect(self.changed)
        self.fraction.toggled.connect(self.changed)
        self.kind.chosen.connect(self.changed)
        self.type.chosen.connect(self._choose_type)
        self._pictures = 0
        self._arrange()

    @property
    def id(self) -> str:
        return self.name.text().strip()

    def question(self) -> dict[str, Any]:
        """As it stands in a request."""
        kind = self.type.value
        own = ("type", "question", "instructions", "options", "levels", "true", "false", "digits", "kind", "image")
        kept = {key: value for key, value in self._kept.items() if key not in own}
        asked: dict[str, Any] = {"type": kind, "instructions": self.words.toPlainText().strip()}
        if kind in OPTIONED:
            asked["options"] = _options_of(self.options.toPlainText())
        elif kind == "noul":
            pairs = (("true", self.true.text().strip()), ("false", self.false.text().strip()))
            asked |= {key: text for key, text in pairs if text}
        elif kind == "number":
            asked |= {"type": "scalar" if self.fraction.isChecked() else "number", "digits": self.digits.value}
        elif kind == "locate":
            asked["kind"] = self.kind.value
        elif kind in PLACES and self._pictures > 1:
            asked["image"] = (self.image.value or 1) - 1
        return asked | kept

    def set_pictures(self, count: int) -> None:
        """How many pictures the evidence has."""
        self._pictures = count
        self._arrange()

    def say(self, faults: Mapping[str, str]) -> None:
        """What is wrong, by field; a field that has no place of its own stands below the others."""
        shown = dict.fromkeys(self._faults, "")
        for field, text in faults.items():
            shown[field if field in shown else "other"] = text
        for field, text in shown.items():
            self._faults[field].setText(text)
            self._faults[field].setVisible(bool(text))
        if bool(self.property("invalid")) != bool(faults):
            self.setProperty("invalid", bool(faults))
            self.style().polish(self)

    def _choose_type(self) -> None:
        self._arrange()
        self.say({})
        self.changed.emit()

    def _arrange(self) -> None:
        kind = self.type.value
        shown = "options" if kind in OPTIONED else "picture" if kind in PLACES and self._pictures > 1 else kind
        for name, row in self._rows.items():
            row.setVisible(name == shown)
        self.words.setPlaceholderText(tr(f"decide.ask_{kind}"))
        self.hint.setText(tr("decide.score_hint" if kind == "score" else "decide.options_hint"))
        self.hint.setVisible(kind in OPTIONED)


class _Lines(QPlainTextEdit):
    """A text of ``least`` lines that grows with what is written."""

    def __init__(self, text: str, least: int) -> None:
        super().__init__(text)
        self._least = least
        self.setTabChangesFocus(True)
        self.document().documentLayout().documentSizeChanged.connect(self._grow)
        self._grow()

    def _grow(self) -> None:
        lines = self.document().size().height()  # of this kind of document it is counted in lines
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if lines > _MOST_LINES else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        lines = min(max(lines, self._least), _MOST_LINES)
        self.setFixedHeight(math.ceil(lines * self.fontMetrics().lineSpacing()) + 18)


def _options_of(text: str) -> list[str] | dict[str, str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not any(_NAMED in line for line in lines):
        return lines
    pairs = [line.split(_NAMED, 1) if _NAMED in line else [line, line] for line in lines]
    return {name.strip(): words.strip() for name, words in pairs}


def _option_lines(question: Mapping[str, Any]) -> str:
    options = question.get("options", question.get("levels", ()))
    if isinstance(options, Mapping):
        return "\n".join(str(n) if n == t else f"{n}{_NAMED}{t}" for n, t in options.items())
    return "\n".join(map(str, options)) if isinstance(options, list | tuple) else ""


def _fault_label() -> QLabel:
    label = QLabel(wordWrap=True)
    label.setProperty("tone", "bad")
    label.hide()
    return label


def _row(*widgets: QWidget) -> QWidget:
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(8)
    fields = any(isinstance(widget, QLineEdit) and not isinstance(widget, NumberField) for widget in widgets)
    for widget in widgets:
        layout.addWidget(widget, 1 if isinstance(widget, QLineEdit) and not isinstance(widget, NumberField) else 0)
    if not fields:
        layout.addStretch(1)
    return row
