"""The Chat panel on a running engine: what a person does, and what is kept of it."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QImage

from ignis_desktop.engine_thread import Turn
from ignis_desktop.store.chats import ChatDatabase, Conversation, Message, Picture
from ignis_desktop.store.paths import data_dir
from tests.window.conftest import Opened


def png(width: int = 64, height: int = 48) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (width, height), "navy").save(data, "PNG")
    return data.getvalue()


def test_an_answer_streams_and_is_kept(opened: Opened, qtbot) -> None:
    session = opened.chat.session
    opened.chat.composer.set_text("Tell me about logs")
    grown: list[int] = []
    session.message_changed.connect(lambda key: grown.append(len(session.item(key).text)))
    qtbot.keyClick(opened.chat.composer.edit, Qt.Key.Key_Return)
    assert opened.chat.composer.text == ""
    opened.answered()
    question, answer = session.items()
    assert (question.role, question.text) == ("user", "Tell me about logs")
    assert answer.text
    assert len(set(grown)) > 2, "it came in more than one piece"
    assert not answer.streaming
    assert opened.chat.header.title == "Tell me about logs"
    session.toggle("numbers", answer.id)
    numbers = session.items()[-1].numbers
    assert "tok/s" in numbers
    assert "prompt" in numbers
    kept = session.tree[answer.id].numbers
    assert kept["output_tokens"] > 0
    assert kept["reason"] in ("stop", "length")


def test_esc_stops_within_a_moment(opened: Opened, qtbot, long_answers: None) -> None:
    opened.chat.composer.set_text("Go on and on")
    qtbot.keyClick(opened.chat.composer.edit, Qt.Key.Key_Return)
    opened.writing()
    began = time.monotonic()
    qtbot.keyClick(opened.window, Qt.Key.Key_Escape)
    opened.answered(5)
    assert time.monotonic() - began < 2.0
    answer = opened.chat.session.items()[-1]
    assert answer.note == "Stopped."
    assert answer.text
    qtbot.waitUntil(lambda: all(lane.state == "idle" for lane in opened.engine.snapshot.lanes), timeout=2000)


def test_regenerating_keeps_both_answers(opened: Opened) -> None:
    session = opened.chat.session
    first = opened.ask("One")
    text = session.items()[-1].text
    session.set_options("", "creative", False)
    opened.chat.list.action.emit("regenerate", first)
    opened.answered()
    second = session.items()[-1]
    assert second.id != first
    assert second.branch == (2, 2)
    opened.chat.list.action.emit("previous", second.id)
    shown = session.items()[-1]
    assert (shown.id, shown.text, shown.branch) == (first, text, (1, 2))
    opened.chat.list.action.emit("next", first)
    assert session.items()[-1].id == second.id


def test_editing_starts_a_branch_and_loses_nothing(opened: Opened, qtbot) -> None:
    session = opened.chat.session
    opened.ask("First question")
    opened.ask("Second question")
    before = [item.text for item in session.items()]
    opened.chat.list.action.emit("edit", session.items()[0].id)
    assert opened.chat.composer.text == "First question"
    opened.ask("Another first question")
    items = session.items()
    assert items[0].text == "Another first question"
    assert len(items) == 2
    assert items[0].branch == (2, 2)
    opened.chat.list.action.emit("previous", items[0].id)
    assert [item.text for item in session.items()] == before


def test_esc_gives_up_editing(opened: Opened, qtbot) -> None:
    opened.ask("Question")
    opened.chat.list.action.emit("edit", opened.chat.session.items()[0].id)
    qtbot.keyClick(opened.chat.composer.edit, Qt.Key.Key_Escape)
    assert opened.chat.composer.text == ""
    opened.ask("Next")
    assert [item.text for item in opened.chat.session.items()][::2] == ["Question", "Next"]


def test_delete_can_be_undone_whole(opened: Opened, qtbot) -> None:
    session = opened.chat.session
    opened.ask("Keep me")
    before = session.items()
    key = session.current.id
    opened.chat.pane.deleted.emit(key)
    assert session.rows() == []
    assert session.items() == []
    assert "Keep me" in opened.window.toast._text.text()
    opened.window.toast.press()
    assert [row.id for row in session.rows()] == [key]
    assert session.items() == before
    found: list[list[Conversation]] = []
    opened.worker.call("conversations", then=found.append)
    qtbot.waitUntil(lambda: bool(found), timeout=5000)
    assert [one.id for one in found[0]] == [key]


def test_deleting_while_it_is_written_stops_it(opened: Opened, qtbot, long_answers: None) -> None:
    opened.chat.composer.set_text("Go on")
    qtbot.keyClick(opened.chat.composer.edit, Qt.Key.Key_Return)
    opened.writing()
    opened.chat.pane.deleted.emit(opened.chat.session.current.id)
    qtbot.waitUntil(lambda: not opened.chat.session.running_anywhere, timeout=5000)
    opened.window.toast.press()
    assert opened.chat.session.items()[-1].note == "Stopped."


def test_history_survives_a_restart(open_window, qtbot) -> None:
    first = open_window()
    first.chat.session.send("What is this?", [Picture("shot.png", png())])
    first.answered()
    first.chat.session.set_options("Be brief.", "greedy", False)
    first.chat.session.regenerate(first.chat.session.items()[-1].id)
    first.answered()
    first.chat.session.rename(first.chat.session.current.id, "About a picture")
    before = first.chat.session.items()
    again = open_window()
    session = again.chat.session
    qtbot.waitUntil(lambda: bool(session.rows()), timeout=5000)
    assert [row.title for row in session.rows()] == ["About a picture"]
    assert session.items() == []
    session.open(session.rows()[0].id)
    qtbot.waitUntil(lambda: bool(session.items()), timeout=5000)
    assert session.items() == before
    assert session.current.system_prompt == "Be brief."
    assert session.current.preset == "greedy"
    again.ask("And now?")
    assert len(session.items()) == 4


def test_the_window_may_close_while_two_conversations_are_answered(open_window, qtbot, long_answers: None) -> None:
    """What has come is kept, the engine stops writing, and nothing reaches the session that is gone."""
    first = open_window()
    for text in ("One thing", "Another thing"):
        first.chat.session.new()
        first.chat.session.send(text, [])
        first.writing()
    again = open_window()
    qtbot.waitUntil(lambda: len(again.chat.session.rows()) == 2, timeout=5000)
    for row in again.chat.session.rows():
        again.chat.session.open(row.id)
        qtbot.waitUntil(lambda: len(again.chat.session.items()) == 2, timeout=5000)
        assert again.chat.session.items()[-1].text
        assert not again.chat.session.running
    qtbot.waitUntil(lambda: all(lane.state == "idle" for lane in again.engine.snapshot.lanes), timeout=10_000)


def test_an_answer_cut_off_by_the_end_of_the_program_says_so(open_window, qtbot) -> None:
    open_window()
    database = ChatDatabase(data_dir() / "chats.sqlite3")
    database.save_conversation(Conversation("c", "Cut", 1.0, 1.0))
    database.save_message(Message("q", "c", None, "user", "Why?", created=1.0))
    database.save_message(Message("a", "c", "q", "assistant", "Because", created=2.0))
    database.close()
    again = open_window()
    qtbot.waitUntil(lambda: bool(again.chat.session.rows()), timeout=5000)
    again.chat.session.open("c")
    qtbot.waitUntil(lambda: bool(again.chat.session.items()), timeout=5000)
    assert again.chat.session.items()[-1].note == "The program ended before this answer did."


def test_a_pasted_picture_is_checked_and_sent(opened: Opened, qtbot, tmp_path: Path) -> None:
    attachments = opened.chat.composer.attachments
    pasted = QMimeData()
    image = QImage(80, 60, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.darkGreen)
    pasted.setImageData(image)
    opened.chat.composer.edit.insertFromMimeData(pasted)
    qtbot.waitUntil(lambda: len(attachments.pictures) == 1, timeout=10_000)
    broken = tmp_path / "broken.png"
    broken.write_bytes(png()[:60])
    opened.chat.composer.add_files([broken])
    qtbot.waitUntil(lambda: not attachments.waiting, timeout=10_000)
    assert len(attachments.pictures) == 1, "the damaged picture cannot be sent"
    plain = len(opened.chat.session.items())
    opened.ask("What is in it?")
    question = opened.chat.session.items()[plain]
    assert len(question.images) == 1
    tokens = opened.chat.session.tree[opened.chat.session.items()[-1].id].numbers["prompt_tokens"]
    assert tokens > 40, "the picture's tokens are in the prompt"
    assert not attachments.pictures


def test_a_full_context_says_the_counts_and_how_to_go_on(opened: Opened) -> None:
    opened.ask("Short")
    opened.ask("word " * 6000)
    failed = opened.chat.session.items()[-1]
    assert "4,096" in failed.error
    assert failed.mend == "Ask in a new conversation"
    before = opened.chat.session.current.id
    opened.chat.list.action.emit("mend", failed.id)
    opened.answered()
    assert opened.chat.session.current.id != before
    assert opened.chat.session.items()[0].text.startswith("word word")


def test_what_failed_is_not_sent_again(opened: Opened) -> None:
    opened.ask("word " * 6000)
    answer = opened.ask("Short")
    assert opened.chat.session.items()[-1].error, "the long question is still part of the conversation"
    opened.chat.new_conversation()
    answer = opened.ask("Short")
    assert not opened.chat.session.item(answer).error


def test_a_question_in_the_queue_says_that_it_waits(opened: Opened, qtbot, long_answers: None) -> None:
    endless = {"max_tokens": 3000, "ignore_eos": True}
    others = [opened.engine.generate([Turn("user", f"Other {i}")], sampling=endless) for i in range(8)]
    qtbot.waitUntil(lambda: all(lane.state == "decode" for lane in opened.engine.snapshot.lanes), timeout=20_000)
    opened.chat.session.send("And me?")
    qtbot.waitUntil(lambda: opened.chat.session.items()[-1].note == "Waiting for a free lane…", timeout=5000)
    qtbot.waitUntil(lambda: opened.chat.list.items[-1].note == "Waiting for a free lane…", timeout=5000)
    assert "1 waiting" in opened.window.status.text
    others[0].cancel()
    opened.writing()
    for other in others[1:]:
        other.cancel()
    opened.chat.stop()
    opened.answered()


def test_nothing_typed_is_lost_while_a_conversation_is_read(open_window, qtbot) -> None:
    open_window().ask("Before")
    again = open_window()
    qtbot.waitUntil(lambda: bool(again.chat.session.rows()), timeout=5000)
    again.chat.session.open(again.chat.session.rows()[0].id)
    again.chat.composer.set_text("Too early")
    qtbot.keyClick(again.chat.composer.edit, Qt.Key.Key_Return)
    assert again.chat.composer.text == "Too early"
    qtbot.waitUntil(lambda: len(again.chat.session.items()) == 2, timeout=5000)
    again.ask("Now")
    assert again.chat.session.items()[2].text == "Now"


def test_conversations_that_cannot_be_kept_are_said(open_window, qtbot) -> None:
    (data_dir() / "chats.sqlite3").write_bytes(b"no database at all, " * 200)
    opened = open_window()
    qtbot.waitUntil(lambda: "cannot be kept" in opened.window.toast._text.text(), timeout=5000)
    opened.ask("Still answers")
    assert opened.chat.session.items()[-1].text


def test_two_conversations_are_written_at_once(opened: Opened, qtbot) -> None:
    session = opened.chat.session
    session.send("First")
    first = session.current.id
    opened.writing()
    opened.chat.new_conversation()
    session.send("Second")
    assert session.running_anywhere == 2
    assert sum(row.live for row in session.rows()) == 2
    qtbot.waitUntil(lambda: session.running_anywhere == 0, timeout=60_000)
    assert session.items()[-1].text
    session.open(first)
    assert session.items()[0].text == "First"
    assert session.items()[-1].text


def test_presets_reach_the_engine(opened: Opened) -> None:
    session = opened.chat.session
    session.set_options("Be brief.", "greedy", False)
    first = opened.ask("Same")
    one = session.item(first)
    with_system = session.tree[first].numbers["prompt_tokens"]
    session.regenerate(first)
    opened.answered()
    other = session.items()[-1]
    assert other.text == one.text
    opened.chat.new_conversation()
    plain = opened.ask("Same")
    assert with_system != session.tree[plain].numbers["prompt_tokens"], "the system prompt is part of the prompt"


def test_search_finds_titles_and_words(opened: Opened, qtbot) -> None:
    session = opened.chat.session
    opened.ask("Needle")
    opened.chat.new_conversation()
    opened.ask("Hay")
    qtbot.keyClicks(opened.chat.pane.search, "needl")
    qtbot.waitUntil(lambda: [row.title for row in session.rows()] == ["Needle"], timeout=5000)
    opened.chat.pane.search.clear()
    qtbot.waitUntil(lambda: len(session.rows()) == 2, timeout=5000)


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_export(opened: Opened, tmp_path: Path, form: str) -> None:
    opened.ask("Export this")
    answer = opened.chat.session.items()[-1].text
    path = tmp_path / "talk"
    opened.chat.write_export(opened.chat.session.current.id, form, path)
    text = path.read_bytes().decode()
    if form == "json":
        assert json.loads(text)["messages"][-1]["content"] == answer
    else:
        assert text.startswith("# Export this")
        assert answer in text
    assert opened.window.toast._text.text() == "Saved as talk."
    opened.chat.write_export(opened.chat.session.current.id, form, tmp_path / "no" / "such" / "folder")
    assert "could not be written" in opened.window.toast._text.text()


def test_copy_takes_the_markdown(opened: Opened, qapp) -> None:
    answer = opened.ask("Copy")
    opened.chat.list.action.emit("copy", answer)
    assert qapp.clipboard().text() == opened.chat.session.item(answer).text


def test_a_stored_chat_of_500_messages_opens_fast(open_window, qtbot, qapp) -> None:
    open_window()
    database = ChatDatabase(data_dir() / "chats.sqlite3")
    database.save_conversation(Conversation("c", "Long", 1.0, 1.0, head="m499"))
    for i in range(500):
        role = "assistant" if i % 2 else "user"
        text = f"Message {i}\n\n```python\nprint({i})\n```\n\nand some words about it." if i % 2 else f"Question {i}"
        parent = f"m{i - 1}" if i else None
        database.save_message(Message(f"m{i}", "c", parent, role, text, created=float(i), numbers={"reason": "stop"}))
    database.close()
    again = open_window()
    qtbot.waitUntil(lambda: bool(again.chat.session.rows()), timeout=5000)
    began = time.perf_counter()
    again.chat.session.open("c")
    qtbot.waitUntil(lambda: len(again.chat.list.items) == 500, timeout=10_000)
    qapp.processEvents()
    seconds = time.perf_counter() - began
    print(f"500 messages shown after {seconds * 1000:.0f} ms")
    assert seconds < 2.0
    assert again.chat.list.at_end
    assert again.chat.list.widgets_alive < 20
