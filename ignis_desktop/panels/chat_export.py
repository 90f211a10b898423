"""Saving a conversation as a file."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from ignis_desktop.store.chats import Conversation, MessageTree
from ignis_desktop.store.export import to_json, to_markdown
from ignis_desktop.widgets.texts import tr

SUFFIXES = {"markdown": "md", "json": "json"}


def ask_path(parent: QWidget, title: str, form: str) -> Path | None:
    """Where to save a conversation called ``title``; None when the person thinks better of it."""
    suffix = SUFFIXES[form]
    safe = "".join(c if c.isalnum() or c in " -_" else "_" for c in title).strip() or "conversation"
    name, _ = QFileDialog.getSaveFileName(parent, tr("chat.export"), f"{safe}.{suffix}", f"*.{suffix}")
    return Path(name) if name else None


def write(conversation: Conversation, tree: MessageTree, form: str, path: Path) -> str:
    """Writes the file; returns one sentence that says where it is, or why it is not."""
    text = to_markdown(conversation, tree.branch()) if form == "markdown" else to_json(conversation, tree.messages())
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        return tr("chat.export_failed", name=path.name, reason=error.strerror or str(error))
    return tr("chat.exported", name=path.name)
