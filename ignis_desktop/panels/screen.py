"""The Screen panel: a picture of a screen, encoded once and asked where things are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QImage,
    QKeySequence,
    QResizeEvent,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from engine.messages import EngineSnapshot
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.panels import screen_words as words
from ignis_desktop.panels.screen_answers import ScreenAnswers
from ignis_desktop.panels.screen_session import Asked, ScreenSession
from ignis_desktop.panels.screen_snippets import screen_snippets
from ignis_desktop.panels.screen_sources import ScreenSources
from ignis_desktop.panels.screen_watch import ScreenWatch
from ignis_desktop.screen_picture import Picture
from ignis_desktop.widgets.buttons import IconButton, IconTextButton
from ignis_desktop.widgets.empty_state import EmptyState
from ignis_desktop.widgets.panel import PanelHeader
from ignis_desktop.widgets.picture_intake import IMAGE_SUFFIXES
from ignis_desktop.widgets.picture_view import MARGIN, PictureView
from ignis_desktop.widgets.question_bar import QuestionBar
from ignis_desktop.widgets.question_list import QuestionList
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.toast import Toast

_BAR = 620
"""Pixels of the question bar's width, at most."""
_LIST, _LIST_NARROW = 264, 208
_NARROW = 760


class ScreenPanel(QWidget):
    """Shows a ``ScreenSession``. ``access`` gives the server's address (with /v1) and its key, for snippets."""

    settings_wanted = Signal()

    def __init__(
        self,
        engine: EngineThread,
        access: Callable[[], tuple[str, str]],
        toast: Toast,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._access = access
        self._toast = toast
        self._snapshot = engine.snapshot
        self.session = ScreenSession(engine, self)
        self.sources = ScreenSources(engine, self)
        self.watcher = ScreenWatch(engine, self.session, self)
        self.setObjectName("panelBody")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAcceptDrops(True)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._build()
        self._connect()
        self.show_snapshot(self._snapshot)

    # Building

    def _build(self) -> None:
        self.header = PanelHeader(tr("nav.screen"))
        self.take = IconTextButton("monitor", "  " + tr("screen.capture"))
        self.open = IconButton("folder-open", tr("screen.open"))
        self.watch = IconButton("refresh-cw", tr("screen.watch"))
        self.watch.setCheckable(True)
        self.fit = IconButton("maximize", tr("screen.fit"))
        for widget in (self.fit, self.watch, self.open, self.take):
            self.header.right.addWidget(widget)
        self.view = PictureView()
        self.bar = QuestionBar(self.view)
        self.bar.set_copies(words.copies())
        self._answers = ScreenAnswers(self.view, self.bar)
        self.questions = QuestionList()
        self.empty = EmptyState()
        body = QWidget()
        row = QHBoxLayout(body)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.view, 1)
        row.addWidget(self.questions)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.empty)
        self._pages.addWidget(body)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self._pages, 1)

    def _connect(self) -> None:
        session, sources, bar = self.session, self.sources, self.bar
        session.changed.connect(self._show)
        session.picture_changed.connect(self._show_picture)
        session.said.connect(self._toast.say)
        sources.taken.connect(session.show)
        sources.failed.connect(self._toast.say)
        self.watcher.changed.connect(self._show)
        self.watcher.failed.connect(self._toast.say)
        sources.busy_changed.connect(self._show)
        bar.asked.connect(session.ask)
        bar.stopped.connect(session.stop)
        bar.mended.connect(self._mend)
        bar.copied.connect(self.copy)
        bar.heat_toggled.connect(self.view.show_heat)
        bar.grew.connect(self._place_bar)
        self.questions.chosen.connect(session.select)
        self.view.zoomed.connect(self._show_subject)
        self.take.clicked.connect(lambda: sources.open_menu(self.take))
        self.open.clicked.connect(self.choose_file)
        self.watch.toggled.connect(self.watcher.set_on)
        self.fit.clicked.connect(self.view.fit)
        self.empty.pressed.connect(self._on_empty_pressed)
        for keys, then in (
            (QKeySequence(Qt.Key.Key_H), bar.heat.toggle),
            (QKeySequence(QKeySequence.StandardKey.Paste), self.paste),
            (QKeySequence(QKeySequence.StandardKey.Open), self.choose_file),
        ):
            shortcut = QShortcut(keys, self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(then)

    # What the window calls

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        self._snapshot = snapshot
        self.session.show_snapshot(snapshot)
        self._show()

    def stop(self) -> None:
        """Ends what a person waits for."""
        self.session.stop()

    def close_screen(self) -> None:
        """Ends everything, when the program does."""
        self.watcher.set_on(False)
        self.session.close()

    def focus_question(self) -> None:
        if self.session.picture is not None:
            self.bar.edit.setFocus()
        else:
            self.setFocus()  # pasting works; no control looks chosen

    def choose_file(self) -> None:
        patterns = " ".join(f"*{suffix}" for suffix in IMAGE_SUFFIXES)
        name, _ = QFileDialog.getOpenFileName(self, tr("screen.open"), "", f"{tr('chat.images')} ({patterns})")
        if name:
            self.session.open_file(Path(name))

    # Showing

    def _show(self) -> None:
        """Everything but the picture; costs next to nothing when nothing of it has changed."""
        session = self.session
        self.view.setEnabled(session.picture is not None)
        self._pages.setCurrentIndex(0 if session.picture is None else 1)
        if session.picture is None:
            self._show_empty()
        self.take.setEnabled(not self.sources.busy)
        captured = session.picture is not None and session.picture.target is not None
        self.watch.setEnabled(captured and self.sources.watchable)
        self.watch.setToolTip(tr("screen.watch") if self.sources.watchable else tr("screen.watch_not_here"))
        self.watch.blockSignals(True)
        self.watch.setChecked(self.watcher.on)
        self.watch.blockSignals(False)
        self.watch.set_icon("refresh-cw", "accent" if self.watcher.on else "secondary")
        self.fit.setEnabled(session.picture is not None)
        shown = session.shown.number if session.shown is not None else None
        self.questions.set_rows([words.row(asked) for asked in session.asked], shown)
        self._show_subject()
        self._answers.show(session, self._snapshot)

    def _show_empty(self) -> None:
        if self._snapshot.state == "failed":
            self.empty.show_state(tr("chat.empty_failed"), self._snapshot.reason, tr("chat.open_settings"))
        else:
            opening = self.session.stage == "opening"
            detail = tr("screen.opening") if opening else tr("screen.empty_detail")
            self.empty.show_state(tr("screen.empty"), detail, tr("screen.capture_this"))

    def _show_subject(self) -> None:
        picture = self.session.picture
        if picture is None:
            self.header.set_subject("")
            return
        width, height = picture.image.size
        name = picture.name if len(picture.name) <= 40 else picture.name[:39] + "…"
        self.header.set_subject(f"{name} · {width} × {height} · {self.view.zoom:.0%}")

    def _show_picture(self) -> None:
        picture = self.session.picture
        self._answers.forget()
        self.view.set_picture(picture.shown if picture is not None else None)
        self._show()
        if self.isVisible():
            self.focus_question()

    def _place_bar(self) -> None:
        """At the bottom of the picture, in its middle."""
        width = min(_BAR, self.view.width() - 2 * MARGIN)
        layout = self.bar.layout()
        if layout is None or width <= 0:
            return
        height = layout.heightForWidth(width) if layout.hasHeightForWidth() else self.bar.sizeHint().height()
        self.bar.setGeometry((self.view.width() - width) // 2, self.view.height() - height - MARGIN, width, height)
        covered = height + MARGIN
        if covered != self.view.covered:
            self.view.covered = covered
            self.view.refit()

    # Doing

    def _on_empty_pressed(self) -> None:
        if self._snapshot.state == "failed":
            self.settings_wanted.emit()
        else:
            self.sources.take_first()

    def _mend(self) -> None:
        asked = self.session.shown
        if self.session.stage == "failed":
            self.session.encode()
        elif asked is not None and asked.fault:
            self.session.ask_again(asked)

    def copy(self, what: str) -> None:
        """Puts the shown answer's coordinates, or a script that asks the same, on the clipboard."""
        asked, picture = self.session.shown, self.session.picture
        if asked is None or picture is None:
            return
        QGuiApplication.clipboard().setText(self._copied(what, asked, picture))
        self._toast.say(tr("chat.copied"))

    def _copied(self, what: str, asked: Asked, picture: Picture) -> str:
        if what == "coordinates":
            return "{} {}".format(*asked.desktop)
        found = screen_snippets(*self._access(), asked.question, picture.target or picture.path)
        return next(snippet.code for snippet in found if snippet.title == what)

    def paste(self) -> None:
        """Opens the picture that was copied elsewhere."""
        if not self._take(QGuiApplication.clipboard().mimeData()):
            self._toast.say(tr("screen.nothing_to_paste"))

    def _take(self, data: QMimeData) -> bool:
        files = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
        if files:
            self.session.open_file(files[0])
            return True
        image = data.imageData() if data.hasImage() else None
        if isinstance(image, QImage) and not image.isNull():
            self.session.open_pasted(tr("chat.pasted_name"), image)
            return True
        return False

    # Events

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasImage() or any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        if self._take(event.mimeData()):
            event.acceptProposedAction()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._place_bar()
        self.focus_question()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < _NARROW
        self.questions.setFixedWidth(_LIST_NARROW if narrow else _LIST)
        self._place_bar()
