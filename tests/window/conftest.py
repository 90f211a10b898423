"""The window under test: no display, files of its own, no Qt warning, nothing left behind."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
import torch  # noqa: F401 - before PySide6, as in ignis_desktop.app
from PySide6.QtCore import QEvent, Qt, QThreadPool, QtMsgType
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from engine.config import EngineConfig
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.panels.chat import ChatPanel
from ignis_desktop.panels.presets import PRESETS
from ignis_desktop.panels.window import MainWindow
from ignis_desktop.server_control import ServerControl
from ignis_desktop.store.chat_worker import ChatWorker
from ignis_desktop.store.paths import data_dir
from ignis_desktop.store.settings import SettingsFile
from ignis_desktop.widgets import texts, thumbnails
from ignis_desktop.widgets.theme import Theme


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing a test does touches the user's files."""
    monkeypatch.setenv("IGNIS_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("IGNIS_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def what_was_there_before() -> None:
    """Objects of modules and of other tests' fixtures are not looked through again after every test of a window."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_left(qapp: QApplication) -> Iterator[None]:
    """After a test its widgets and its threads are gone."""
    threads = set(threading.enumerate())
    widgets = set(map(id, qapp.topLevelWidgets()))
    yield
    thumbnails.close_shared()
    settle(qapp)
    left = [w for w in qapp.topLevelWidgets() if id(w) not in widgets]
    assert not left, f"widgets left behind: {left}"
    late = [t for t in threading.enumerate() if t not in threads and t.is_alive() and not t.name.startswith("Dummy")]
    assert not late, f"threads left behind: {late}"
    assert QThreadPool.globalInstance().activeThreadCount() == 0


@pytest.fixture(autouse=True)
def no_qt_warnings(nothing_left: None, qtlog) -> Iterator[None]:
    """A Qt warning fails the test that caused it."""
    yield
    harmless = (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg)
    # The offscreen platform says this of every window with a size limit.
    bad = [r for r in qtlog.records if r.type not in harmless and "propagateSizeHints" not in r.message]
    assert not bad, [r.message for r in bad]


@pytest.fixture(autouse=True)
def light_english(qapp: QApplication) -> Theme:
    texts.use_language("en")
    theme = Theme.of(qapp)
    theme.apply("light")
    return theme


@pytest.fixture
def theme(light_english: Theme) -> Theme:
    return light_english


def settle(app: QApplication) -> None:
    """Deletes what was to be deleted later."""
    for _ in range(3):
        app.processEvents()
        app.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()


@pytest.fixture
def settled(qapp: QApplication, qtbot: QtBot):
    return lambda: settle(qapp)


ANSWER = 64
"""Tokens of an answer, unless a test asks for more."""


# The window around a real engine with a tiny model: every answer is noise, but it streams, ends and can be stopped.


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.tiny import write_tiny

    return write_tiny(tmp_path_factory.mktemp("window") / "tiny", context=4096)


@pytest.fixture(scope="session")
def engine_thread(qapp: QApplication, tiny_model: Path) -> Iterator[EngineThread]:
    thread = EngineThread(EngineConfig(model=tiny_model, threads=1, dtype="float32", generation_cap=ANSWER))
    thread.start()
    # Its pool's threads live as long as it does: start them before a test counts threads.
    barrier = threading.Barrier(3)
    for _ in range(2):
        thread._pool.submit(barrier.wait)
    barrier.wait()
    thread.jobs.warm()
    thread.engine.wait_ready(60)
    yield thread
    assert thread.stop()


@dataclass
class Opened:
    """A window and what it stands on."""

    window: MainWindow
    engine: EngineThread
    server: ServerControl
    worker: ChatWorker
    settings: SettingsFile
    qtbot: QtBot

    @property
    def chat(self) -> ChatPanel:
        return self.window.chat

    def ask(self, text: str, seconds: float = 30) -> str:
        """Types a question, sends it, waits for the answer's end; returns the answer's id."""
        self.chat.composer.set_text(text)
        self.qtbot.keyClick(self.chat.composer.edit, Qt.Key.Key_Return)
        self.answered(seconds)
        return self.chat.session.items()[-1].id

    def answered(self, seconds: float = 30) -> None:
        self.qtbot.waitUntil(lambda: not self.chat.session.running, timeout=int(seconds * 1000))

    def writing(self) -> None:
        """Waits until the answer has begun."""
        self.qtbot.waitUntil(lambda: bool(self.chat.session.items()[-1].text), timeout=20_000)


@pytest.fixture
def open_window(engine_thread: EngineThread, theme: Theme, qtbot: QtBot, qapp: QApplication):
    """Opens windows on the same files, one after the other."""
    opened: list[Opened] = []

    def close(one: Opened) -> None:
        one.window.close()
        one.chat.stop()
        one.answered()
        one.chat.session.close()
        one.server.close()
        one.worker.close()
        one.window.deleteLater()
        settle(qapp)

    def open_one(language: str = "en") -> Opened:
        while opened:
            close(opened.pop())
        texts.use_language(language)
        settings = SettingsFile()
        server = ServerControl(engine_thread.engine, settings.values)
        worker = ChatWorker(data_dir() / "chats.sqlite3")
        window = MainWindow(engine_thread, server, worker, settings, theme)
        window.show()
        one = Opened(window, engine_thread, server, worker, settings, qtbot)
        opened.append(one)
        window.show_snapshot(engine_thread.snapshot)
        return one

    yield open_one
    while opened:
        close(opened.pop())


@pytest.fixture
def long_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that do not end by themselves within a test."""
    monkeypatch.setitem(PRESETS, "model", {"max_tokens": 3000, "ignore_eos": True})


@pytest.fixture
def opened(open_window) -> Opened:
    return open_window()
