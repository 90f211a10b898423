"""Requests of the Decide panel as files, as code to paste, and those that were answered before."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import QFileDialog, QMenu

from ignis_desktop.panels.decide_request import Draft, read_request, request_text
from ignis_desktop.panels.decide_snippets import curl, python
from ignis_desktop.panels.decide_words import headline
from ignis_desktop.widgets.buttons import IconButton
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.toast import Toast

if TYPE_CHECKING:
    from ignis_desktop.panels.decide import DecidePanel

_FILE_LIMIT = 64 << 20
"""Bytes of a request: a few large pictures."""


class RequestFiles(QObject):
    """``recent`` and ``more``: the buttons that open its menus."""

    def __init__(self, panel: DecidePanel, toast: Toast, address: Callable[[], tuple[str, str]]) -> None:
        super().__init__(panel)
        self._panel = panel
        self._toast = toast
        self._address = address
        self.recent = IconButton("history", tr("decide.history"))
        self.recent.clicked.connect(lambda: self._pop_up(self.history_menu(), self.recent))
        self.more = IconButton("ellipsis", tr("chat.more"))
        self.more.clicked.connect(lambda: self._pop_up(self.more_menu(), self.more))

    def choose_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self._panel, tr("decide.open"), "", "JSON (*.json)")
        if name:
            self.open(Path(name))

    def open(self, path: Path) -> None:
        """Shows the request of a file."""
        try:
            if path.stat().st_size > _FILE_LIMIT:
                raise ValueError(tr("decide.file_too_large", name=path.name, limit=_FILE_LIMIT >> 20))
            draft = read_request(path.read_bytes().decode("utf-8-sig", "replace"))
        except OSError as error:
            self._toast.say(tr("chat.image_unreadable", name=path.name, reason=error.strerror or str(error)))
        except ValueError as error:
            self._toast.say(f"{path.name}: {error}")
        else:
            self._panel.show_draft(draft)

    def save(self) -> None:
        """Writes the request to a file that ``ignis decide`` reads."""
        name, _ = QFileDialog.getSaveFileName(self._panel, tr("decide.save"), "request.json", "JSON (*.json)")
        if not name:
            return
        try:
            Path(name).write_text(request_text(self._panel.draft()), encoding="utf-8")
        except OSError as error:
            self._toast.say(tr("chat.export_failed", name=Path(name).name, reason=error.strerror or str(error)))
        else:
            self._toast.say(tr("chat.exported", name=Path(name).name))

    def history_menu(self) -> QMenu:
        """What was decided before, the newest first."""
        menu = QMenu(self._panel)
        for item in self._panel.history.items:
            questions = read_request(item.request).questions
            when = datetime.fromtimestamp(item.time).strftime("%d %b %H:%M")
            menu.addAction(
                f"{when}  {headline(questions, item.response)}".replace("&", "&&"), partial(self._panel.recall, item)
            )
        if self._panel.history.items:
            menu.addSeparator()
            menu.addAction(tr("decide.forget"), self._panel.history.clear)
        else:
            menu.addAction(tr("decide.no_history")).setEnabled(False)
        return menu

    def more_menu(self) -> QMenu:
        menu = QMenu(self._panel)
        menu.addAction(tr("decide.open"), QKeySequence(QKeySequence.StandardKey.Open), self.choose_file)
        menu.addAction(tr("decide.save"), QKeySequence(QKeySequence.StandardKey.Save), self.save)
        menu.addSeparator()
        answers = menu.addAction(tr("decide.copy_answers"), partial(self.copy, "answers"))
        answers.setEnabled(self._panel.response is not None)
        menu.addAction(tr("decide.copy_request"), partial(self.copy, "request"))
        menu.addAction(tr("decide.copy_curl"), partial(self.copy, "curl"))
        menu.addAction(tr("decide.copy_python"), partial(self.copy, "python"))
        menu.addSeparator()
        menu.addAction(tr("decide.clear"), lambda: self._panel.show_draft(Draft(questions={"q1": {"type": "noul"}})))
        return menu

    def copy(self, what: str) -> None:
        """Puts the answers, or the request in one of its forms, on the clipboard."""
        base_url, key = self._address()
        text = request_text(self._panel.draft())
        if what == "answers":
            text = json.dumps(self._panel.response, ensure_ascii=False, indent=1)
        elif what == "curl":
            text = curl(base_url, key, text)
        elif what == "python":
            text = python(base_url, key, text)
        QGuiApplication.clipboard().setText(text)
        self._toast.say(tr("chat.copied"))

    def _pop_up(self, menu: QMenu, below: IconButton) -> None:
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(below.mapToGlobal(QPoint(below.width() - menu.sizeHint().width(), below.height() + 4)))
