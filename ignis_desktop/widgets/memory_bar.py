"""Memory as one horizontal bar to scale: whose it is, what is free, where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from ignis_desktop.widgets.theme import mono_font, tokens, ui_font
from ignis_desktop.widgets.tips import plain
from ignis_desktop.widgets.tokens import contrast

Look = Literal["solid", "hatched", "clear", "others"]
GIB, MIB = 1 << 30, 1 << 20
_BAR, _STRIP, _ZOOM, _BEFORE, _AXIS = 40, 10, 14, 6, 24
"""Pixels of height: the bar, the strip of the whole memory and the lens under it, the bar of before, the axis."""
_WHOLE = 0.4
"""Where the plan takes less than this part of the memory, the bar shows the plan alone under a strip of the whole."""
_FADED = 0.3
_PAD = 8


@dataclass(frozen=True)
class MemoryPart:
    """``tone`` is a colour's name in the theme; ``detail`` what hovering says."""

    name: str
    label: str
    bytes: int
    detail: str = ""
    tone: str = ""
    look: Look = "solid"


class MemoryBar(QWidget):
    pointed = Signal(str)
    """The part under the mouse or chosen by the arrow keys; "" for none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[MemoryPart, ...] = ()
        self._before: tuple[MemoryPart, ...] = ()
        self._end = 0
        self._name = ""
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_parts(self, parts: Sequence[MemoryPart], end: int, before: Sequence[MemoryPart] = ()) -> None:
        """Parts from the left to the right, empty ones left out.

        Args:
            end: bytes there really are; what stands beyond is too much.
            before: parts in force while others are being considered.
        """
        parts = tuple(part for part in parts if part.bytes > 0)
        before = tuple(part for part in before if part.bytes > 0)
        if (parts, end, before) != (self._parts, self._end, self._before):
            self._parts, self._end, self._before = parts, end, before
            self.setAccessibleDescription(", ".join(part.detail for part in parts))
            self.updateGeometry()
            self.update()

    def point_at(self, name: str) -> None:
        """Lets all parts fade but the named one; "" none."""
        if name != self._name:
            self._name = name
            self.update()

    @property
    def zoomed(self) -> bool:
        """Whether the bar shows the plan alone."""
        return _used(self._parts) < _WHOLE * self._whole and bool(_used(self._parts))

    def part_at(self, x: float, y: float) -> MemoryPart | None:
        """The part under a point, in the strip or in the bar."""
        if self.zoomed and y < _STRIP + _ZOOM / 2:
            return _at(self._parts, x / max(self.width(), 1) * self._whole)
        top = _STRIP + _ZOOM if self.zoomed else 0
        row = self._before if self._before and y > top + _BAR else self._parts
        return _at(self._shown(row), x / max(self.width(), 1) * self._scale)

    def sizeHint(self) -> QSize:
        height = _BAR + _AXIS
        height += _STRIP + _ZOOM if self.zoomed else 0
        height += _BEFORE + 2 if self._before else 0
        return QSize(640, height)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    @property
    def _whole(self) -> int:
        return sum(part.bytes for part in self._parts)

    @property
    def _scale(self) -> int:
        """Bytes of the bar's whole width."""
        if not self.zoomed:
            return max(self._whole, 1)
        return max(_used(self._parts), _used(self._before))

    def _shown(self, parts: Sequence[MemoryPart]) -> list[MemoryPart]:
        return [part for part in parts if part.look == "solid"] if self.zoomed else list(parts)

    # Pointing

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        part = self.part_at(event.position().x(), event.position().y())
        self._choose(part)
        self.setToolTip(plain(part.detail) if part is not None else "")

    def leaveEvent(self, event: QEvent) -> None:
        self._choose(None)

    def focusOutEvent(self, event) -> None:
        self._choose(None)
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None or not self._parts:
            super().keyPressEvent(event)
            return
        names = [part.name for part in self._parts]
        at = names.index(self._name) + step if self._name in names else (0 if step > 0 else -1)
        self._choose(self._parts[at % len(names)])

    def _choose(self, part: MemoryPart | None) -> None:
        name = part.name if part is not None else ""
        if name != self._name:
            self.point_at(name)
            self.pointed.emit(name)

    # Drawing

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        top = 0.0
        if self.zoomed:
            self._draw_parts(painter, QRectF(0, 0, self.width(), _STRIP), self._parts, self._whole)
            self._draw_lens(painter)
            top = _STRIP + _ZOOM
        bar = QRectF(0, top, self.width(), _BAR)
        self._draw_parts(painter, bar, self._shown(self._parts), self._scale, labels=True)
        self._draw_excess(painter, bar)
        if self._before:
            below = QRectF(0, bar.bottom() + 2, self.width(), _BEFORE)
            self._draw_parts(painter, below, self._shown(self._before), self._scale)
            bar.setBottom(below.bottom())
        self._draw_axis(painter, bar.bottom())
        if self.hasFocus():
            painter.setPen(QPen(QColor(tokens().accent), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(1, top + 1, self.width() - 2, _BAR - 2), 4, 4)
        painter.end()

    def _draw_parts(
        self, painter: QPainter, area: QRectF, parts: Sequence[MemoryPart], scale: int, *, labels: bool = False
    ) -> None:
        ends = [self._snap(area.width() * end / scale) for end in accumulate((part.bytes for part in parts), initial=0)]
        painter.fillRect(area, QColor(tokens().track))
        for part, left, right in zip(parts, ends, ends[1:], strict=False):
            # A hairline of ground between neighbours, where there is room for one.
            gap = 1 if right - left > 3 and right < area.width() else 0
            box = QRectF(left, area.top(), max(right - left - gap, 0), area.height())
            painter.setOpacity(_FADED if self._name and part.name != self._name else 1.0)
            _fill(painter, box, part)
            if labels:
                _write(painter, box, part)
        painter.setOpacity(1.0)

    def _draw_lens(self, painter: QPainter) -> None:
        """From the plan's place in the strip to the whole width of the bar."""
        start = next((i for i, part in enumerate(self._parts) if part.look == "solid"), 0)
        left = sum(part.bytes for part in self._parts[:start]) / self._whole * self.width()
        right = left + _used(self._parts) / self._whole * self.width()
        full = self.width() * _used(self._parts) / self._scale
        top, bottom = float(_STRIP), float(_STRIP + _ZOOM)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens().track))
        corners = (QPointF(left, top), QPointF(right, top), QPointF(full, bottom), QPointF(0, bottom))
        painter.drawPolygon(QPolygonF(corners))

    def _draw_excess(self, painter: QPainter, bar: QRectF) -> None:
        if self._end >= self._whole or self.zoomed:
            return
        left = self._snap(self.width() * self._end / self._scale)
        colour = QColor(tokens().bad)
        beyond = QRectF(left, bar.top(), bar.right() - left, bar.height())
        veil = QColor(tokens().panel)
        veil.setAlphaF(0.55)
        painter.fillRect(beyond, veil)
        painter.fillRect(beyond, QBrush(colour, Qt.BrushStyle.FDiagPattern))
        painter.fillRect(QRectF(left - 1, bar.top() - 3, 2, bar.height() + 6), colour)

    def _draw_axis(self, painter: QPainter, top: float) -> None:
        theme, font = tokens(), mono_font(11)
        painter.setFont(font)
        metrics = QFontMetricsF(font)
        step = _step(self._scale, self.width() / 72)
        unit = GIB if step >= GIB else MIB
        used = -float(_PAD)
        for number in range(int(self._scale / step) + 1):
            x = self._snap(self.width() * number * step / self._scale)
            painter.fillRect(QRectF(min(x, self.width() - 1), top + 2, 1, 4), QColor(theme.control_line))
            text = f"{number * step // unit:,} {'GiB' if unit == GIB else 'MiB'}" if number else "0"
            wide = metrics.horizontalAdvance(text)
            left = min(max(x - wide / 2, 0), self.width() - wide)
            if left >= used + _PAD:
                painter.setPen(QColor(theme.secondary))
                painter.drawText(QPointF(left, top + 8 + metrics.ascent()), text)
                used = left + wide

    def _snap(self, x: float) -> float:
        """To whole device pixels."""
        ratio = self.devicePixelRatioF()
        return round(x * ratio) / ratio


