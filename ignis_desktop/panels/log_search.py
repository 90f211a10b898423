"""The Log search panel: a log of any size, asked in words; the line that answers, and the way there."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from engine.messages import EngineError, EngineSnapshot
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.jobs import Job
from ignis_desktop.log_file import Asked, LogFile
from ignis_desktop.panels.log_opening import LogOpening
from ignis_desktop.panels.log_reader import LogReader
from ignis_desktop.panels.log_words import count_text, facts, note_text, stages_text
from ignis_desktop.panels.model_line import loading_text, model_line
from ignis_desktop.widgets.buttons import IconTextButton, button
from ignis_desktop.widgets.empty_state import EmptyState
from ignis_desktop.widgets.file_strip import FileStrip
from ignis_desktop.widgets.log_answer import LogAnswer, Ranked
from ignis_desktop.widgets.panel import PanelHeader
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.toast import Toast
from ignis_desktop.widgets.work_line import WorkLine

_MARGIN = 16


class LogSearchPanel(QWidget):
    def __init__(self, engine: EngineThread, toast: Toast, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._toast = toast
        self._log: LogFile | None = None
        self._asking: Job | None = None
        self._wanted = False
        """A question waits for the log to be folded."""
        self.setObjectName("panelBody")
        self.setAcceptDrops(True)
        self.header = PanelHeader(tr("nav.log_search"))
        self.open_button = IconTextButton("folder-open", "  " + tr("log.open"))
        self.open_button.clicked.connect(self.choose_file)
        self.header.right.addWidget(self.open_button)
        self.empty = EmptyState()
        self.empty.pressed.connect(self.choose_file)
        self.work = WorkLine()
        self.work.cancelled.connect(self.stop)
        self.opening = LogOpening(engine, self)
        self.opening.told.connect(self.work.tell)
        self.opening.opened.connect(self._opened)
        self.opening.folded.connect(self._folded)
        self.opening.counted.connect(self._show_facts)
        self.opening.failed.connect(self._failed)
        self.fault = QLabel(wordWrap=True)
        self.fault.setProperty("tone", "bad")
        self.fault.hide()
        self.strip = FileStrip()
        self.strip.closed.connect(self.close_log)
        self.question = QLineEdit(placeholderText=tr("log.question"))
        self.question.setAccessibleName(tr("log.question"))
        self.question.returnPressed.connect(self.ask)
        self.question.textChanged.connect(self._show_ask)
        self.ask_button = button(tr("log.ask"), "primary")
        self.ask_button.clicked.connect(self.ask)
        self.answer = LogAnswer()
        self.answer.hide()
        self.answer.closed.connect(self._forget_answer)
        self.reader = LogReader(engine.jobs)
        self.answer.chosen.connect(self.reader.pick)
        self.reader.said.connect(toast.say)
        self.reader.failed.connect(self._say_fault)
        self.reader.shown_changed.connect(self._show_ask)
        self._column = self._build()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self._column, 1)
        for keys, then in (
            (QKeySequence(QKeySequence.StandardKey.Open), self.choose_file),
            (QKeySequence("Ctrl+G"), self.reader.line.setFocus),
            (QKeySequence("F3"), lambda: self.reader.step_found(1)),
            (QKeySequence("Shift+F3"), lambda: self.reader.step_found(-1)),
            (QKeySequence("Alt+Down"), lambda: self.answer.step(1)),
            (QKeySequence("Alt+Up"), lambda: self.answer.step(-1)),
        ):
            QShortcut(keys, self).activated.connect(then)
        self._show_log(None)

    def _build(self) -> QWidget:
        column = QWidget()
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(self.question, 1)
        line.addWidget(self.ask_button)
        layout = QVBoxLayout(column)
        layout.setContentsMargins(_MARGIN, 8, _MARGIN, _MARGIN)
        layout.setSpacing(8)
        layout.addWidget(self.strip)
        layout.addLayout(line)
        layout.addWidget(self.work)
        layout.addWidget(self.fault)
        layout.addWidget(self.answer)
        layout.addWidget(self.reader, 1)
        layout.addWidget(self.empty, 1)
        return column

    # Showing

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        self.header.set_subject(model_line(snapshot))
        self._show_ask()
        if self._log is not None:
            self.opening.count(self._log)

    def _show_log(self, log: LogFile | None) -> None:
        """Another log, or none: its file may still be being read."""
        self._log = log
        there = log is not None or self.opening.opening
        for widget in (self.strip, self.question, self.ask_button, self.reader):
            widget.setVisible(there)
        self.reader.setEnabled(log is not None)
        self.empty.setVisible(not there)
        self.empty.show_state(tr("log.empty"), tr("log.empty_detail"), tr("log.open"))
        self.open_button.setVisible(there)
        self.answer.hide()
        self.reader.show_log(log)
        if log is not None:
            self.strip.name.set_text(log.name)
            self._show_facts()
        self._show_ask()

    def _show_facts(self) -> None:
        if self._log is not None:
            self.strip.facts.set_text(facts(self._log))

    def _show_ask(self) -> None:
        """The button asks, or stops what was asked."""
        asking = self._wanted or self._asking is not None
        self.ask_button.setText(tr("log.stop") if asking else tr("log.ask"))
        able = self._log is not None and self._engine.info is not None and bool(self.question.text().strip())
        self.ask_button.setEnabled(asking or able)
        rows = self.reader.rows
        if rows is not None:
            name = "log.question_some" if len(rows) != 1 else "log.question_one"
            self.question.setPlaceholderText(tr(name, count=f"{len(rows):,}"))
        else:
            self.question.setPlaceholderText(tr("log.question"))
        unready = self._log is not None and self._engine.info is None
        self.ask_button.setToolTip(loading_text(self._engine.snapshot) if unready else "")

    def _say_fault(self, error: EngineError) -> None:
        self.fault.setText(error.message)
        self.fault.setVisible(bool(error.message))

    # Opening

    def choose_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, tr("log.open"), "", "")
        if name:
            self.open(Path(name))

    def open(self, path: Path) -> None:
        """Reads a file beside the window; the one that is shown is closed."""
        self.close_log()
        self.opening.open(path)
        self.strip.name.set_text(path.name)
        self.strip.facts.set_text("")
        self.work.begin(tr("log.opening"))
        self._show_log(None)

    def close_log(self) -> None:
        """Back to no file; what is being done with it ends."""
        self.stop()
        self._asking = None  # what still comes of it is nobody's
        self.opening.cancel()
        log = self._log
        self._show_log(None)
        self.fault.hide()
        self.work.hide()
        if log is not None:
            log.close()

    def stop(self) -> None:
        """Ends what is going on: a question, a search, or the reading of a file."""
        self.reader.stop_finding()
        if self._wanted or self._asking is not None:
            self._wanted = False
            if self._asking is not None:
                self._asking.cancel()
            self._show_ask()
        elif self.opening.busy:
            self.opening.cancel()
            self.work.hide()
            if self._log is None:
                self._show_log(None)

    def _opened(self, log: LogFile) -> None:
        self._show_log(log)
        self.question.setFocus()
        self.work.begin(tr("log.folding"))
        self.opening.fold(log)
        self.opening.count(log)

    def _folded(self) -> None:
        assert self._log is not None
        self.work.hide()
        self.reader.show_templates(self._log.templates)
        self._show_facts()
        if self._wanted:
            self._wanted = False
            self.ask()

    def _failed(self, error: EngineError) -> None:
        self._wanted = False
        if not self.opening.busy and self._asking is None:
            self.work.hide()
        if self._log is None:
            self._show_log(None)
        self._show_ask()
        self._say_fault(error)

    # Asking

    def ask(self) -> None:
        """Asks the question of the lines that are shown, once they are folded; stops one that is being asked."""
        if self._wanted or self._asking is not None:
            self.stop()
            return
        question = self.question.text().strip()
        if self._log is None or self._engine.info is None or not question:
            return
        self.fault.hide()
        self.answer.hide()
        self.reader.show_ranking(())
        if not self._log.is_folded:
            self._wanted = True
            self.work.show()
            self.opening.fold(self._log)
            self._show_ask()
            return
        some = self.reader.rows
        job = self._asking = self._engine.locate(self._log, question, some)
        job.progressed.connect(lambda done, total: self._tell_asking(job, done, total))
        where = tr("log.these_lines") if some is not None else tr("log.this_log")
        job.done.connect(lambda asked: self._answered(job, asked, where))
        job.failed.connect(lambda error: self._unanswered(job, error))
        self.work.begin(tr("log.preparing"), stoppable=False)  # the button beside the question stops it
        self._show_ask()

    def _tell_asking(self, job: Job, done: int, total: int) -> None:
        if job is self._asking and total > 1:
            self.work.tell(done, total, tr("log.reading", done=count_text(done), total=count_text(total)))

    def _answered(self, job: Job, asked: Asked, where: str) -> None:
        if job is not self._asking:
            return
        self._end_asking()
        ranking = [Ranked(hit.row, hit.line, hit.text, hit.confidence) for hit in asked.hits]
        self.reader.show_ranking([hit.row for hit in asked.hits])
        self.answer.show()
        self.answer.show_answer(
            ranking, found=asked.found, timing=stages_text(asked), where=where, note=note_text(asked)
        )

    def _unanswered(self, job: Job, error: EngineError) -> None:
        if job is self._asking:
            self._end_asking()
            if error.code != "cancelled":
                self._say_fault(error)

    def _end_asking(self) -> None:
        self._asking = None
        self.work.hide()
        self._show_ask()

    def _forget_answer(self) -> None:
        self.answer.hide()
        self.reader.show_ranking(())

    # Dropping

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        files = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if files:
            event.acceptProposedAction()
            self.open(files[0])
