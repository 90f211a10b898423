"""The heading over the lanes: how the timeline is to be read, its scale, and the names of the columns."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ignis_desktop.widgets.lane_history import SECONDS, LaneHistory
from ignis_desktop.widgets.lane_timeline import Timeline
from ignis_desktop.widgets.lane_view import Columns
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens, ui_font

HEIGHT = 28
_SAMPLE = (14, 10)
_STATES = ("prefill", "decode", "parked")
_ROOMY = 320
"""Pixels of timeline from which on every quarter of it is named."""
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class LaneHeading(QWidget):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._samples: dict[str, Timeline] = {}
        self.setFixedHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip(tr("lanes.heading_tip"))

    def sizeHint(self) -> QSize:
        return QSize(640, HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(ui_font(12))
        painter.setPen(QColor(tokens().secondary))
        columns = Columns.of(self.width())
        self._paint_samples(painter, columns.words[1])
        self._paint_scale(painter, *columns.strip)
        for name, (left, width) in (
            ("rate", columns.rate),
            ("context", columns.context),
            ("drafts", columns.drafts),
        ):
            inset = 8 if name == "drafts" else 0
            painter.drawText(QRect(left, 0, width - inset, HEIGHT - 1), _RIGHT, tr(f"lanes.column_{name}"))
        painter.fillRect(0, HEIGHT - 1, self.width(), 1, QColor(tokens().line))
        painter.end()

    def _paint_samples(self, painter: QPainter, width: int) -> None:
        metrics = painter.fontMetrics()
        x = 28
        for state in _STATES:
            name = tr(f"lanes.state_{state}")
            wanted = _SAMPLE[0] + 5 + metrics.horizontalAdvance(name)
            if x + wanted > width - 12:
                break
            self._sample(state).paint(painter, QPoint(x, (HEIGHT - 1 - _SAMPLE[1]) // 2))
            painter.drawText(QRect(x + _SAMPLE[0] + 5, 0, wanted, HEIGHT - 1), Qt.AlignmentFlag.AlignVCenter, name)
            x += wanted + 10

    def _sample(self, state: str) -> Timeline:
        if state not in self._samples:
            history = LaneHistory()
            history.note(0.0, state, "", "sample")
            history.note(SECONDS, "idle")
            self._samples[state] = timeline = Timeline(history)
            timeline.resize(*_SAMPLE, self.devicePixelRatioF())
            timeline.advance(SECONDS)
        return self._samples[state]

    def _paint_scale(self, painter: QPainter, left: int, width: int) -> None:
        parts = 4 if width >= _ROOMY else 2
        for part in range(parts + 1):
            seconds = round(SECONDS * (1 - part / parts))
            text = tr("lanes.seconds_ago", seconds=seconds) if seconds else tr("lanes.now")
            x = left + round(width * part / parts)
            wide = painter.fontMetrics().horizontalAdvance(text) + 2
            start = min(max(left, x - wide // 2), left + width - wide)
            painter.drawText(QRect(start, 0, wide, HEIGHT - 1), Qt.AlignmentFlag.AlignVCenter, text)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._samples.clear()
        return super().event(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._samples.clear()
            self.update()
        super().changeEvent(event)
