"""The widget of one message. It exists only while the message is near the visible part of the list."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from ignis_desktop.widgets import icons
from ignis_desktop.widgets.buttons import IconButton, button
from ignis_desktop.widgets.message_item import (
    BUBBLE_BOTTOM,
    BUBBLE_PADDING,
    BUBBLE_TOP,
    CARD_PADDING,
    GAP,
    ChatItem,
    MessageRender,
    RenderBlock,
)
from ignis_desktop.widgets.rich_text import CodeView, ProseView
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import tokens
from ignis_desktop.widgets.thumbnails import SIDE, shared


class MessageView(QWidget):
    """Shows a ``MessageRender``; everything that is pressed comes out of ``action`` as (what, message id)."""

    action = Signal(str, str)

    def __init__(self, render: MessageRender, parent: QWidget) -> None:
        super().__init__(parent)
        self._render = render
        self._blocks: list[tuple[RenderBlock, ProseView | CodeView]] = []
        self._bubble: QFrame | None = None
        self._parts: dict[str, QWidget] = {}
        self._width = 0
        self.setAccessibleName(tr("chat.you") if render.item.role == "user" else tr("chat.answer"))

    @property
    def item(self) -> ChatItem:
        return self._render.item

    def sync(self, width: int) -> int:
        """Brings the children in line with the render at ``width`` pixels; returns the height."""
        self._width = width
        placed, height = self._render.layout(width)
        wanted = {part.part for part in placed if part.part != "block"}
        for name in [name for name in self._parts if name not in wanted]:
            self._drop(self._parts.pop(name))
        self._sync_blocks()
        for part in placed:
            if part.part == "block":
                widget: QWidget = self._blocks[part.index][1]
            else:
                widget = self._parts.get(part.part) or self._make(part.part)
                self._fill(part.part, widget)
            widget.setGeometry(part.rect)
            if part.part == "fold":
                widget.resize(widget.sizeHint().width(), part.rect.height())
            widget.show()
        self._show_actions()
        return height

    def _sync_blocks(self) -> None:
        blocks = self._render.blocks
        for index, block in enumerate(blocks):
            shown = self._blocks[index] if index < len(self._blocks) else None
            if shown is not None and shown[0] is block:
                continue
            kind = ProseView if block.piece.kind == "prose" else CodeView
            if shown is not None and isinstance(shown[1], kind):
                view = shown[1]
            else:
                view = kind(self)
                if shown is not None:
                    self._drop(shown[1])
            if isinstance(view, CodeView):
                view.show_code(block.piece, block.document)
            else:
                view.setDocument(block.document)
            if shown is None:
                self._blocks.append((block, view))
            else:
                self._blocks[index] = (block, view)
        for _, view in self._blocks[len(blocks) :]:
            self._drop(view)
        del self._blocks[len(blocks) :]

    @staticmethod
    def _drop(widget: QWidget) -> None:
        widget.hide()
        widget.deleteLater()

    def _make(self, part: str) -> QWidget:
        makers = {
            "images": lambda: _Pictures(self),
            "fold": self._make_fold,
            "thinking": lambda: ProseView(self),
            "bubble": lambda: _Bubble(self),
            "note": lambda: self._label("secondary"),
            "error": lambda: _ErrorCard(self),
            "actions": lambda: _Actions(self),
            "numbers": lambda: self._label("secondary"),
        }
        widget = makers[part]()
        self._parts[part] = widget
        return widget

    def _make_fold(self) -> QWidget:
        fold = QToolButton(self)
        fold.setProperty("kind", "fold")
        fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        fold.setIconSize(QSize(14, 14))
        fold.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        fold.clicked.connect(lambda: self.action.emit("fold", self.item.id))
        return fold

    def _label(self, tone: str) -> QLabel:
        label = QLabel(self, wordWrap=True)
        label.setProperty("tone", tone)
        label.setProperty("kind", "small")
        return label

    def _fill(self, part: str, widget: QWidget) -> None:
        item = self.item
        if isinstance(widget, _Pictures):
            widget.show_pictures(item.images)
        elif isinstance(widget, _Bubble) and self._render.bubble is not None:
            widget.text.setDocument(self._render.bubble)
        elif isinstance(widget, ProseView) and self._render.thinking is not None:
            widget.setDocument(self._render.thinking)
        elif isinstance(widget, QToolButton):
            widget.setText(item.thinking_label)
            widget.setIcon(icons.icon("chevron-down" if item.unfolded else "chevron-right", "secondary", 14))
        elif isinstance(widget, _ErrorCard):
            widget.show_error(item)
        elif isinstance(widget, _Actions):
            widget.show_item(item)
        elif isinstance(widget, QLabel):
            widget.setText(item.note if part == "note" else item.numbers)

    def _show_actions(self) -> None:
        actions = self._parts.get("actions")
        if isinstance(actions, _Actions):
            actions.reveal(self.underMouse() or (self.item.last and self.item.role == "assistant"))

    def enterEvent(self, event: QEnterEvent) -> None:
        self._show_actions()
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._show_actions()
        super().leaveEvent(event)


class _Bubble(QFrame):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("userBubble")
        self.text = ProseView(self)

    def resizeEvent(self, event: QEvent) -> None:
        self.text.setGeometry(self.rect().adjusted(BUBBLE_PADDING, BUBBLE_TOP, -BUBBLE_PADDING, -BUBBLE_BOTTOM))


class _Pictures(QWidget):
    """The pictures of a question, at the right edge of the column."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._pictures: tuple[bytes, ...] = ()
        shared().ready.connect(self._arrived)

    def show_pictures(self, pictures: tuple[bytes, ...]) -> None:
        self._pictures = pictures
        self.update()

    def _arrived(self, data: bytes) -> None:
        if data in self._pictures:
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        right = self.width()
        for data in reversed(self._pictures):
            thumbnail = shared().get(data)
            size = thumbnail.deviceIndependentSize().toSize() if thumbnail else QSize(SIDE, SIDE)
            target = QRect(right - size.width(), SIDE - size.height(), size.width(), size.height())
            if thumbnail:
                painter.drawPixmap(target, thumbnail)
            painter.setPen(tokens().line)
            painter.drawRect(target.adjusted(0, 0, -1, -1))
            right = target.left() - GAP
        painter.end()


