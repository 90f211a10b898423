"""The Log search panel: opening files of every kind and size, asking, going to the answer, finding, filtering."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import zstandard
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication

from engine.messages import EngineError
from ignis_desktop import log_file, log_find
from ignis_desktop.jobs import Job
from ignis_desktop.log_file import LogFile
from ignis_desktop.panels import log_reader
from ignis_desktop.panels.log_search import LogSearchPanel
from ignis_desktop.watchdog import StallWatchdog
from tests.window.conftest import Opened

LINES = 300
ERROR = 217
"""The line that is not like the others."""


def log_text(lines: int = LINES) -> str:
    rows = [
        f"2026-03-01 10:{i // 60 % 60:02}:{i % 60:02} INFO auth[{100 + i % 7}]: user u{i} is in from 10.0.0.{i % 250}"
        for i in range(1, lines + 1)
    ]
    rows[ERROR - 1] = "2026-03-01 11:02:03 ERROR billing[77]: card processor unreachable"
    return "\n".join(rows) + "\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "app.log"
    file.write_text(log_text())
    return file


@pytest.fixture
def panel(opened: Opened) -> LogSearchPanel:
    opened.window.show_panel("log_search")
    return opened.window.log_search


@pytest.fixture
def read(panel: LogSearchPanel, qtbot) -> Callable[[Path], LogFile]:
    """Opens a file and waits until it is folded."""

    def open_one(path: Path) -> LogFile:
        panel.open(path)
        qtbot.waitUntil(lambda: panel._log is not None and panel._log.is_folded, timeout=30_000)
        qtbot.waitUntil(lambda: not panel.opening.busy, timeout=5000)
        assert panel._log is not None
        return panel._log

    return open_one


def ask(panel: LogSearchPanel, qtbot, question: str = "Which line says the card processor is unreachable?") -> None:
    panel.question.setText(question)
    qtbot.keyClick(panel.question, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: panel._asking is None, timeout=60_000)


def text_of(panel: LogSearchPanel, row: int) -> str:
    rows = panel.reader._shown
    assert rows is not None
    return rows.text(row)


def test_an_empty_panel_says_what_to_do(
    panel: LogSearchPanel, monkeypatch: pytest.MonkeyPatch, path: Path, qtbot
) -> None:
    assert panel.empty.isVisible()
    assert not panel.reader.isVisible()
    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getOpenFileName", lambda *_: (str(path), ""))
    panel.empty._button.click()
    qtbot.waitUntil(lambda: panel._log is not None, timeout=10_000)
    assert not panel.empty.isVisible()
    assert panel.reader.view.isVisible()


def test_a_file_says_what_it_is(panel: LogSearchPanel, read, path: Path, qtbot) -> None:
    log = read(path)
    qtbot.waitUntil(lambda: log.tokens is not None, timeout=10_000)
    qtbot.waitUntil(lambda: "tokens" in panel.strip.facts.text, timeout=5000)
    assert panel.strip.name.text == "app.log"
    assert panel.strip.facts.text.startswith("300 lines · ")
    assert panel.strip.facts.text.endswith("folded to 2 templates")
    real = len(panel._engine.engine.tokenizer.encode(path.read_text()))
    assert log.tokens == pytest.approx(real, rel=0.05)
    assert not panel.work.isVisible()
    panel.strip.close_button.click()
    assert panel.empty.isVisible()
    with pytest.raises(EngineError):
        log.source.row(200)


@pytest.mark.parametrize("kind", ["gzip", "zst", "utf-16", "crlf"])
def test_encodings_and_packed_files(panel: LogSearchPanel, read, tmp_path: Path, kind: str) -> None:
    plain = log_text()
    packed = {
        "gzip": gzip.compress(plain.encode()),
        "zst": zstandard.compress(plain.encode()),
        "utf-16": plain.encode("utf-16"),
        "crlf": plain.replace("\n", "\r\n").encode(),
    }[kind]
    file = tmp_path / f"app.{kind}"
    file.write_bytes(packed)
    log = read(file)
    assert log.lines == LINES
    assert text_of(panel, ERROR - 1) == plain.splitlines()[ERROR - 1]
    assert len(log.templates) == 2


def test_a_dropped_file_is_opened(panel: LogSearchPanel, path: Path, qtbot) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    none = Qt.KeyboardModifier.NoModifier
    event = QDropEvent(QPointF(10, 10), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, none)
    panel.dropEvent(event)
    assert event.isAccepted()
    qtbot.waitUntil(lambda: panel._log is not None, timeout=10_000)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be opened"), (b"", "is empty"), (b"\x1f\x8bbroken", "broken or cut off")]
)
def test_files_that_cannot_be_shown(
    panel: LogSearchPanel, tmp_path: Path, content: bytes | None, words: str, qtbot
) -> None:
    file = tmp_path / "bad.log"
    if content is not None:
        file.write_bytes(content)
    panel.open(file)
    qtbot.waitUntil(panel.fault.isVisible, timeout=10_000)
    assert words in panel.fault.text()
    assert panel.empty.isVisible()
    assert not panel.work.isVisible()


def test_the_answer_is_shown_and_gone_to(panel: LogSearchPanel, read, path: Path, qtbot) -> None:
    read(path)
    ask(panel, qtbot)
    assert panel.fault.text() == ""
    ranking = panel.answer.ranking
    assert 2 <= len(ranking) <= 5
    assert [ranked.share for ranked in ranking] == sorted((ranked.share for ranked in ranking), reverse=True)
    fold, read_, choose = panel.answer.timing.text.split(" · ")
    assert fold.startswith("fold ")
    assert not fold.startswith("fold 0 ")
    assert read_.startswith("read ")
    assert choose.startswith("choose ")
    assert "choose" in panel.answer.timing.text
    view = panel.reader.view
    for ranked in ranking:
        assert text_of(panel, ranked.row) == ranked.text
        assert ranked.line == ranked.row + 1
    if panel.answer.copy.isVisible():
        assert view.bar.marks.picked == ranking[0].row == view.current
        assert panel.answer.title.text() == f"Line {ranking[0].line}"
    began = time.perf_counter()
    panel.answer.links[-1].click()
    view.repaint()
    assert time.perf_counter() - began < 0.1
    last = ranking[-1]
    assert view.bar.marks.picked == view.current == last.row
    assert view.first <= last.row < view.first + view.visible_rows
    assert set(view.bar.marks.ranked) == {ranked.row for ranked in ranking[:-1]}
    qtbot.keyClick(panel.question, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert view.current == ranking[0].row
    qtbot.keyClick(panel.question, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert view.current == last.row


def test_found_or_not_is_said(panel: LogSearchPanel, read, path: Path, qtbot, monkeypatch: pytest.MonkeyPatch) -> None:
    read(path)
    locate = log_file.locate
    for found, title in ((True, "Line "), (False, "Not in this log")):
        monkeypatch.setattr(log_file, "locate", lambda *a, found=found, **k: replace(locate(*a, **k), found=found))
        ask(panel, qtbot)
        assert panel.answer.title.text().startswith(title)
        assert panel.answer.copy.isVisible() is found
        assert (panel.reader.view.bar.marks.picked is not None) is found
    assert len(panel.answer.links) == len(panel.answer.ranking)


def test_a_question_can_be_stopped(panel: LogSearchPanel, opened: Opened, read, path: Path, qtbot) -> None:
    read(path)
    panel.question.setText("Which line?")
    panel.ask()
    assert panel.ask_button.text() == "Stop"
    assert panel.work.isVisible()
    qtbot.keyClick(opened.window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: panel._asking is None, timeout=20_000)
    assert panel.ask_button.text() == "Ask"
    assert panel.fault.text() == ""
    assert not panel.answer.isVisible()


def test_the_window_closes_while_asking(open_window, path: Path, qtbot) -> None:
    panel = open_window().window.log_search
    panel.open(path)
    qtbot.waitUntil(lambda: panel._log is not None and panel._log.is_folded, timeout=10_000)
    panel.question.setText("Which line?")
    panel.ask()
    second = open_window()
    qtbot.waitUntil(lambda: not second.engine.jobs._open, timeout=20_000)


def test_only_the_lines_that_are_shown_are_asked(panel: LogSearchPanel, read, path: Path, qtbot) -> None:
    log = read(path)
    panel.reader._show_only(log.templates[1].number)
    assert panel.question.placeholderText() == "Ask this line"
    ask(panel, qtbot)
    assert [ranked.line for ranked in panel.answer.ranking] == [ERROR]
    assert panel.reader.view.count == 1


def test_what_was_counted_and_left_out_is_said(
    panel: LogSearchPanel, read, path: Path, qtbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(path)
    locate = log_file.locate
    changes = {"found": False, "ranking": (), "count": 3, "note": "No line is of that time."}
    monkeypatch.setattr(log_file, "locate", lambda *a, **k: replace(locate(*a, **k), **changes))
    ask(panel, qtbot)
    assert panel.answer.note.text() == "3 lines answer. No line is of that time."
    assert panel.answer.links == []
    panel.answer.step(1)
    assert panel.answer.place == -1


def test_a_question_waits_for_the_fold(
    panel: LogSearchPanel, opened: Opened, path: Path, qtbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, go = LogFile.fold, threading.Event()

    def held(log: LogFile, on_bytes: Callable[[int, int], None]) -> None:
        assert go.wait(20)
        real(log, on_bytes)

    monkeypatch.setattr(LogFile, "fold", held)
    panel.question.setText("Which line?")
    panel.open(path)
    qtbot.waitUntil(lambda: panel._log is not None, timeout=10_000)
    panel.ask()
    assert panel.ask_button.text() == "Stop"
    qtbot.keyClick(opened.window, Qt.Key.Key_Escape)
    assert panel.ask_button.text() == "Ask"
    panel.ask()
    go.set()
    qtbot.waitUntil(panel.answer.isVisible, timeout=30_000)
    assert panel._log.is_folded


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ('{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n', "Source"),
        ("It was a long day. Nobody came to the shop before noon.\nThen the rain began.\n", "Source"),
        (log_text(40 + ERROR), "Fold"),
        ("[" + ",".join(['{"id": 1, "text": "' + "long " * 20 + '"}'] * 80_000) + "]", "Source"),
        ('[{"text": "' + "long " * 2_000_000 + '"}, {"id": 2}]', "Fold"),
    ],
)
def test_records_and_prose_are_asked_as_such(read, tmp_path: Path, text: str, subject: str) -> None:
    file = tmp_path / "some.txt"
    file.write_text(text)
    assert type(read(file).subject).__name__ == subject


def test_a_record_is_shown_where_it_stands_on_its_line(read, tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    records = [f'{{"id": {n}, "name": "item {n} of many"}}' for n in range(2000)]
    file.write_text("[" + ", ".join(records) + "]\n")
    log = read(file)
    assert log.rows > log.lines == 1
    rows = [log.row_with(1, record) for record in records]
    assert rows == sorted(rows)
    for record, row in zip(records, rows, strict=True):
        assert record in log.row(row) + (log.row(row + 1) if row + 1 < log.rows else "")
    assert log.row_with(1, "nowhere") == 0


def test_find_text(panel: LogSearchPanel, opened: Opened, read, path: Path, qtbot) -> None:
    read(path)
    finder, view = panel.reader.finder, panel.reader.view
    qtbot.keyClick(opened.window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert finder.edit.hasFocus()
    assert opened.window.panel == "log_search"

    def search(text: str) -> list[int]:
        panel.reader._found = None
        finder.edit.setText(text)
        finder._search()
        qtbot.waitUntil(lambda: panel.reader._found is not None, timeout=10_000)
        return panel.reader._found.rows.tolist()

    assert search("AUTH[103]") == [i for i in range(LINES) if "auth[103]" in text_of(panel, i)]
    first = view.current
    finder.down.click()
    assert view.current == first + 7
    assert finder.state.text().startswith("2 of ")
    qtbot.keyClick(finder.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert view.current == first
    finder.case.setChecked(True)
    assert search("AUTH[103]") == []
    assert finder.state.text() == "Nowhere"
    finder.regex.setChecked(True)
    assert search(r"^2026.*(ERROR|FATAL)\b") == [ERROR - 1]
    assert view.current == ERROR - 1
    finder.edit.setText("(")
    finder._search()
    assert finder.state.text() == "No regular expression"
    assert finder.edit.toolTip()


def test_a_search_ends_when_another_begins(
    panel: LogSearchPanel, read, path: Path, qtbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(path)
    begun: list[str] = []
    cancelled: list[bool] = []
    real = log_find.find

    def slow(log: LogFile, query, job: Job):
        begun.append(query.pattern)
        while query.pattern == "slow" and not job.cancelled:
            time.sleep(0.005)
        cancelled.append(job.cancelled)
        return real(log, query, job)

    monkeypatch.setattr(log_reader, "find", slow)
    for words in ("slow", "ERROR"):
        panel.reader.finder.edit.setText(words)
        panel.reader.finder._search()
        qtbot.waitUntil(lambda words=words: words in begun, timeout=5000)
    qtbot.waitUntil(lambda: panel.reader._found is not None, timeout=10_000)
    assert panel.reader._found.query.pattern == "ERROR"
    qtbot.waitUntil(lambda: sorted(cancelled) == [False, True], timeout=5000)


def test_templates_filter_and_jump(panel: LogSearchPanel, read, path: Path, qtbot) -> None:
    log = read(path)
    reader = panel.reader
    reader.tabs.setCurrentIndex(1)
    rows = reader.templates.templates.rows
    assert [(row.count, row.line) for row in rows] == [(LINES - 1, 1), (1, ERROR)]
    assert rows[1].example == text_of(panel, ERROR - 1)
    reader.templates._press(reader.templates.templates.index(0, 0))
    assert reader.tabs.currentIndex() == 0
    assert reader.view.count == LINES - 1
    assert reader.only.isVisible()
    shown = reader._shown
    assert shown is not None
    assert shown.number(ERROR - 1) == ERROR + 1
    reader.finder.edit.setText("ERROR")
    reader.finder._search()
    qtbot.waitUntil(lambda: reader.finder.state.text() == "Not in these lines", timeout=10_000)
    reader.go_to(ERROR - 1)
    assert reader.view.count == LINES
    assert reader.view.current == ERROR - 1
    assert not reader.only.isVisible()
    reader.tabs.setCurrentIndex(1)
    reader.templates._press(reader.templates.templates.index(1, 2))
    assert reader.view.current == log.row_of(ERROR)


def test_go_to_line(panel: LogSearchPanel, read, path: Path, qtbot) -> None:
    read(path)
    qtbot.keyClick(panel, Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier)
    assert panel.reader.line.hasFocus()
    qtbot.keyClicks(panel.reader.line, "250")
    qtbot.keyClick(panel.reader.line, Qt.Key.Key_Return)
    assert panel.reader.view.current == 249
    assert panel.reader.view.hasFocus()


def test_copy_lines(
    panel: LogSearchPanel, opened: Opened, read, path: Path, qtbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(path)
    view = panel.reader.view
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Home)
    qtbot.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert view.selected == range(2)
    QGuiApplication.clipboard().clear()
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: bool(QGuiApplication.clipboard().text()), timeout=5000)
    assert QGuiApplication.clipboard().text() == "\n".join(log_text().splitlines()[:2])
    monkeypatch.setattr(log_reader, "COPY_ROWS", 10)
    qtbot.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert "at once" in opened.window.toast._text.text()


def test_the_menu_of_a_line_shows_its_like(panel: LogSearchPanel, read, path: Path, qtbot) -> None:
    read(path)
    panel.reader.view.go_to(5)
    menu = panel.reader.menu(5)
    next(action for action in menu.actions() if "like this" in action.text()).trigger()
    menu.deleteLater()
    assert panel.reader.view.count == LINES - 1
    assert panel.reader.view.current == 5


def test_a_file_that_shrinks_is_said(panel: LogSearchPanel, read, path: Path, qtbot) -> None:
    log = read(path)
    log._row.cache_clear()
    path.write_text("gone\n")
    panel.reader.view.viewport().repaint()
    qtbot.waitUntil(panel.fault.isVisible, timeout=5000)
    assert "became shorter" in panel.fault.text()


def test_a_file_is_replaced_while_it_is_read(panel: LogSearchPanel, path: Path, tmp_path: Path, qtbot) -> None:
    other = tmp_path / "other.log"
    other.write_text("one line\n")
    panel.open(path)
    panel.open(other)
    qtbot.waitUntil(lambda: panel._log is not None and not panel.opening.busy, timeout=10_000)
    assert panel.strip.name.text == "other.log"
    assert panel.reader.view.count == 1


def test_korean(open_window, path: Path, qtbot) -> None:
    panel = open_window("ko").window.log_search
    panel.open(path)
    qtbot.waitUntil(lambda: panel._log is not None and not panel.opening.busy, timeout=10_000)
    assert panel.strip.facts.text.startswith("300줄")


@pytest.mark.timeout(400)
def test_two_hundred_megabytes(opened: Opened, panel: LogSearchPanel, tmp_path: Path, qtbot) -> None:
    """Opening never holds the window up, memory stays far below the file's size, and jumps are instant."""
    file = tmp_path / "big.log"
    block = log_text(20_000).encode()
    with file.open("wb") as out:
        while out.tell() < 200_000_000:
            out.write(block)
    process = psutil.Process()
    before = process.memory_info().rss
    watchdog = StallWatchdog()
    watchdog.start()
    qtbot.wait(100)
    watchdog.longest = 0.0
    panel.open(file)
    qtbot.waitUntil(lambda: panel._log is not None, timeout=60_000)
    view = panel.reader.view
    qtbot.waitUntil(lambda: panel.work.bar.value() > 20, timeout=60_000)
    slowest = 0.0
    for line in (2_000_000, 7, 1_234_567, 900_001):
        began = time.perf_counter()
        panel.reader.go_to(panel._log.row_of(line))
        view.viewport().repaint()
        slowest = max(slowest, time.perf_counter() - began)
        assert view.current == line - 1
        qtbot.wait(20)
    for _ in range(60):
        began = time.perf_counter()
        view.bar.setValue(view.bar.value() + 3)
        view.viewport().repaint()
        slowest = max(slowest, time.perf_counter() - began)
        qtbot.wait(5)
    watchdog.stop()
    taken = process.memory_info().rss - before
    panel.close_log()
    print(
        f"longest stall {watchdog.longest * 1000:.0f} ms; slowest jump {slowest * 1000:.0f} ms; {taken >> 20} MiB more"
    )
    assert watchdog.longest < 0.1
    assert slowest < 0.1
    assert taken < 200_000_000
