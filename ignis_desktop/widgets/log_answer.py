"""The line that answers, how sure that is, what it took, and the runners-up to jump to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import CopyButton, IconButton, button
from ignis_desktop.widgets.elided import ElidedLabel
from ignis_desktop.widgets.figures import FillBar, share_text
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.tips import plain

_BAR = 96


@dataclass(frozen=True, slots=True)
class Ranked:
    """A line that may be the answer; ``share`` from 0 to 1."""

    row: int
    line: int
    text: str
    share: float


class LogAnswer(QFrame):
    chosen = Signal(int)
    """Place in the ranking: 0 is the answer."""
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._ranking: tuple[Ranked, ...] = ()
        self._chosen = 0
        self.title = QLabel()
        self.title.setProperty("kind", "figure")
        self.text = ElidedLabel(mono=True)
        self.copy = CopyButton(lambda: self._ranking[0].text if self._ranking else "", hint=tr("log.copy_answer"))
        close = IconButton("x", tr("log.close_answer"))
        close.clicked.connect(self.closed)
        self.bar = FillBar()
        self.bar.setFixedWidth(_BAR)
        self.sure = QLabel()
        self.sure.setProperty("kind", "small")
        self.timing = ElidedLabel(tone="secondary")
        top = QHBoxLayout()
        top.setSpacing(12)
        top.addWidget(self.title)
        top.addWidget(self.text, 1)
        top.addWidget(self.copy)
        top.addWidget(close)
        middle = QHBoxLayout()
        middle.setSpacing(8)
        middle.addWidget(self.bar)
        middle.addWidget(self.sure)
        middle.addSpacing(8)
        middle.addWidget(self.timing, 1)
        self.note = QLabel(wordWrap=True)
        self.note.setProperty("kind", "small")
        self._links = QHBoxLayout()
        self._links.setSpacing(4)
        self._others = QLabel()
        self._others.setProperty("kind", "small")
        self._links.addWidget(self._others)
        self._links.addStretch(1)
        self.links: list[QPushButton] = []
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 8, 8, 8)
        layout.setSpacing(4)
        layout.addLayout(top)
        layout.addLayout(middle)
        layout.addWidget(self.note)
        layout.addLayout(self._links)

    @property
    def ranking(self) -> tuple[Ranked, ...]:
        return self._ranking

    @property
    def place(self) -> int:
        """Which of the ranking was chosen last."""
        return self._chosen

    def show_answer(self, ranking: Sequence[Ranked], *, found: bool, timing: str, where: str, note: str = "") -> None:
        """``where``: what was searched when nothing was found, for "not in …"; ``note``: what else is to be known."""
        self._ranking = tuple(ranking)
        best = self._ranking[0] if found else None
        self.title.setText(tr("log.not_found", where=where) if best is None else tr("log.line", line=f"{best.line:,}"))
        self.text.set_text("" if best is None else best.text.strip())
        for widget in (self.copy, self.bar, self.sure):
            widget.setVisible(found)
        if best is not None:
            self.bar.show_share(best.share)
            self.sure.setText(tr("log.sure", share=share_text(best.share)))
        self.timing.set_text(timing)
        self.note.setText(note)
        self.note.setVisible(bool(note))
        self._fill_links(1 if found else 0)
        self._others.setText(tr("log.runners_up") if found else tr("log.closest"))
        self._others.setVisible(bool(self.links))
        self.choose(0 if found else -1)

    def _fill_links(self, start: int) -> None:
        for link in self.links:
            self._links.removeWidget(link)
            link.hide()
            link.deleteLater()
        self.links = []
        for place, ranked in enumerate(self._ranking[start:], start=start):
            link = button(f"{tr('log.line', line=f'{ranked.line:,}')} · {share_text(ranked.share)}", "link")
            link.setToolTip(plain(ranked.text.strip()[:500]))
            link.setAccessibleName(tr("log.line", line=f"{ranked.line:,}") + f": {ranked.text.strip()[:200]}")
            link.setCursor(Qt.CursorShape.PointingHandCursor)
            link.setCheckable(True)
            link.clicked.connect(lambda _checked=False, place=place: self.choose(place))
            self._links.insertWidget(self._links.count() - 1, link)
            self.links.append(link)

    def choose(self, place: int) -> None:
        """Goes to one of the ranking; -1 to none."""
        self._chosen = place
        start = len(self._ranking) - len(self.links)
        for i, link in enumerate(self.links, start=start):
            link.setChecked(i == place)
        if place >= 0:
            self.chosen.emit(place)

    def step(self, by: int) -> None:
        """To the next or the one before."""
        if not self._ranking:
            return
        if self._chosen < 0:
            self.choose(0 if by > 0 else len(self._ranking) - 1)
        else:
            self.choose((self._chosen + by) % len(self._ranking))

    def mousePressEvent(self, event: object) -> None:
        if self._ranking and self.copy.isVisibleTo(self):
            self.choose(0)
