"""The Chat panel: conversations at the left, messages in a column, the composer under them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QStackedWidget, QVBoxLayout, QWidget

from engine.messages import EngineError, EngineSnapshot, ImageInput
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.panels.chat_export import ask_path, write
from ignis_desktop.panels.chat_items import needs_new_conversation
from ignis_desktop.panels.chat_session import ChatSession
from ignis_desktop.panels.model_line import is_ember, loading_text, model_line
from ignis_desktop.panels.presets import PRESETS
from ignis_desktop.store.chat_worker import ChatWorker
from ignis_desktop.store.chats import Picture
from ignis_desktop.store.settings import SettingsFile
from ignis_desktop.widgets.buttons import IconButton
from ignis_desktop.widgets.composer import Composer
from ignis_desktop.widgets.conversation_list import ConversationPane
from ignis_desktop.widgets.conversation_options import ConversationOptions
from ignis_desktop.widgets.empty_state import EmptyState
from ignis_desktop.widgets.message_list import MessageList
from ignis_desktop.widgets.panel import PanelHeader
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.toast import Toast
from ignis_desktop.widgets.tokens import COLUMN_WIDTH

_EXAMPLES = ("chat.example_1", "chat.example_2", "chat.example_3")


class ChatPanel(QWidget):
    """Shows a ``ChatSession``; draws nothing of its own and keeps nothing of its own but an unsent draft."""

    settings_wanted = Signal()

    def __init__(
        self,
        engine: EngineThread,
        worker: ChatWorker,
        settings: SettingsFile,
        toast: Toast,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._settings = settings
        self._toast = toast
        self._editing: str | None = None
        self._snapshot = engine.snapshot
        self.session = ChatSession(engine, worker, self)
        self._build()
        self._connect()
        self._show_conversation()
        self.show_snapshot(self._snapshot)

    # Building

    def _build(self) -> None:
        self.pane = ConversationPane()
        self.pane.setVisible(self._settings.values.conversations_shown)
        self.header = PanelHeader(tr("nav.chat"))
        self._fold = IconButton("panel-left", tr("chat.toggle_list"))
        self._new = IconButton("plus", tr("chat.new_hint"))
        self._new.setVisible(not self._settings.values.conversations_shown)
        self._options_button = IconButton("sliders-horizontal", tr("options.title"))
        self._more = IconButton("ellipsis", tr("chat.more"))
        self.header.left.addWidget(self._fold)
        self.header.left.addWidget(self._new)
        self.header.right.addWidget(self._options_button)
        self.header.right.addWidget(self._more)
        self.list = MessageList()
        self.empty = EmptyState([tr(key) for key in _EXAMPLES])
        self._body = QStackedWidget()
        self._body.addWidget(self.empty)
        self._body.addWidget(self.list)
        self.composer = Composer()
        self.composer.setMaximumWidth(COLUMN_WIDTH)
        self._caution = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._caution.setProperty("kind", "small")
        self.options = ConversationOptions([(name, tr(f"preset.{name}")) for name in PRESETS], self)
        middle = QHBoxLayout()
        middle.setContentsMargins(24, 0, 24, 0)
        middle.addStretch(1)
        middle.addWidget(self.composer, 1000)
        middle.addStretch(1)
        right = QWidget()
        right.setObjectName("panelBody")
        right.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(right)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self._body, 1)
        column.addSpacing(8)
        column.addLayout(middle)
        column.addSpacing(6)
        column.addWidget(self._caution)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.pane)
        row.addWidget(right, 1)

    def _connect(self) -> None:
        session = self.session
        session.rows_changed.connect(self._show_rows)
        session.opened.connect(self._show_conversation)
        session.messages_changed.connect(self._show_messages)
        session.message_changed.connect(self._show_message)
        session.running_changed.connect(self._show_running)
        session.failed.connect(self._toast.say)
        self.pane.selected.connect(session.open)
        self.pane.new_wanted.connect(self.new_conversation)
        self.pane.renamed.connect(self._rename)
        self.pane.deleted.connect(self._delete)
        self.pane.export_wanted.connect(self._export)
        self.pane.searched.connect(session.search)
        self.list.action.connect(self._on_action)
        self.empty.example_chosen.connect(self._send_example)
        self.empty.pressed.connect(self._on_empty_pressed)
        self.composer.sent.connect(self._send)
        self.composer.waiting.connect(lambda: self._toast.say(tr("chat.will_be_sent")))
        self.composer.stopped.connect(self.stop)
        self.composer.edit_cancelled.connect(self._cancel_edit)
        self.composer.image_added.connect(self._check_image)
        self.composer.refused.connect(self._toast.say)
        self._fold.clicked.connect(self.toggle_list)
        self._new.clicked.connect(self.new_conversation)
        self._options_button.clicked.connect(self.open_options)
        self._more.clicked.connect(self._open_menu)
        self.options.changed.connect(session.set_options)

    # What the window calls

    def new_conversation(self) -> None:
        self._cancel_edit()
        self.session.new()
        self.composer.edit.setFocus()

    def stop(self) -> None:
        """Ends the answer that is being written, else gives up editing."""
        if self.session.running:
            self.session.stop()
        else:
            self._cancel_edit()

    def toggle_list(self) -> None:
        shown = self.pane.isHidden()
        self.pane.setVisible(shown)
        self._new.setVisible(not shown)
        self._settings.change(conversations_shown=shown)

    def focus_search(self) -> None:
        if self.pane.isHidden():
            self.toggle_list()
        self.pane.search.setFocus()

    def open_options(self) -> None:
        current = self.session.current
        info = self._engine.info
        self.options.open(
            self._options_button,
            current.system_prompt if current else "",
            current.preset if current else "model",
            current.thinking if current else False,
            bool(info and info.thinking),
        )

    def export_current(self, form: str) -> None:
        if self.session.current is not None:
            self._export(self.session.current.id, form)

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        """Says what answers, and whether it can."""
        self._snapshot = snapshot
        ready = snapshot.state == "ready"
        self.header.set_subject(model_line(snapshot))
        self.composer.set_state(ready=ready, busy=self.session.running)
        failed = snapshot.state == "failed"
        self.composer.set_hint(
            tr("chat.hint") if ready else tr("chat.hint_failed") if failed else loading_text(snapshot)
        )
        caution = ""
        if ready:
            caution = tr("chat.caution_ember") if is_ember(snapshot) else tr("chat.caution", model=snapshot.model)
        if caution != self._caution.text():
            self._caution.setText(caution)
        if self._body.currentWidget() is not self.empty:
            return
        if failed:
            self.empty.show_state(tr("chat.empty_failed"), snapshot.reason, tr("chat.open_settings"))
        else:
            detail = tr("chat.empty_detail", model=model_line(snapshot)) if ready else loading_text(snapshot)
            self.empty.show_state(tr("chat.empty"), detail, tr("chat.attach_button"), examples=ready)

    # What the session says

    def _show_rows(self) -> None:
        current = self.session.current
        self.pane.set_rows(self.session.rows(), current.id if current else None)
        self.header.set_title(current.title if current else tr("nav.chat"))

    def _show_conversation(self) -> None:
        current = self.session.current
        self.header.set_title(current.title if current else tr("nav.chat"))
        self._more.setEnabled(current is not None)
        self._show_messages(True)

    def _show_messages(self, to_end: bool) -> None:
        items = self.session.items()
        self._body.setCurrentWidget(self.list if items else self.empty)
        self.list.set_items(items, to_end=to_end)
        self.show_snapshot(self._snapshot)

    def _show_message(self, message_id: str) -> None:
        item = self.session.item(message_id)
        if item is not None and any(shown.id == message_id for shown in self.list.items):
            self.list.update_item(item)

    def _show_running(self) -> None:
        self.show_snapshot(self._snapshot)

    # What a person does

    def _send(self) -> None:
        text = self.composer.text.strip()
        pictures = self.composer.attachments.pictures
        if self._editing is not None and not pictures and self.session.tree is not None:
            pictures = self.session.tree[self._editing].images
        if not self.session.send(text, pictures, instead_of=self._editing):
            return
        self._editing = None
        self.composer.set_editing(False)
        self.composer.clear()

    def _send_example(self, text: str) -> None:
        self.session.send(text)
        self.composer.edit.setFocus()

    def _on_empty_pressed(self) -> None:
        if self._snapshot.state == "failed":
            self.settings_wanted.emit()
        else:
            self.composer.choose_images()

    def _check_image(self, token: int, picture: Picture) -> None:
        attachments = self.composer.attachments

        def usable(image: ImageInput) -> None:
            width, height = image.original_size
            attachments.settle(token, "", f"{width} × {height}")

        def unusable(error: EngineError) -> None:
            attachments.settle(token, error.message)

        task = self._engine.check_image(picture.data)
        task.done.connect(usable)
        task.failed.connect(unusable)

    def _on_action(self, what: str, message_id: str) -> None:
        actions: dict[str, Callable[[str], None]] = {
            "copy": self._copy,
            "edit": self._edit,
            "regenerate": self.session.regenerate,
            "previous": functools.partial(self.session.step, by=-1),
            "next": functools.partial(self.session.step, by=1),
            "fold": functools.partial(self.session.toggle, "fold"),
            "numbers": functools.partial(self.session.toggle, "numbers"),
            "mend": self._mend,
        }
        actions[what](message_id)

    def _copy(self, message_id: str) -> None:
        item = self.session.item(message_id)
        if item is not None:
            QGuiApplication.clipboard().setText(item.text)
            self._toast.say(tr("chat.copied"))

    def _edit(self, message_id: str) -> None:
        item = self.session.item(message_id)
        if item is not None:
            self._editing = message_id
            self.composer.set_editing(True)
            self.composer.set_text(item.text)

    def _cancel_edit(self) -> None:
        if self._editing is not None:
            self._editing = None
            self.composer.set_editing(False)
            self.composer.clear()

    def _mend(self, message_id: str) -> None:
        """Asks again; in a new conversation when this one no longer fits."""
        tree = self.session.tree
        if tree is None:
            return
        message = tree[message_id]
        if not needs_new_conversation(message) or message.parent is None:
            self.session.regenerate(message_id)
            return
        question = tree[message.parent]
        self.new_conversation()
        self.session.send(question.content, question.images)

    def _rename(self, conversation: str, title: str) -> None:
        self.session.rename(conversation, title)

    def _delete(self, conversation: str) -> None:
        deleted = self.session.conversation(conversation)
        self._cancel_edit()
        self.session.delete(conversation)
        self._toast.say(
            tr("chat.deleted", title=deleted.title), tr("action.undo"), lambda: self.session.undelete(deleted)
        )

    def _open_menu(self) -> None:
        current = self.session.current
        if current is None:
            return
        menu: QMenu = self.pane.menu_for(current.id, self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    def _export(self, conversation: str, form: str) -> None:
        self.session.with_messages(conversation, lambda: self._save_export(conversation, form))

    def _save_export(self, conversation: str, form: str) -> None:
        path = ask_path(self, self.session.conversation(conversation).title, form)
        if path is not None:
            self.write_export(conversation, form, path)

    def write_export(self, conversation: str, form: str, path: Path) -> None:
        """Writes a conversation whose messages are in memory and says where, or why not."""
        self._toast.say(write(self.session.conversation(conversation), self.session.tree_of(conversation), form, path))
