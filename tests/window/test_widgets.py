"""Composer, conversation list, palette, switches."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from ignis_desktop.widgets.buttons import Select, Switch
from ignis_desktop.widgets.command_palette import Command, CommandPalette, match
from ignis_desktop.widgets.composer import Composer
from ignis_desktop.widgets.conversation_list import ConversationPane, ConversationRow, when
from ignis_desktop.widgets.request_table import RequestRow, RequestTable
from ignis_desktop.widgets.toast import Toast


@pytest.fixture
def composer(qtbot) -> Composer:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.resize(700, 60)
    composer.show()
    composer.set_state(ready=True, busy=False)
    return composer


def picture(width: int = 40, height: int = 30) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor("#3366cc"))
    return image


def test_enter_sends_and_shift_enter_does_not(composer: Composer, qtbot) -> None:
    qtbot.keyClicks(composer.edit, "hello")
    with qtbot.waitSignal(composer.sent):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    with qtbot.assertNotEmitted(composer.sent):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert composer.text == "hello\n"


def test_nothing_is_sent_when_empty_or_busy(composer: Composer, qtbot) -> None:
    with qtbot.assertNotEmitted(composer.sent):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
        composer.set_text("hello")
        composer.set_state(ready=True, busy=True)
        qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
        composer.set_state(ready=True, busy=False)
    assert composer.text == "hello"


def test_what_is_sent_too_early_goes_when_the_model_is_ready(composer: Composer, qtbot) -> None:
    composer.set_state(ready=False, busy=False)
    composer.set_text("hello")
    with qtbot.waitSignal(composer.waiting), qtbot.assertNotEmitted(composer.sent):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    with qtbot.waitSignal(composer.sent):
        composer.set_state(ready=True, busy=False)
    composer.set_state(ready=False, busy=False)
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    composer.set_text("hello, changed")
    with qtbot.assertNotEmitted(composer.sent):
        composer.set_state(ready=True, busy=False)


def test_it_grows_to_eight_lines_and_then_scrolls(composer: Composer, qapp: QApplication) -> None:
    heights = []
    for lines in (1, 4, 8, 20):
        composer.set_text("\n".join(["line"] * lines))
        qapp.processEvents()
        heights.append(composer.edit.height())
    assert heights[0] < heights[1] < heights[2] == heights[3]


def test_pictures_come_by_paste_drop_and_file(composer: Composer, tmp_path: Path, qtbot) -> None:
    added: list[tuple[int, object]] = []
    composer.image_added.connect(lambda token, one: added.append((token, one)))
    pasted = QMimeData()
    pasted.setImageData(picture())
    composer.edit.insertFromMimeData(pasted)
    path = tmp_path / "shot.png"
    picture(64, 64).save(str(path))
    dropped = QMimeData()
    dropped.setUrls([QUrl.fromLocalFile(str(path))])
    qtbot.waitUntil(lambda: len(added) == 1, timeout=5000)
    composer.edit.insertFromMimeData(dropped)
    assert [one.name for _, one in added] == ["Pasted picture", "shot.png"]
    assert added[1][1].data == path.read_bytes()
    assert composer.attachments.waiting
    composer.set_text("what is this?")
    with qtbot.assertNotEmitted(composer.sent):
        composer.try_send()
    composer.attachments.settle(added[0][0], "")
    composer.attachments.settle(added[1][0], "It is damaged.")
    assert [one.name for one in composer.attachments.pictures] == ["Pasted picture"]
    with qtbot.waitSignal(composer.sent):
        composer.try_send()


def test_other_files_are_refused_with_a_sentence(composer: Composer, tmp_path: Path, qtbot) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("x", encoding="utf-8")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    with qtbot.waitSignal(composer.refused) as heard:
        composer.edit.insertFromMimeData(data)
    assert heard.args[0].startswith("notes.txt is not a picture")
    with qtbot.waitSignal(composer.refused) as heard:
        composer.add_files([tmp_path / "gone.png"])
    assert "cannot be read" in heard.args[0]
    assert composer.text == ""


def test_pasted_text_loses_its_format(composer: Composer) -> None:
    data = QMimeData()
    data.setHtml("<b>bold</b>")
    data.setText("bold")
    composer.edit.insertFromMimeData(data)
    assert composer.text == "bold"
    assert "font-weight:700" not in composer.edit.toHtml()


def test_list_selects_renames_and_deletes(qtbot, qapp: QApplication) -> None:
    pane = ConversationPane()
    qtbot.addWidget(pane)
    pane.resize(248, 400)
    pane.show()
    pane.set_rows([ConversationRow("a", "First", 2.0), ConversationRow("b", "Second", 1.0, live=True)], "a")
    with qtbot.waitSignal(pane.selected) as heard:
        point = pane.view.visualRect(pane.view.model().index(1, 0)).center()
        qtbot.mouseClick(pane.view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert heard.args == ["b"]
    pane.rename("b")
    editor = pane.view.findChild(QLineEdit)
    editor.setText("  Renamed\n now ")
    with qtbot.waitSignal(pane.renamed) as heard:
        qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert heard.args == ["b", "Renamed now"]
    with qtbot.waitSignal(pane.deleted) as heard:
        qtbot.keyClick(pane.view, Qt.Key.Key_Delete)
    assert heard.args == ["b"]


def test_search_waits_for_the_typing_to_pause(qtbot) -> None:
    pane = ConversationPane()
    qtbot.addWidget(pane)
    heard: list[str] = []
    pane.searched.connect(heard.append)
    qtbot.keyClicks(pane.search, "log")
    qtbot.waitUntil(lambda: heard == ["log"], timeout=3000)


def test_times_are_said_as_people_do() -> None:
    now = datetime(2026, 3, 2, 12, 0)
    assert when(datetime(2026, 3, 2, 9, 5).timestamp(), now) == "09:05"
    assert when(datetime(2026, 3, 1, 23, 59).timestamp(), now) == "Yesterday"
    assert when(datetime(2025, 12, 31).timestamp(), now) == "2025-12-31"


def test_palette_finds_runs_and_closes(qtbot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.resize(900, 600)
    parent.show()
    palette = CommandPalette(parent)
    ran: list[str] = []
    names = ("New conversation", "Go to Server", "Go to Settings", "Switch to the dark theme")
    palette.open([Command(name, lambda name=name: ran.append(name)) for name in names])
    qtbot.keyClicks(palette.edit, "gset")
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert ran == ["Go to Settings"]
    assert not palette.isVisible()
    palette.open([Command(name, lambda name=name: ran.append(name)) for name in names])
    qtbot.keyClick(palette.edit, Qt.Key.Key_Down)
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert ran[-1] == "Go to Server"
    palette.open([])
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    qtbot.keyClick(palette.edit, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    assert len(ran) == 2


def test_matching() -> None:
    assert match("", "anything") == 0
    assert match("xyz", "Go to Server") is None
    assert match("server", "Go to Server") < match("srv", "Go to Server")  # type: ignore[operator]


def test_toast_runs_its_action_once(qtbot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.resize(600, 400)
    parent.show()
    toast = Toast(parent)
    ran: list[int] = []
    toast.say("Deleted.", "Undo", lambda: ran.append(1))
    assert toast.isVisible()
    assert parent.rect().contains(toast.geometry())
    qtbot.mouseClick(toast._action, Qt.MouseButton.LeftButton)
    toast.press()
    assert ran == [1]
    assert not toast.isVisible()


def test_select_and_switch(qtbot) -> None:
    select = Select([("a", "Alpha"), ("b", "Beta")], "b")
    qtbot.addWidget(select)
    with qtbot.waitSignal(select.chosen) as heard:
        select.menu().actions()[0].trigger()
    assert heard.args == ["a"]
    assert select.text() == "Alpha"
    switch = Switch("LAN")
    qtbot.addWidget(switch)
    switch.show()
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton, pos=QPoint(20, 14))
    assert switch.isChecked()


def row(number: int, status: int | None = 200) -> RequestRow:
    return RequestRow(number, 0.0, "POST", "/v1/chat/completions", "127.0.0.1", status, 12.0, "", 5, 0, 7, 9.0, "")


def test_request_table_keeps_its_place(qtbot) -> None:
    table = RequestTable()
    qtbot.addWidget(table)
    table.resize(800, 200)
    table.show()
    table.show_rows([row(i) for i in range(1, 51)])
    model = table.requests
    assert model.index(0, 1).data() == "POST /v1/chat/completions"
    table.selectRow(10)
    kept = table.currentIndex().data()
    resets: list[int] = []
    model.modelReset.connect(lambda: resets.append(1))
    table.show_rows([row(i) for i in range(5, 51)] + [row(51, None)])
    assert model.rowCount() == 47
    assert table.currentIndex().row() == 11
    assert table.currentIndex().data() == kept
    assert model.index(0, 4).data() == "running"
    table.show_rows([row(i) for i in range(5, 52)])
    assert model.index(0, 4).data() == "200"
    assert not resets
    table.show_rows([])
    assert model.rowCount() == 0