def _used(parts: Sequence[MemoryPart]) -> int:
    return sum(part.bytes for part in parts if part.look == "solid")


def _at(parts: Sequence[MemoryPart], place: float) -> MemoryPart | None:
    for part in parts:
        if 0 <= place < part.bytes:
            return part
        place -= part.bytes
    return None


def _fill(painter: QPainter, box: QRectF, part: MemoryPart) -> None:
    theme = tokens()
    if part.look == "clear":
        return
    if part.look == "hatched":
        painter.fillRect(box, QColor(theme.panel))
        painter.fillRect(box, QBrush(QColor(theme.disabled), Qt.BrushStyle.BDiagPattern))
    else:
        painter.fillRect(box, QColor(theme.control_line if part.look == "others" else getattr(theme, part.tone)))


def _write(painter: QPainter, box: QRectF, part: MemoryPart) -> None:
    """The part's name and amount, as far as there is room."""
    theme, font = tokens(), ui_font(12)
    metrics = QFontMetricsF(font)
    amount = _amount(part.bytes)
    for text in (f"{part.label}  {amount}", part.label):
        if metrics.horizontalAdvance(text) <= box.width() - 2 * _PAD:
            break
    else:
        return
    ground = {"clear": theme.track, "hatched": theme.panel, "others": theme.control_line}.get(part.look)
    ground = ground or getattr(theme, part.tone)
    ink = max((theme.text, theme.panel), key=lambda colour: contrast(colour, ground))
    painter.setFont(font)
    if part.look == "hatched":
        wide = metrics.horizontalAdvance(text)
        painter.fillRect(QRectF(box.left() + _PAD - 4, box.center().y() - 10, wide + 8, 20), QColor(theme.panel))
    painter.setPen(QColor(ink))
    painter.drawText(box.adjusted(_PAD, 0, -_PAD, 0), Qt.AlignmentFlag.AlignVCenter, text)


def _step(scale: int, most: float) -> int:
    """A round distance of ticks, so that there are at most ``most`` of them."""
    step = 32 * MIB
    while scale / step > max(most, 2):
        step *= 2
    return step


def _amount(size: int) -> str:
    return f"{size / GIB:,.1f} GiB" if size >= GIB else f"{size / MIB:,.0f} MiB"
