"""The window under test: no display, files of its own, no Qt warning, nothing left behind."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import torch  # noqa: F401 - before PySide6, as in ignis_desktop.app
import pytest
from PySide6.QtCore import QEvent, QThreadPool, QtMsgType
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from ignis_desktop.widgets import texts, thumbnails
from ignis_desktop.widgets.theme import Theme


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing a test does touches the user's files."""
    monkeypatch.setenv("IGNIS_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("IGNIS_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path


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
