"""What the message list shows of one message, and how it is laid out in a column of a given width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetrics, QTextDocument

from ignis_desktop.widgets.markdown import GrowingMarkdown, Piece, render, with_caret
from ignis_desktop.widgets.rich_text import document_for, height_for, plain_document
from ignis_desktop.widgets.theme import tokens, ui_font
from ignis_desktop.widgets.thumbnails import SIDE as THUMBNAIL_SIDE

GAP = 8
MESSAGE_GAP = 20
ROW = 28
BUBBLE_PADDING = 12
BUBBLE_TOP = 10
BUBBLE_BOTTOM = 4
"""Less than above: the leading of the last line is part of the text."""
CARD_PADDING = 12
_BUBBLE_SHARE = 0.8


@dataclass(frozen=True)
class ChatItem:
    """One message as it is shown. Nothing here says where it came from."""

    id: str
    role: Literal["user", "assistant"]
    text: str
    images: tuple[bytes, ...] = ()
    streaming: bool = False
    thinking: str = ""
    thinking_label: str = ""
    """The line that thinking folds to."""
    unfolded: bool = False
    note: str = ""
    """A quiet line under the text: what is going on, or how it ended."""
    error: str = ""
    mend: str = ""
    """Label of the button that mends the error; empty for none."""
    branch: tuple[int, int] = (1, 1)
    """(number, count) among the alternatives."""
    numbers: str = ""
    last: bool = False


class RenderBlock:
    """A piece with its document, which is made when it is first needed."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self._document: QTextDocument | None = None

    @property
    def document(self) -> QTextDocument:
        if self._document is None:
            self._document = document_for(self.piece)
        return self._document

    def height(self, width: int) -> int:
        return height_for(self.piece, self.document, width)


@dataclass(frozen=True)
class Placed:
    """Where one part of a message goes, relative to the message's top left."""

    part: Literal["images", "fold", "thinking", "bubble", "block", "note", "error", "actions", "numbers"]
    rect: QRect
    index: int = 0


class MessageRender:
    """Turns a ``ChatItem`` into blocks and rectangles; keeps what an update does not change."""

    def __init__(self, item: ChatItem) -> None:
        self.item = item
        self.blocks: list[RenderBlock] = []
        self.bubble: QTextDocument | None = None
        self.thinking: QTextDocument | None = None
        self._growing: GrowingMarkdown | None = None
        self._grown = ""
        self._set_text(item)

    def update(self, item: ChatItem) -> None:
        """Takes the item's new state; of a growing text only its last block is rendered again."""
        previous, self.item = self.item, item
        if item.thinking != previous.thinking or item.unfolded != previous.unfolded:
            self.thinking = None
        if (item.text, item.streaming) != (previous.text, previous.streaming):
            self._set_text(item)

    def _set_text(self, item: ChatItem) -> None:
        if item.role == "user":
            self.bubble = None
            return
        theme = tokens()
        if item.streaming:
            if self._growing is None or not item.text.startswith(self._grown):
                self._growing, self._grown = GrowingMarkdown(theme), ""
            pieces = self._growing.add(item.text[len(self._grown) :])
            self._grown = item.text
            if item.text:
                pieces = with_caret(pieces, theme)
        else:
            self._growing, self._grown = None, ""
            pieces = render(item.text, theme)
        kept = self.blocks
        self.blocks = [
            kept[i] if i < len(kept) and kept[i].piece == piece else RenderBlock(piece)
            for i, piece in enumerate(pieces)
        ]

    def layout(self, width: int) -> tuple[list[Placed], int]:
        """Parts and the total height in pixels for a column ``width`` pixels wide."""
        item = self.item
        placed: list[Placed] = []
        y = 0

        def put(
            part: str, height: int, x: int = 0, part_width: int | None = None, index: int = 0, gap: int = GAP
        ) -> None:
            nonlocal y
            rect = QRect(x, y, width if part_width is None else part_width, height)
            placed.append(Placed(part, rect, index))  # type: ignore[arg-type]
            y += height + gap

        if item.images:
            put("images", THUMBNAIL_SIDE)
        if item.role == "user":
            if item.text:
                bubble_width, height = self._bubble_size(width)
                put("bubble", height, x=width - bubble_width, part_width=bubble_width, gap=2)
        else:
            if item.thinking_label:
                put("fold", ROW)
                if item.unfolded and item.thinking:
                    put("thinking", self._thinking_height(width - 16), x=16, part_width=width - 16)
            for index, block in enumerate(self.blocks):
                put("block", block.height(width), index=index)
        if item.note:
            put("note", _small_height(item.note, width))
        if item.error:
            put("error", self._error_height(width))
        if not item.streaming:
            put("actions", ROW, gap=0)
            if item.numbers:
                put("numbers", _small_height(item.numbers, width), gap=0)
        # A question belongs to the answer under it.
        return placed, y + (MESSAGE_GAP // 4 if item.role == "user" else MESSAGE_GAP)

    def _bubble_size(self, width: int) -> tuple[int, int]:
        if self.bubble is None:
            self.bubble = plain_document(self.item.text)
        most = math.floor(width * _BUBBLE_SHARE) - 2 * BUBBLE_PADDING
        self.bubble.setTextWidth(-1)
        inner = min(most, math.ceil(self.bubble.idealWidth()) + 1)
        self.bubble.setTextWidth(inner)
        height = math.ceil(self.bubble.size().height())
        return inner + 2 * BUBBLE_PADDING, height + BUBBLE_TOP + BUBBLE_BOTTOM

    def _thinking_height(self, width: int) -> int:
        if self.thinking is None:
            self.thinking = plain_document(self.item.thinking, "secondary")
        self.thinking.setTextWidth(width)
        return math.ceil(self.thinking.size().height())

    def _error_height(self, width: int) -> int:
        document = plain_document(self.item.error)
        document.setTextWidth(width - 2 * CARD_PADDING - 26)
        height = math.ceil(document.size().height()) + 2 * CARD_PADDING
        return height + (ROW + GAP if self.item.mend else 0)

    @staticmethod
    def guess(item: ChatItem, width: int) -> int:
        """Roughly how high ``item`` will be, without laying anything out."""
        lines = item.text.count("\n") + len(item.text) * 7 // max(width, 1) + 1
        return lines * 21 + ROW + MESSAGE_GAP + (THUMBNAIL_SIDE if item.images else 0)


def _small_height(text: str, width: int) -> int:
    """Pixels of a wrapped line of small text."""
    metrics = QFontMetrics(ui_font(12))
    return metrics.boundingRect(QRect(0, 0, width, 1000), Qt.TextFlag.TextWordWrap, text).height() + 4