class _ErrorCard(QFrame):
    def __init__(self, parent: MessageView) -> None:
        super().__init__(parent)
        self.setObjectName("errorCard")
        self._message = parent
        self._text = QLabel(wordWrap=True)
        self._text.setProperty("kind", "lead")
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._icon = QLabel()
        self._mend = button("")
        self._mend.clicked.connect(lambda: parent.action.emit("mend", parent.item.id))
        row = QHBoxLayout()
        row.setSpacing(GAP + 2)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._text, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(CARD_PADDING, CARD_PADDING, CARD_PADDING, CARD_PADDING)
        layout.setSpacing(GAP)
        layout.addLayout(row)
        layout.addWidget(self._mend, 0, Qt.AlignmentFlag.AlignLeft)

    def show_error(self, item: ChatItem) -> None:
        self._icon.setPixmap(icons.pixmap("circle-alert", tokens().bad, 16, self.devicePixelRatioF()))
        self._text.setText(item.error)
        self._mend.setText(item.mend)
        self._mend.setVisible(bool(item.mend))


class _Actions(QWidget):
    """Switch between alternatives, copy, edit or regenerate, numbers; takes its room even while hidden."""

    def __init__(self, parent: MessageView) -> None:
        super().__init__(parent)
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(2)
        user = parent.item.role == "user"

        def add(icon: str, key: str, what: str) -> IconButton:
            made = IconButton(icon, tr(key), self)
            made.clicked.connect(lambda: parent.action.emit(what, parent.item.id))
            self._layout.addWidget(made)
            return made

        if user:
            self._layout.addStretch()
        self._previous = add("chevron-left", "chat.previous", "previous")
        self._count = QLabel(self)
        self._count.setProperty("kind", "small")
        self._layout.addWidget(self._count)
        self._next = add("chevron-right", "chat.next", "next")
        self._hidden_until_hover = [add("copy", "action.copy", "copy")]
        if user:
            self._hidden_until_hover.append(add("pencil", "chat.edit", "edit"))
        else:
            self._hidden_until_hover.append(add("refresh-cw", "chat.regenerate", "regenerate"))
            self._hidden_until_hover.append(add("gauge", "chat.numbers", "numbers"))
            self._layout.addStretch()

    def show_item(self, item: ChatItem) -> None:
        number, count = item.branch
        for widget in (self._previous, self._count, self._next):
            widget.setVisible(count > 1)
        self._count.setText(f"{number}/{count}")
        self._previous.setEnabled(number > 1)
        self._next.setEnabled(number < count)

    def reveal(self, shown: bool) -> None:
        for widget in self._hidden_until_hover:
            widget.setVisible(shown or widget.hasFocus())
