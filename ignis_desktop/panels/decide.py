"""The Decide panel: evidence, typed questions about it, and the answers as probabilities."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLabel, QTabBar, QVBoxLayout, QWidget

from engine.messages import EngineError, EngineSnapshot, ImageInput
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.jobs import Job
from ignis_desktop.panels.decide_example import EXAMPLE
from ignis_desktop.panels.decide_files import RequestFiles
from ignis_desktop.panels.decide_request import Draft, faults, read_request, request_text
from ignis_desktop.panels.decide_words import answered, summary
from ignis_desktop.panels.model_line import loading_text, model_line
from ignis_desktop.panels.question_cards import QuestionCards
from ignis_desktop.store.chats import Picture
from ignis_desktop.store.decisions import Decided, Decisions
from ignis_desktop.widgets.answer_bars import AnswerList
from ignis_desktop.widgets.buttons import button
from ignis_desktop.widgets.elided import ElidedLabel
from ignis_desktop.widgets.empty_state import EmptyState
from ignis_desktop.widgets.evidence_field import EvidenceField
from ignis_desktop.widgets.panel import PanelHeader, ScrolledColumn, section
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.toast import Toast

_NARROW = 900
"""Pixels of width under which one of the three parts is shown at a time."""
_COLUMN = 900
_EVIDENCE, _QUESTIONS, _ANSWERS = range(3)


class DecidePanel(QWidget):
    def __init__(self, engine: EngineThread, toast: Toast, address: Callable[[], tuple[str, str]]) -> None:
        """``address``: the server's base URL, ending in /v1, and its key."""
        super().__init__()
        self._engine = engine
        self._toast = toast
        self._deciding: Job | None = None
        self.response: dict[str, Any] | None = None
        """What is shown as answers."""
        self._asked = ""
        self._faulty = False
        self.setObjectName("panelBody")
        self.header = PanelHeader(tr("nav.decide"))
        self.history = Decisions()
        self.files = RequestFiles(self, toast, address)
        self.decide_button = button(tr("decide.decide"), "primary")
        self.decide_button.clicked.connect(self.decide)
        for widget in (self.files.recent, self.files.more, self.decide_button):
            self.header.right.addWidget(widget)
        self.evidence = EvidenceField()
        self.evidence.refused.connect(toast.say)
        self.evidence.image_added.connect(self._check_picture)
        self.evidence.changed.connect(self._changed)
        self.questions = QuestionCards()
        self.questions.changed.connect(self._changed)
        self.answers = AnswerList()
        self.empty = EmptyState()
        self.empty.pressed.connect(self.show_example)
        self.fault = QLabel(wordWrap=True)
        self.fault.setProperty("tone", "bad")
        self.fault.hide()
        self.took = ElidedLabel(tone="secondary")
        self.tabs = QTabBar()
        self.tabs.setDrawBase(False)
        for name in ("evidence", "questions", "answers"):
            self.tabs.addTab(tr(f"decide.{name}"))
        self.tabs.currentChanged.connect(self._arrange)
        self._titles: list[QLabel] = []
        self._parts = [self._build_evidence(), self._build_questions(), self._build_answers()]
        row = QHBoxLayout()
        row.setSpacing(0)
        for part in self._parts:
            row.addWidget(part, 1)
        self._strip = QWidget()
        strip = QHBoxLayout(self._strip)
        strip.setContentsMargins(16, 4, 16, 0)
        strip.addWidget(self.tabs)
        strip.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self._strip)
        layout.addLayout(row, 1)
        for keys, then in (
            (QKeySequence("Ctrl+Return"), self.decide),
            (QKeySequence("Ctrl+Enter"), self.decide),
            (QKeySequence(QKeySequence.StandardKey.Open), self.files.choose_file),
            (QKeySequence(QKeySequence.StandardKey.Save), self.files.save),
        ):
            QShortcut(keys, self).activated.connect(then)
        self.questions.show_questions({"q1": {"type": "noul"}})
        self._show_response(None)
        self._arrange()

    def _title(self, name: str) -> QLabel:
        """A part's title; where the parts are tabs, these name them."""
        title = section(tr(f"decide.{name}"))
        self._titles.append(title)
        return title

    def _build_evidence(self) -> QWidget:
        part, column = _part()
        column.addWidget(self._title("evidence"))
        column.addWidget(self.evidence, 1)
        return part

    def _build_questions(self) -> QWidget:
        part, column = _part()
        column.addWidget(self._title("questions"))
        scroll = ScrolledColumn(_COLUMN, margin=0, ends=(0, 0))
        scroll.column.addWidget(self.questions)
        scroll.column.addStretch(1)
        column.addWidget(scroll, 1)
        return part

    def _build_answers(self) -> QWidget:
        part, column = _part()
        column.addWidget(self._title("answers"))
        column.addWidget(self.fault)
        column.addWidget(self.took)
        scroll = self._answer_scroll = ScrolledColumn(_COLUMN, margin=0, ends=(0, 0))
        scroll.column.addWidget(self.answers)
        scroll.column.addStretch(1)
        column.addWidget(scroll, 1)
        column.addWidget(self.empty, 1)
        return part

    # Showing

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        self.header.set_subject(model_line(snapshot))
        ready = self._engine.info is not None
        self.decide_button.setEnabled(ready)
        self.decide_button.setToolTip(tr("decide.decide_hint") if ready else loading_text(snapshot))

    def draft(self) -> Draft:
        """The request as it stands."""
        pictures = self.evidence.attachments.pictures
        return Draft(self.evidence.text, self.evidence.is_json, pictures, self.questions.questions())

    def show_draft(self, draft: Draft) -> None:
        self.evidence.show_evidence(draft.evidence, draft.pictures, is_json=draft.is_json)
        self.questions.show_questions(draft.questions)
        self._show_response(None)

    def show_example(self) -> None:
        self.show_draft(EXAMPLE)
        self.decide()

    def _show_response(self, response: dict[str, Any] | None, questions: Mapping[str, Any] | None = None) -> None:
        self.response = response
        self.fault.hide()
        self.answers.show_answers([] if response is None else answered(questions or {}, response["answers"]))
        self.took.setVisible(response is not None)
        self.took.set_text("" if response is None else summary(response))
        self._answer_scroll.setVisible(response is not None)
        self.empty.setVisible(response is None)
        self.empty.show_state(tr("decide.empty"), tr("decide.empty_detail"), tr("decide.example"))

    def _changed(self) -> None:
        """Faults go as soon as what caused them does."""
        self.questions.set_pictures(len(self.evidence.attachments.pictures))
        if self.response is not None:
            self.took.set_text(tr("decide.changed"))
        if self._faulty:
            self._check()

    def _check(self) -> bool:
        """Shows what is wrong beside it; whether nothing is."""
        found = dict(self.questions.id_faults()) | faults(self.draft())
        self.evidence.say(found.pop(("", "state"), ""))
        self.questions.say(found)
        self._faulty = bool(found) or bool(self.evidence.fault.text())
        return not self._faulty

    # Deciding

    def decide(self) -> None:
        """Asks; stops when the questions are being answered already."""
        if self._deciding is not None:
            self._deciding.cancel()
            return
        if self._engine.info is None or self.evidence.attachments.waiting:
            return
        if not self._check():
            self.tabs.setCurrentIndex(_EVIDENCE if self.evidence.fault.text() else _QUESTIONS)
            self.questions.show_fault()
            return
        draft = self.draft()
        self._asked = request_text(draft)
        job = self._deciding = self._engine.decide(self._asked)
        job.done.connect(lambda response: self._decided(job, draft.questions, response))
        job.failed.connect(lambda error: self._failed(job, error))
        self.fault.hide()
        self._show_busy()
        self.tabs.setCurrentIndex(_ANSWERS)

    def stop(self) -> None:
        if self._deciding is not None:
            self._deciding.cancel()

    def leave(self) -> None:
        """The same when the window closes: what still comes of it is nobody's."""
        self.stop()
        self._deciding = None

    def _show_busy(self) -> None:
        self.decide_button.setText(tr("log.stop") if self._deciding is not None else tr("decide.decide"))
        if self._deciding is not None:
            self.took.set_text(tr("decide.deciding"))
            self.took.show()
        elif self.response is None:
            self.took.hide()
        else:
            self.took.set_text(summary(self.response))

    def _decided(self, job: Job, questions: Mapping[str, Any], response: dict[str, Any]) -> None:
        if job is not self._deciding:
            return
        self._deciding = None
        self._show_busy()
        self._show_response(response, questions)
        try:
            self.history.add(Decided(time.time(), self._asked, response))
        except OSError as error:
            self._toast.say(tr("decide.not_kept", reason=error.strerror or str(error)))

    def _failed(self, job: Job, error: EngineError) -> None:
        if job is not self._deciding:
            return
        self._deciding = None
        self._show_busy()
        if error.code == "cancelled":
            return
        _, _, rest = (error.param or "").partition("questions.")
        name, _, field = rest.rpartition(".")
        if name in self.questions.questions():
            self.questions.say({(name, "options" if field in ("levels", "true") else field): error.message})
            self._faulty = True
            self.tabs.setCurrentIndex(_QUESTIONS)
        else:
            self.fault.setText(error.message)
            self.fault.show()

    def _check_picture(self, token: int, picture: Picture) -> None:
        attachments = self.evidence.attachments

        def usable(image: ImageInput) -> None:
            width, height = image.original_size
            attachments.settle(token, "", f"{width} × {height}")

        task = self._engine.check_image(picture.data)
        task.done.connect(usable)
        task.failed.connect(lambda error: attachments.settle(token, error.message))

    def recall(self, item: Decided) -> None:
        """Shows a request of the history with its answers."""
        draft = read_request(item.request)
        self.show_draft(draft)
        self._show_response(item.response, draft.questions)
        self.tabs.setCurrentIndex(_ANSWERS)

    # Size

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """The three parts side by side, or one of them."""
        narrow = self.width() < _NARROW
        self._strip.setVisible(narrow)
        focus = self.focusWidget()
        shown = self._parts[self.tabs.currentIndex()]
        if narrow and focus is not None and focus.hasFocus() and not shown.isAncestorOf(focus):
            self.tabs.setFocus()  # else it would leave the panel with the part that is hidden
        for place, (part, title) in enumerate(zip(self._parts, self._titles, strict=True)):
            part.setVisible(not narrow or place == self.tabs.currentIndex())
            title.setVisible(not narrow)


def _part() -> tuple[QWidget, QVBoxLayout]:
    part = QWidget()
    part.setMinimumWidth(280)
    column = QVBoxLayout(part)
    column.setContentsMargins(16, 12, 16, 16)
    column.setSpacing(8)
    return part, column
