"""The questions of a decide request: cards one below the other, and the button that adds one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import IconTextButton
from ignis_desktop.widgets.question_card import QuestionCard
from ignis_desktop.widgets.texts import tr


class QuestionCards(QWidget):
    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.cards: list[QuestionCard] = []
        self._pictures = 0
        self.add_button = IconTextButton("plus", "  " + tr("decide.add"))
        self.add_button.clicked.connect(self.add)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self._column.addWidget(self.add_button, 0, Qt.AlignmentFlag.AlignLeft)

    def questions(self) -> dict[str, dict[str, Any]]:
        """By id, in order; of two with one id the first."""
        found: dict[str, dict[str, Any]] = {}
        for card in self.cards:
            found.setdefault(card.id, card.question())
        return found

    def show_questions(self, questions: Mapping[str, Mapping[str, Any]]) -> None:
        for card in list(self.cards):
            self._drop(card)
        for name, question in questions.items():
            self._place(name, question)
        self.changed.emit()

    def add(self) -> QuestionCard:
        """One more question, of the type of the last."""
        taken = {card.id for card in self.cards}
        name = next(f"q{number}" for number in count(1) if f"q{number}" not in taken)
        kind = self.cards[-1].type.value if self.cards else "noul"
        card = self._place(name, {"type": kind})
        card.words.setFocus()
        self.changed.emit()
        return card

    def set_pictures(self, count_: int) -> None:
        self._pictures = count_
        for card in self.cards:
            card.set_pictures(count_)

    def id_faults(self) -> dict[tuple[str, str], str]:
        """Cards without an id, or with one that another card has already."""
        return {
            (card.id, "id"): tr("decide.no_id") if not card.id else tr("decide.same_id", id=card.id)
            for i, card in enumerate(self.cards)
            if not card.id or card.id in {other.id for other in self.cards[:i]}
        }

    def say(self, faults: Mapping[tuple[str, str], str]) -> None:
        """What is wrong, by a question's id and its field."""
        seen: set[str] = set()
        for card in self.cards:
            again = card.id in seen
            seen.add(card.id)
            # Of two cards with one id, the second is the one to change.
            own = {field: text for (name, field), text in faults.items() if name == card.id}
            card.say({f: t for f, t in own.items() if not card.id or (f == "id") == again})

    def show_fault(self) -> None:
        """Scrolls to the first card with a fault."""
        card = next((card for card in self.cards if card.property("invalid")), None)
        area = self.parent()
        while area is not None and not isinstance(area, QScrollArea):
            area = area.parent()
        if card is not None and area is not None:
            area.ensureWidgetVisible(card)

    def _place(self, name: str, question: Mapping[str, Any]) -> QuestionCard:
        card = QuestionCard(name, question)
        card.set_pictures(self._pictures)
        card.changed.connect(self.changed)
        card.removed.connect(lambda: self._remove(card))
        self.cards.append(card)
        self._column.insertWidget(self._column.count() - 1, card)
        return card

    def _remove(self, card: QuestionCard) -> None:
        self._drop(card)
        self.changed.emit()

    def _drop(self, card: QuestionCard) -> None:
        self.cards.remove(card)
        self._column.removeWidget(card)
        card.hide()
        card.deleteLater()
