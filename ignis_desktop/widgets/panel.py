"""The frame every panel shares: a header with a title, what it acts on and a menu, and the body under it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

HEADER_HEIGHT = 48


class PanelHeader(QWidget):
    """``left`` and ``right`` take what a panel adds beside its title."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panelHeader")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(HEADER_HEIGHT)
        self._full_title = title
        self._title = QLabel(title)
        self._title.setProperty("kind", "title")
        self._title.setMinimumWidth(40)
        self.left = QHBoxLayout()
        self.left.setSpacing(4)
        self.right = QHBoxLayout()
        self.right.setSpacing(4)
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 0, 12, 0)
        row.setSpacing(8)
        row.addLayout(self.left)
        row.addWidget(self._title, 1)
        self._subject = QLabel()
        self._subject.setProperty("kind", "small")
        row.addWidget(self._subject)
        row.addLayout(self.right)

    @property
    def title(self) -> str:
        return self._full_title

    def set_title(self, title: str) -> None:
        self._full_title = title
        self._elide()

    def set_subject(self, text: str) -> None:
        """Says what the panel acts on."""
        if text != self._subject.text():
            self._subject.setText(text)

    def _elide(self) -> None:
        width = max(self._title.width(), 40)
        self._title.setText(self._title.fontMetrics().elidedText(self._full_title, Qt.TextElideMode.ElideRight, width))
        self._title.setToolTip(self._full_title if self._title.text() != self._full_title else "")

    def resizeEvent(self, event: object) -> None:
        self._elide()


class ScrolledColumn(QScrollArea):
    """A column of controls at most ``width`` pixels wide, scrolled when the window is too low.

    ``margin``: pixels at its sides; ``ends``: above and below.
    """

    def __init__(
        self, width: int, parent: QWidget | None = None, *, margin: int = 32, ends: tuple[int, int] = (24, 32)
    ) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        content = QWidget()
        content.setObjectName("scrollContent")
        inner = QWidget()
        inner.setMaximumWidth(width)
        self.column = QVBoxLayout(inner)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(8)
        outer = QHBoxLayout(content)
        outer.setContentsMargins(margin, ends[0], margin, ends[1])
        outer.addStretch(1)
        outer.addWidget(inner, 1000)
        outer.addStretch(1)
        self.setWidget(content)


def card(parent: QWidget | None = None) -> tuple[QFrame, QVBoxLayout]:
    """A bordered box and the layout inside it."""
    frame = QFrame(parent)
    frame.setObjectName("card")
    layout = QVBoxLayout(frame)
    layout.setContentsMargins(16, 14, 16, 14)
    layout.setSpacing(10)
    return frame, layout


def form_row(label: str, control: QWidget, hint: str = "") -> QWidget:
    """A label with an explanation at the left, its control at the right."""
    row = QWidget()
    words = QVBoxLayout()
    words.setSpacing(2)
    name = QLabel(label)
    name.setBuddy(control)
    words.addWidget(name)
    if hint:
        explanation = QLabel(hint, wordWrap=True)
        explanation.setProperty("kind", "small")
        words.addWidget(explanation)
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(16)
    layout.addLayout(words, 1)
    layout.addWidget(control, 0, Qt.AlignmentFlag.AlignVCenter)
    return row


def section(title: str) -> QLabel:
    label = QLabel(title)
    label.setProperty("kind", "section")
    return label
