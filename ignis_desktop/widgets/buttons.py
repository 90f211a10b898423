"""Small controls that every panel uses: tinted icon buttons, copy, choice, switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QActionGroup, QColor, QGuiApplication, QKeySequence, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QMenu, QPushButton, QStyle, QStyleOptionButton, QToolButton, QWidget

from ignis_desktop.widgets import icons
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens
from ignis_desktop.widgets.tokens import CONTROL_HEIGHT

_COPIED_MS = 1500


class IconButton(QToolButton):
    """A square button with a Lucide icon that follows the theme. ``hint`` is tool tip and accessible name."""

    def __init__(
        self,
        name: str,
        hint: str,
        parent: QWidget | None = None,
        *,
        tone: str = "secondary",
        size: int = CONTROL_HEIGHT,
    ) -> None:
        super().__init__(parent)
        self._name = name
        self._tone = tone
        self.setFixedSize(size, size)
        self.setIconSize(QSize(16, 16))
        self.setToolTip(hint)
        self.setAccessibleName(hint.split("\n", maxsplit=1)[0])
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._tint()

    def set_icon(self, name: str, tone: str | None = None) -> None:
        if (name, tone or self._tone) != (self._name, self._tone):
            self._name, self._tone = name, tone or self._tone
            self._tint()

    def _tint(self) -> None:
        self.setIcon(icons.icon(self._name, self._tone))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._tint()
        super().changeEvent(event)


class IconTextButton(QPushButton):
    """A push button with an icon before its text."""

    def __init__(self, name: str, text: str, kind: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._name = name
        self.setProperty("kind", kind)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setIconSize(QSize(16, 16))
        self._tint()

    def _tint(self) -> None:
        self.setIcon(icons.icon(self._name, "panel" if self.property("kind") == "primary" else "text"))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._tint()
        super().changeEvent(event)


def with_key(hint: str, key: Qt.Key) -> str:
    """``hint`` with the key that does the same."""
    return f"{hint} ({QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)})"


def button(text: str, kind: str = "", parent: QWidget | None = None) -> QPushButton:
    """A push button in one of the style sheet's looks ("", "primary", "quiet", "example")."""
    result = QPushButton(text, parent)
    result.setProperty("kind", kind)
    result.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return result


class CopyButton(IconButton):
    """Puts ``text()`` on the clipboard and shows a tick for a moment."""

    def __init__(self, text: Callable[[], str], parent: QWidget | None = None, hint: str = "") -> None:
        super().__init__("copy", hint or tr("action.copy"), parent)
        self._text = text
        self._back = QTimer(self, singleShot=True, interval=_COPIED_MS)
        self._back.timeout.connect(lambda: self.set_icon("copy", "secondary"))
        self.clicked.connect(self._copy)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text())
        self.set_icon("check", "good")
        self._back.start()


class Select(QPushButton):
    """One choice of a few, opened as a menu."""

    chosen = Signal(str)

    def __init__(self, choices: Sequence[tuple[str, str]], value: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "select")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self._labels = dict(choices)
        menu = QMenu(self)
        group = QActionGroup(menu)
        self._actions = {}
        for key, label in choices:
            action = menu.addAction(label)
            action.setCheckable(True)
            group.addAction(action)
            action.triggered.connect(lambda _checked=False, key=key: self._choose(key))
            self._actions[key] = action
        self.setMenu(menu)
        metrics = self.fontMetrics()
        self.setMinimumWidth(max(metrics.horizontalAdvance(label) for _, label in choices) + 48)
        self._value = ""
        self.set_value(value)

    @property
    def value(self) -> str:
        return self._value

    def set_value(self, value: str) -> None:
        """Shows ``value`` without announcing it."""
        self._value = value if value in self._labels else next(iter(self._labels))
        self.setText(self._labels[self._value])
        self._actions[self._value].setChecked(True)

    def _choose(self, key: str) -> None:
        self.set_value(key)
        self.chosen.emit(key)

    def paintEvent(self, event: QPaintEvent) -> None:
        # The style sheet cannot pad the text of a button with a menu, so that frame and text are drawn apart.
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        option.features &= ~QStyleOptionButton.ButtonFeature.HasMenu
        theme = tokens()
        painter = QPainter(self)
        self.style().drawControl(QStyle.ControlElement.CE_PushButton, option, painter, self)
        painter.setPen(QColor(theme.text if self.isEnabled() else theme.disabled))
        painter.drawText(self.rect().adjusted(10, 0, -26, 0), Qt.AlignmentFlag.AlignVCenter, self.text())
        colour = theme.secondary if self.isEnabled() else theme.disabled
        image = icons.pixmap("chevron-down", colour, 14, self.devicePixelRatioF())
        painter.drawPixmap(self.width() - 22, (self.height() - 14) // 2, image)
        painter.end()


class Switch(QAbstractButton):
    """An on/off switch, 36 × 20 pixels. On is drawn in the text's colour: the accent is kept for live things."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(44, CONTROL_HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = tokens()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(4, 4, 36, 20)
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.drawRoundedRect(track.adjusted(-3, -3, 3, 3), 13, 13)
        on = self.isChecked()
        colour = QColor(theme.disabled if not self.isEnabled() else theme.text if on else theme.secondary)
        painter.setPen(QPen(colour, 1.5))
        painter.setBrush(colour if on else QColor(theme.panel))
        painter.drawRoundedRect(track.adjusted(1, 1, -1, -1), 9, 9)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.panel) if on else colour)
        painter.drawEllipse(QRectF(track.right() - 16 if on else track.left() + 4, track.top() + 4, 12, 12))
        painter.end()
