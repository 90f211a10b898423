"""The map of the KV pool: one cell a page in its owner's colour, for some dozens of pages as for ten thousand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QImage, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from ignis_desktop.widgets.lane_timeline import mixed, tint_colour
from ignis_desktop.widgets.theme import tokens
from ignis_desktop.widgets.tips import plain

FREE, PARKED, SHARED, KEPT = 0, 253, 254, 255
"""Codes of pages that no lane holds alone; n is lane n − 1."""
_LARGEST = 16
"""Logical pixels of a cell at most, its gap included."""
_FAINT = 0.25
"""What is left of the others' colours while one owner is pointed at."""
_KINDS = ("free", "interactive", "interactive_2", "agent", "agent_2", "parked", "shared", "kept")


class PageMap(QWidget):
    """Draws itself anew only when a page has changed hands."""

    pointed = Signal(int)
    """The lane whose page the mouse is on; −1 for pages of no lane."""

    def __init__(self, tip: Callable[[int, int], str], parent: QWidget | None = None) -> None:
        """``tip``: what to say of (page, code)."""
        super().__init__(parent)
        self._tip = tip
        self._codes = b""
        self._tints: tuple[str, ...] = ()
        self._lane = -1
        self._image: QImage | None = None
        self._cell = 1
        self._per_row = 1
        self.setMouseTracking(True)
        self.setMinimumHeight(72)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        return QSize(480, 144)

    def show_pages(self, codes: bytes, tints: Sequence[str]) -> None:
        """``codes``: one byte a page; ``tints``: each lane's class."""
        tints = tuple(tints)
        if (codes, tints) != (self._codes, self._tints):
            self._codes, self._tints = codes, tints
            self._redraw()

    def point_at(self, lane: int) -> None:
        """Lets every page fade but those of ``lane``; −1: none is pointed at."""
        if lane != self._lane:
            self._lane = lane
            self._redraw()

    def page_at(self, x: float, y: float) -> int | None:
        """The page under a point."""
        ratio = self.devicePixelRatioF()
        column, row = int(x * ratio) // self._cell, int(y * ratio) // self._cell
        page = row * self._per_row + column
        return page if 0 <= column < self._per_row and 0 <= page < len(self._codes) else None

    # Drawing

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._image is None:
            self._image = self._draw()
        painter = QPainter(self)
        if not self._image.isNull():
            painter.drawImage(0, 0, self._image)
        painter.end()

    def _redraw(self) -> None:
        self._image = None
        self.update()

    def _draw(self) -> QImage:
        """The whole map in device pixels. Cells are looked up by their kind in a row of ready-made tiles."""
        ratio = self.devicePixelRatioF()
        width, height = int(self.width() * ratio), int(self.height() * ratio)
        count = len(self._codes)
        if not count or width < 1 or height < 1:
            return QImage()
        self._cell = cell = cell_size(count, width, height, round(_LARGEST * ratio))
        self._per_row = per_row = round_per_row(width // cell, count, height // cell)
        rows = -(-count // per_row)
        kinds = np.full(rows * per_row, 2 * len(_KINDS), np.uint8)
        kinds[:count] = self._kinds()[np.frombuffer(self._codes, np.uint8)]
        pixels = (
            self._tiles(cell, ratio)[kinds.reshape(rows, per_row)].swapaxes(1, 2).reshape(rows * cell, per_row * cell)
        )
        image = QImage(pixels.data, pixels.shape[1], pixels.shape[0], 4 * pixels.shape[1], QImage.Format.Format_RGB32)
        image = image.copy()  # the array goes
        image.setDevicePixelRatio(ratio)
        return image

    def _kinds(self) -> np.ndarray:
        """uint8 [256]: the tile for each code; those of the second half are faded."""
        found = np.zeros(256, np.uint8)
        for lane, tint in enumerate(self._tints):
            # Neighbours of the same class differ by a shade.
            name = ("agent" if tint == "agent" else "interactive") + ("_2" if lane % 2 else "")
            found[lane + 1] = _KINDS.index(name)
        found[PARKED], found[SHARED], found[KEPT] = (_KINDS.index(name) for name in ("parked", "shared", "kept"))
        if self._lane >= 0:
            kept = found[self._lane + 1]
            found += len(_KINDS)
            found[self._lane + 1] = kept
        return found

    def _tiles(self, cell: int, ratio: float) -> np.ndarray:
        """uint32 [kinds × 2 + 1, cell, cell]: clear ones, faded ones, and nothing."""
        ground = QColor(tokens().panel)
        image = QImage(cell, cell, QImage.Format.Format_RGB32)
        tiles = np.empty((2 * len(_KINDS) + 1, cell, cell), np.uint32)
        for number, (kind, share) in enumerate([(k, s) for s in (1.0, _FAINT) for k in _KINDS] + [("", 0.0)]):
            image.fill(ground)
            if kind:
                painter = QPainter(image)
                paint_page(painter, QRect(0, 0, cell, cell), kind, ratio, share)
                painter.end()
            tiles[number] = np.frombuffer(image.constBits(), np.uint32).reshape(cell, cell)
        return tiles

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._image = None

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._redraw()
        super().changeEvent(event)

    # Pointing

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        page = self.page_at(event.position().x(), event.position().y())
        code = FREE if page is None else self._codes[page]
        self.pointed.emit(code - 1 if 0 < code < PARKED else -1)

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(-1)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            page = self.page_at(event.pos().x(), event.pos().y())
            text = "" if page is None else plain(self._tip(page, self._codes[page]))
            QToolTip.showText(event.globalPos(), text, self)
            return True
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._redraw()
        return super().event(event)


def cell_size(count: int, width: int, height: int, largest: int) -> int:
    """The largest cell, in pixels, with which ``count`` of them fit into ``width`` × ``height``; 1 at least."""
    size = largest
    while size > 1 and -(-count // max(1, width // size)) * size > height:
        size -= 1
    return size


def round_per_row(most: int, count: int, rows: int) -> int:
    """Cells in a row: a multiple of 8, which the eye can count by, where ``count`` cells then still fit in ``rows``."""
    most = max(1, most)
    rounded = most - most % 8
    return min(count, rounded if rounded and -(-count // rounded) <= rows else most)


def paint_page(painter: QPainter, cell: QRect, kind: str, ratio: float = 1.0, share: float = 1.0) -> None:
    """One page of ``kind`` in ``cell``, with the gap at its right and its bottom; ``share``: how much of its colour."""
    theme = tokens()
    ground = QColor(theme.panel)
    gap = max(1, round(ratio)) if cell.width() >= 4 else 0
    box = cell.adjusted(0, 0, -gap, -gap)
    colour = mixed(_page_colour(kind), ground, share)
    line = max(1, round(ratio))
    if kind == "parked" and box.width() >= 4 * line:
        painter.setPen(QPen(colour, line, j=Qt.PenJoinStyle.MiterJoin))
        half = line // 2
        painter.drawRect(box.adjusted(half, half, half - line, half - line))
    elif kind == "parked":
        painter.fillRect(box, mixed(colour, ground, 0.45))
    else:
        painter.fillRect(box, colour)


def _page_colour(kind: str) -> QColor:
    theme = tokens()
    name, _, second = kind.partition("_")
    if name in ("interactive", "agent"):
        colour = tint_colour(name)
        return mixed(colour, QColor(theme.panel), 0.72) if second else colour
    if name == "parked":
        return tint_colour("agent")
    return QColor({"free": theme.track, "shared": theme.page_shared, "kept": theme.page_kept}[name])
