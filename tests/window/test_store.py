"""Conversations and settings on disk."""

from __future__ import annotations

import base64
import json
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from ignis_desktop.store.chat_worker import ChatWorker
from ignis_desktop.store.chats import ChatDatabase, Conversation, Message, MessageTree, Picture
from ignis_desktop.store.export import to_json, to_markdown
from ignis_desktop.store.settings import SettingsFile, WindowSettings


def talk(name: str, title: str, updated: float = 1.0) -> Conversation:
    return Conversation(name, title, 1.0, updated)


def say(name: str, parent: str | None, role: str, text: str, conversation: str = "c") -> Message:
    return Message(name, conversation, parent, role, text, created=float(len(name)))  # type: ignore[arg-type]


@pytest.fixture
def database(tmp_path: Path):
    database = ChatDatabase(tmp_path / "chats.sqlite3")
    yield database
    database.close()


def test_what_was_saved_is_read_back(database: ChatDatabase, tmp_path: Path) -> None:
    kept = Conversation("c", "Título — 제목", 1.0, 2.0, "Be brief.", "greedy", True, "b")
    question = Message("a", "c", None, "user", "What is this?", created=1.0, images=(Picture("x.png", b"\x89PNG"),))
    answer = Message("b", "c", "a", "assistant", "A **log**.", "hm", {"output_tokens": 3}, "", 2.0)
    database.save_conversation(kept)
    database.save_message(question)
    database.save_message(answer)
    again = ChatDatabase(tmp_path / "chats.sqlite3")
    assert again.conversations() == [kept]
    assert again.messages("c") == [question, answer]
    again.close()


def test_saving_again_replaces_the_text_only(database: ChatDatabase) -> None:
    database.save_conversation(talk("c", "t"))
    database.save_message(say("a", None, "user", "one"))
    database.save_message(Message("a", "c", None, "user", "two", error="broken"))
    (message,) = database.messages("c")
    assert (message.content, message.error, message.created) == ("two", "broken", 1.0)


def test_search_takes_wildcards_literally(database: ChatDatabase) -> None:
    for name, title in (("a", "100% sure"), ("b", "1000 things"), ("c", "snake_case"), ("d", "snakeXcase")):
        database.save_conversation(talk(name, title))
    database.save_message(say("m", None, "user", "a needle in a haystack", conversation="b"))
    assert [c.id for c in database.conversations("100%")] == ["a"]
    assert [c.id for c in database.conversations("snake_c")] == ["c"]
    assert [c.id for c in database.conversations("NEEDLE")] == ["b"]
    assert database.conversations("absent") == []


def test_deleted_comes_back_whole_and_goes_with_the_next_start(database: ChatDatabase, tmp_path: Path) -> None:
    database.save_conversation(talk("c", "t"))
    database.save_message(Message("a", "c", None, "user", "x", images=(Picture("p", b"1"),)))
    database.set_deleted("c", True)
    assert database.conversations() == []
    database.set_deleted("c", False)
    assert [c.id for c in database.conversations()] == ["c"]
    assert database.messages("c")[0].images == (Picture("p", b"1"),)
    database.set_deleted("c", True)
    again = ChatDatabase(tmp_path / "chats.sqlite3")
    again.set_deleted("c", False)
    assert again.conversations() == []
    assert again.messages("c") == []
    again.close()


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    ChatDatabase(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version=99")
    with pytest.raises(sqlite3.DatabaseError, match="newer Ignis"):
        ChatDatabase(path)


def test_worker_answers_in_order_and_survives_a_broken_file(tmp_path: Path, qtbot) -> None:
    worker = ChatWorker(tmp_path / "chats.sqlite3")
    worker.call("save_conversation", talk("c", "t"))
    found: list[list[Conversation]] = []
    worker.call("conversations", then=found.append)
    qtbot.waitUntil(lambda: bool(found), timeout=5000)
    assert [c.id for c in found[0]] == ["c"]
    worker.close()
    (tmp_path / "broken.sqlite3").write_bytes(b"this is no database, whatever its name says" * 100)
    faults: list[str] = []
    broken = ChatWorker(tmp_path / "broken.sqlite3")
    broken.failed.connect(faults.append)
    broken.call("conversations", then=found.append)
    qtbot.waitUntil(lambda: bool(faults), timeout=5000)
    assert "not a database" in faults[0]
    broken.close()
    assert len(found) == 1


def test_tree_keeps_every_branch() -> None:
    tree = MessageTree([], None)
    for message in (
        say("q", None, "user", "1"),
        say("a1", "q", "assistant", "2"),
        say("a2", "q", "assistant", "3"),
        say("next", "a1", "user", "4"),
    ):
        tree.add(message)
    assert [m.id for m in tree.branch()] == ["q", "a1", "next"]
    assert [m.id for m in tree.siblings("a1")] == ["a1", "a2"]
    tree.show("a2")
    assert [m.id for m in tree.branch()] == ["q", "a2"]
    tree.show("a1")
    assert [m.id for m in tree.branch()] == ["q", "a1", "next"]
    assert [m.id for m in tree.branch("a1")] == ["q", "a1"]


def test_exports(tmp_path: Path) -> None:
    kept = Conversation("c", "About logs", 1.0, 2.0, system_prompt="Be brief.\nAnd kind.")
    messages = [
        Message("q", "c", None, "user", "What?", images=(Picture("shot.png", b"\x00\xff"),)),
        Message("a", "c", "q", "assistant", "A `log`.", error="It broke."),
    ]
    text = to_markdown(kept, messages)
    assert text.startswith(
        "# About logs\n\n> Be brief.\n> And kind.\n\n## You\n\n*Picture: shot.png*\n\nWhat?\n\n## Answer"
    )
    assert text.endswith("*It broke.*\n")
    data = json.loads(to_json(kept, messages))
    assert data["title"] == "About logs"
    assert base64.b64decode(data["messages"][0]["images"][0]["data"]) == b"\x00\xff"
    assert data["messages"][1]["parent"] == "q"


def test_settings_survive_and_refuse_nonsense(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    settings = SettingsFile(path)
    settings.change(theme="dark", port=8123, lanes=4, api_key="secret")
    assert SettingsFile(path).values == WindowSettings(theme="dark", port=8123, lanes=4, api_key="secret")
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text('{"theme": 3, "port": "8000", "lanes": true, "cors": true, "unknown": 1}', encoding="utf-8")
    assert SettingsFile(path).values == WindowSettings(cors=True)
    path.write_text("{ not json", encoding="utf-8")
    assert SettingsFile(path).values == WindowSettings()
    assert path.with_suffix(".unreadable.json").read_text(encoding="utf-8") == "{ not json"
    with pytest.raises(TypeError):
        settings.change(no_such_setting=1)
