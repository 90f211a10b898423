"""One lane: who holds it, what it did in the last minute, how fast it is. Painted only where something changes."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QEnterEvent,
    QFocusEvent,
    QFont,
    QFontMetrics,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QMenu, QSizePolicy, QToolTip, QWidget

from ignis_desktop.widgets.buttons import IconButton, with_key
from ignis_desktop.widgets.lane_history import LaneHistory
from ignis_desktop.widgets.lane_timeline import Timeline, tint_colour
from ignis_desktop.widgets.lane_view import ROW_HEIGHT, STRIP_HEIGHT, Columns, LaneView, span_text
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import mono_font, tokens, ui_font
from ignis_desktop.widgets.tips import plain

_BUTTON = 24
_TEXT = 40
"""Where a row's words begin, after the lane's number and the mark of its class."""
_LIVE = 3
"""Width of the mark at the right end of what goes on."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class LaneRow(QWidget):
    """Shows ``LaneView``s; the timeline moves with ``advance``."""

    cancel_wanted = Signal(str)
    park_wanted = Signal(str)
    pointed = Signal(int)
    """This lane's number when the mouse or the keyboard comes to it, −1 when it leaves."""
    stepped = Signal(int, int)
    """(This lane's number, −1 or 1): the keyboard goes to the row before or after."""

    def __init__(self, lane: int, tip: Callable[[], str], parent: QWidget | None = None) -> None:
        """``tip``: everything there is to know about the request on the lane now."""
        super().__init__(parent)
        self.lane = lane
        self._tip_of_request = tip
        self.history = LaneHistory()
        self._timeline = Timeline(self.history)
        self._view = LaneView()
        self._now = 0.0
        self._marked = False
        self._words: tuple[str, str] | None = None
        self._columns = Columns.of(self.width())
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedHeight(ROW_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._park = IconButton("pause", with_key(tr("lanes.park"), Qt.Key.Key_P), self, size=_BUTTON)
        self._cancel = IconButton("x", with_key(tr("lanes.cancel"), Qt.Key.Key_Delete), self, size=_BUTTON)
        self._park.clicked.connect(lambda: self.park_wanted.emit(self._view.request))
        self._cancel.clicked.connect(lambda: self.cancel_wanted.emit(self._view.request))
        for button in (self._park, self._cancel):
            button.installEventFilter(self)
        self._show_buttons()
        self._say()

    def sizeHint(self) -> QSize:
        return QSize(640, ROW_HEIGHT)

    @property
    def view(self) -> LaneView:
        return self._view

    def show_view(self, view: LaneView) -> None:
        """Takes what the lane does now; repaints the parts that say something else."""
        before, self._view = self._view, view
        if view == before:
            return
        if (view.title, view.detail, view.tint, view.state) != (before.title, before.detail, before.tint, before.state):
            self._words = None
            self._say()
            self.update()
        elif (view.rate, view.context, view.drafts) != (before.rate, before.context, before.drafts):
            self.update(self._numbers())
        if (view.request, view.parkable) != (before.request, before.parkable):
            self._show_buttons()

    def advance(self, now: float) -> bool:
        """Moves the timeline on to ``now``; whether it has to be painted."""
        self._now = now
        moved = self._timeline.advance(now)
        if moved:
            self.update(self._strip())
        return moved

    def mark(self, on: bool) -> None:
        """Shows that something of this lane is pointed at elsewhere."""
        if on != self._marked:
            self._marked = on
            self.update()

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, view, columns, exposed = tokens(), self._view, self._columns, event.region()
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(theme.hover if self._lit() else theme.panel))
        painter.fillRect(0, ROW_HEIGHT - 1, self.width(), 1, QColor(theme.line))
        if exposed.intersects(self._place(columns.words)):
            self._paint_words(painter)
        if exposed.intersects(self._strip()):
            self._paint_strip(painter)
        if exposed.intersects(self._numbers()):
            painter.setFont(mono_font(12))
            painter.setPen(QColor(theme.text if view.state == "decode" else theme.secondary))
            painter.drawText(self._place(columns.rate), _RIGHT, view.rate)
            painter.setPen(QColor(theme.text if view.live else theme.secondary))
            painter.drawText(self._place(columns.context), _RIGHT, view.context)
            painter.setPen(QColor(theme.secondary))
            painter.drawText(self._place(columns.drafts).adjusted(0, 0, -8, 0), _RIGHT, view.drafts)
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -2), 5, 5)
        painter.end()

    def _paint_words(self, painter: QPainter) -> None:
        theme, view = tokens(), self._view
        place = self._place(self._columns.words)
        painter.setFont(mono_font(12))
        painter.setPen(QColor(theme.secondary if view.request else theme.disabled))
        painter.drawText(QRect(0, 0, 20, ROW_HEIGHT - 1), _RIGHT, str(self.lane + 1))
        if not view.request:
            painter.setFont(ui_font(12))
            painter.drawText(place.adjusted(_TEXT, 0, 0, 0), _LEFT, tr("lanes.free"))
            return
        painter.fillRect(28, 7, 3, ROW_HEIGHT - 15, tint_colour(view.tint))
        first, second = ui_font(13), ui_font(12)
        if self._words is None:
            width = place.width() - _TEXT - 12 - self._buttons_width()
            self._words = _elided(first, view.title, width), _elided(second, view.detail, width)
        painter.setFont(first)
        painter.setPen(QColor(theme.text if view.live else theme.secondary))
        painter.drawText(QRect(_TEXT, 2, place.width(), 17), _LEFT, self._words[0])
        painter.setFont(second)
        painter.setPen(QColor(theme.secondary))
        painter.drawText(QRect(_TEXT, 19, place.width(), 15), _LEFT, self._words[1])

    def _paint_strip(self, painter: QPainter) -> None:
        place = self._strip()
        self._timeline.paint(painter, place.topLeft())
        if self._view.live:
            painter.fillRect(place.right() + 1 - _LIVE, place.y(), _LIVE, place.height(), QColor(tokens().accent))

    def _place(self, column: tuple[int, int]) -> QRect:
        return QRect(column[0], 0, column[1], ROW_HEIGHT - 1)

    def _strip(self) -> QRect:
        left, width = self._columns.strip
        return QRect(left, (ROW_HEIGHT - 1 - STRIP_HEIGHT) // 2, width, STRIP_HEIGHT)

    def _numbers(self) -> QRect:
        left = self._columns.rate[0]
        return QRect(left, 0, self.width() - left, ROW_HEIGHT - 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._columns = Columns.of(self.width())
        self._words = None
        self._fit()
        right = self._columns.words[1] - 10
        for button in (self._cancel, self._park):
            right -= _BUTTON
            button.move(right, (ROW_HEIGHT - 1 - _BUTTON) // 2)

    def _fit(self) -> None:
        strip = self._strip()
        self._timeline.resize(strip.width(), strip.height(), self.devicePixelRatioF())
        if self._now:
            self._timeline.advance(self._now)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._timeline.restyle()
            if self._now:
                self._timeline.advance(self._now)
            self.update()
        super().changeEvent(event)

    # Pointing, keys, menu

    def _lit(self) -> bool:
        return self._marked or self.underMouse()

    def _reached(self) -> bool:
        """Whether mouse or keyboard are here or on a button in the row."""
        focus = QApplication.focusWidget()
        return self.underMouse() or (focus is not None and self.isAncestorOf(focus))

    def _buttons_width(self) -> int:
        shown = (not self._cancel.isHidden()) + (not self._park.isHidden())
        return shown * _BUTTON

    def _show_buttons(self) -> None:
        on = bool(self._view.request) and self._reached()
        for button, shown in ((self._cancel, on), (self._park, on and self._view.parkable)):
            if button.hasFocus() and not shown:
                self.setFocus()
            button.setVisible(shown)
        self._words = None
        self.update()

    def enterEvent(self, event: QEnterEvent) -> None:
        self._show_buttons()
        self.pointed.emit(self.lane)

    def leaveEvent(self, event: QEvent) -> None:
        self._show_buttons()
        self.pointed.emit(-1)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._show_buttons()
        self.pointed.emit(self.lane)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._show_buttons()
        self.pointed.emit(-1)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self._show_buttons()
            self.pointed.emit(self.lane if event.type() == QEvent.Type.FocusIn else -1)
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.stepped.emit(self.lane, -1 if key == Qt.Key.Key_Up else 1)
        elif key == Qt.Key.Key_Delete and self._view.request:
            self.cancel_wanted.emit(self._view.request)
        elif key == Qt.Key.Key_P and self._view.parkable:
            self.park_wanted.emit(self._view.request)
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if not self._view.request:
            return
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        self.menu().popup(self.mapToGlobal(QPoint(_TEXT, ROW_HEIGHT - 4)) if by_key else event.globalPos())

    def menu(self) -> QMenu:
        """What can be done with the request on this lane; deletes itself when it closes."""
        request = self._view.request
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        park = menu.addAction(tr("lanes.park"), lambda: self.park_wanted.emit(request))
        park.setEnabled(self._view.parkable)
        menu.addAction(tr("lanes.cancel"), lambda: self.cancel_wanted.emit(request))
        menu.addSeparator()
        menu.addAction(tr("lanes.copy_id"), lambda: QApplication.clipboard().setText(request))
        return menu

    # Words

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), plain(self._tip(event.pos())), self)
            return True
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._fit()
            self.update()
        return super().event(event)

    def _tip(self, at: QPoint) -> str:
        strip = self._strip()
        if strip.left() <= at.x() <= strip.right():
            span = self.history.at(self._timeline.moment(at.x() - strip.left(), self._now))
            return span_text(span, self._now) if span else ""
        return self._tip_of_request()

    def _say(self) -> None:
        view, number = self._view, self.lane + 1
        if view.request:
            state = tr(f"lanes.state_{view.state}")
            words = tr("lanes.spoken", lane=number, state=state, title=view.title, detail=view.detail)
        else:
            words = tr("lanes.spoken_free", lane=number)
        self.setAccessibleName(words)


def _elided(font: QFont, text: str, width: int) -> str:
    return QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, max(0, width))
