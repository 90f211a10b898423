"""The lines of a log and its templates: going to places, finding words, showing only lines that are alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPoint, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QIntValidator
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QMenu, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from engine.messages import EngineError
from ignis_desktop.jobs import Job, Jobs
from ignis_desktop.log_file import LogFile, LogTemplate, Rows
from ignis_desktop.log_find import Found, find
from ignis_desktop.panels.log_rows import ShownRows
from ignis_desktop.widgets.buttons import button
from ignis_desktop.widgets.elided import ElidedLabel
from ignis_desktop.widgets.find_field import FindField
from ignis_desktop.widgets.log_view import LogView
from ignis_desktop.widgets.marked_scroll_bar import Marks
from ignis_desktop.widgets.template_table import TemplateRow, TemplateTable
from ignis_desktop.widgets.text_query import TextQuery
from ignis_desktop.widgets.texts import tr

COPY_ROWS = 100_000
"""Rows that are copied at once; more is a file, not something to paste."""


class LogReader(QWidget):
    said = Signal(str)
    """Something the person should know."""
    failed = Signal(object)
    """``EngineError``: the file can no longer be read."""
    shown_changed = Signal()
    """Other rows of the log are shown."""

    def __init__(self, jobs: Jobs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._shown: ShownRows | None = None
        self._only: LogTemplate | None = None
        self._ranked: tuple[int, ...] = ()
        self._picked = -1
        self._found: Found | None = None
        self._finding: Job | None = None
        self.tabs = QTabBar()
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.tabs.addTab(tr("log.tab_lines"))
        self.tabs.addTab(tr("log.templates"))
        self.tabs.setUsesScrollButtons(False)
        self.only = QWidget()
        self.only_count = QLabel()
        self.only_text = ElidedLabel(mono=True, tone="secondary")
        show_all = button(tr("log.show_all"), "quiet")
        show_all.clicked.connect(self.show_all)
        only = QHBoxLayout(self.only)
        only.setContentsMargins(0, 0, 0, 0)
        only.setSpacing(8)
        only.addWidget(self.only_count)
        only.addWidget(self.only_text, 1)
        only.addWidget(show_all)
        self.only.hide()
        self.finder = FindField()
        self.finder.wanted.connect(self._find)
        self.finder.stepped.connect(self.step_found)
        self.line = QLineEdit(placeholderText=tr("log.go_to"))
        self.line.setAccessibleName(tr("log.go_to"))
        self.line.setFixedWidth(88)
        self.line.returnPressed.connect(self._go_to_line)
        bar = QHBoxLayout()
        bar.setSpacing(8)
        bar.addWidget(self.tabs)
        bar.addStretch(1)
        bar.addWidget(self.finder, 100)
        bar.addWidget(self.line)
        self.view = LogView()
        self.view.copy_wanted.connect(self._copy)
        self.view.menu_wanted.connect(self._open_menu)
        self.templates = TemplateTable()
        self.templates.chosen.connect(lambda row: self._show_only(row.number))
        self.templates.first_wanted.connect(self._go_to_first)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self.templates)
        self.tabs.currentChanged.connect(self._stack.setCurrentIndex)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addLayout(bar)
        layout.addWidget(self.only)
        layout.addWidget(self._stack, 1)

    # What is shown

    @property
    def rows(self) -> Rows | None:
        """The rows of the log that are shown; None for all."""
        return self._shown.rows if self._shown is not None else None

    def show_log(self, log: LogFile | None) -> None:
        """Another log from its beginning, or none."""
        self.stop_finding()
        self.finder.clear()
        self.line.clear()
        self._found = None
        self._ranked, self._picked = (), -1
        self.view.show_spans(None)
        if log is not None:
            self.line.setValidator(QIntValidator(1, min(log.lines, 2**31 - 1), self.line))
        self.tabs.setCurrentIndex(0)
        self.show_templates(())
        self._show(log, None, None)

    def show_templates(self, templates: Sequence[LogTemplate]) -> None:
        """The log's templates once they are known."""
        self.templates.show_rows([TemplateRow(t.number, t.text, t.count, t.line, t.example) for t in templates])
        self.tabs.setTabEnabled(1, bool(templates))

    def show_ranking(self, rows: Sequence[int]) -> None:
        """Rows of the log that may answer, best first."""
        self._ranked, self._picked = tuple(rows), -1
        self._mark()

    def pick(self, place: int) -> None:
        """Goes to one of the ranking and highlights it; -1 picks none."""
        self._picked = place
        if place >= 0:
            self.go_to(self._ranked[place])
        self._mark()

    def go_to(self, row: int) -> None:
        """A row of the log into the middle; all rows are shown again when it is not among those shown."""
        if self._shown is None:
            return
        if self._shown.place_of(row) is None:
            self.show_all()
        self.tabs.setCurrentIndex(0)
        self.view.centre(self._shown.place_of(row) or 0)

    def show_all(self) -> None:
        if self._shown is not None and self._shown.rows is not None:
            row = self._shown.in_log(self.view.current) if len(self._shown) else 0
            self._show(self._shown.log, None, None, row)

    def _show(self, log: LogFile | None, rows: Rows | None, only: LogTemplate | None, row: int = 0) -> None:
        self._only = only
        self.only.setVisible(only is not None)
        if only is not None:
            self.only_count.setText(tr("log.only" if only.count != 1 else "log.only_one", count=f"{only.count:,}"))
            self.only_text.set_text(only.text)
        self._shown = None if log is None else ShownRows(log, rows, self._report)
        place = 0 if self._shown is None else self._shown.place_of(row) or 0
        self.view.show_rows(self._shown, place)
        if self._shown is not None:
            self.view.centre(place)
        self._mark()
        self.shown_changed.emit()

    def _show_only(self, template: int) -> None:
        if self._shown is None:
            return
        log = self._shown.log
        only = next(t for t in log.templates if t.number == template)
        self.tabs.setCurrentIndex(0)
        rows = log.rows_like(template)
        current = self._shown.in_log(self.view.current) if len(self._shown) else only.row
        self._show(log, rows, only, current if current in rows else only.row)
        self.view.setFocus()

    def _go_to_first(self, row: TemplateRow) -> None:
        if self._shown is not None:
            self.go_to(self._shown.log.row_of(row.line))
            self.view.setFocus()

    def _go_to_line(self) -> None:
        if self._shown is not None and self.line.hasAcceptableInput():
            self.go_to(self._shown.log.row_of(int(self.line.text())))
            self.view.setFocus()

    def _mark(self) -> None:
        if self._shown is None:
            return
        places = [self._shown.place_of(row) for row in self._ranked]
        picked = places[self._picked] if 0 <= self._picked < len(places) else None
        ranked = tuple(place for place in places if place is not None and place != picked)
        found = None if self._found is None else self._shown.places_of(self._found.rows)
        self.view.show_marks(Marks(picked, ranked, found))
        self._say_found()

    def _report(self, error: EngineError) -> None:
        # Not while a row is being drawn.
        QTimer.singleShot(0, self, lambda: self.failed.emit(error))

    # Finding words

    def stop_finding(self) -> None:
        if self._finding is not None:
            self._finding.cancel()
            self._finding = None

    def _find(self, query: TextQuery | None) -> None:
        self.stop_finding()
        self._found = None
        self.view.show_spans(query.spans if query is not None else None)
        self._mark()
        if query is None or self._shown is None:
            return
        log = self._shown.log
        job = self._finding = self._jobs.start(lambda job: find(log, query, job))
        job.progressed.connect(lambda done, total: self._tell(job, done / max(total, 1)))
        job.done.connect(lambda found: self._take(job, found))
        job.failed.connect(lambda error: self._fail(job, error))

    def _tell(self, job: Job, share: float) -> None:
        if job is self._finding:
            self.finder.say(tr("find.searching", share=f"{share:.0%}"))

    def _take(self, job: Job, found: Found) -> None:
        if job is self._finding:
            self._finding = None
            self._found = found
            self._mark()
            self.step_found(0)

    def _fail(self, job: Job, error: EngineError) -> None:
        if job is self._finding:
            self._finding = None
            self.finder.say("")
            self.failed.emit(error)

    def step_found(self, by: int) -> None:
        """To the next row that holds what is searched for (1), the one before (-1), or the nearest from here on (0)."""
        places = self.view.bar.marks.found
        if places is None or not len(places):
            return
        current = self.view.current
        at = int(np.searchsorted(places, current, "right" if by > 0 else "left")) - (by < 0)
        self.view.centre(int(places[at % len(places)]))
        self._say_found()

    def _say_found(self) -> None:
        places = self.view.bar.marks.found
        if self._found is None or places is None:
            return
        more = "+" if self._found.more else ""
        at = int(np.searchsorted(places, self.view.current))
        here = at < len(places) and int(places[at]) == self.view.current
        if not len(places):
            self.finder.say(tr("find.not_here" if len(self._found.rows) else "find.none"))
        elif here:
            self.finder.say(tr("find.of", place=f"{at + 1:,}", count=f"{len(places):,}{more}"), steps=True)
        else:
            self.finder.say(tr("find.count", count=f"{len(places):,}{more}"), steps=True)

    # Copying

    def _copy(self, rows: range) -> None:
        shown = self._shown
        if shown is None or not rows:
            return
        if len(rows) > COPY_ROWS:
            self.said.emit(tr("log.copy_too_many", count=f"{COPY_ROWS:,}"))
            return
        places = np.arange(rows.start, rows.stop) if shown.rows is None else shown.rows[rows.start : rows.stop]
        job = self._jobs.start(lambda _job: shown.log.text(places))
        job.done.connect(lambda text: self._put(text, len(places)))
        job.failed.connect(self.failed)

    def _put(self, text: str, count: int) -> None:
        QGuiApplication.clipboard().setText(text)
        self.said.emit(tr("log.copied" if count != 1 else "log.copied_one", count=f"{count:,}"))

    def _open_menu(self, row: int, place: QPoint) -> None:
        menu = self.menu(row)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(place)

    def menu(self, row: int) -> QMenu:
        """What can be done with a row of the view, and with the selection."""
        menu = QMenu(self)
        shown = self._shown
        if shown is None:
            return menu
        menu.addAction(tr("log.copy_lines"), lambda: self._copy(self.view.selected))
        template = shown.log.template_of(shown.in_log(row))
        if template is not None and self._only is None:
            count = f"{template.count:,}"
            menu.addAction(tr("log.show_alike", count=count), lambda: self._show_only(template.number))
        if self._only is not None:
            menu.addAction(tr("log.show_all"), self.show_all)
        return menu
