"""The Screen panel: pictures in, questions, the mark, the list, watching, and what may go wrong on the way.

The tiny model answers noise, but where it says something is, how sure it is and how long it took are real.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QImage
from PySide6.QtWidgets import QApplication

from engine.config import EngineConfig
from engine.messages import EngineError
from engine.model.decoder import Decoder
from ignis_desktop import screen_picture
from ignis_desktop.app import Desktop
from ignis_desktop.capture.change import Thumbnail
from ignis_desktop.capture.coordinates import CoordinateMap, Rect, Tile
from ignis_desktop.capture.grabbing import (
    CaptureError,
    Monitor,
    MonitorTarget,
    RegionTarget,
    Shot,
    Target,
    Window,
    WindowTarget,
)
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.panels import screen_sources, screen_watch
from ignis_desktop.panels.screen import ScreenPanel
from ignis_desktop.panels.screen_session import ScreenSession
from ignis_desktop.screen_picture import Picture
from ignis_desktop.store.settings import SettingsFile
from tests.window.conftest import Opened


class Grabber:
    """A desktop with two monitors of 320 × 192 and one window; ``colour`` is what it shows."""

    def __init__(self) -> None:
        self.colour = "steelblue"
        self.grabbed: list[Target] = []
        self.origin = 0.0
        self.fault: CaptureError | None = None
        self.watchable = True

    def monitors(self) -> list[Monitor]:
        if self.fault is not None:
            raise self.fault
        return [
            Monitor(1, "DP-1", Rect(0, 0, 320, 192), True),
            Monitor(2, "DP & 2", Rect(-320, 0, 320, 192)),
        ]

    def windows(self) -> list[Window]:
        return [Window(5, "Reports & more", Rect(10, 10, 160, 96))]

    def grab(self, target: Target) -> Shot:
        self.grabbed.append(target)
        if self.fault is not None:
            raise self.fault
        area = Rect(self.origin, 0, 320, 192)
        if isinstance(target, RegionTarget):
            area = target.area
        elif isinstance(target, WindowTarget):
            area = Rect(10, 10, 160, 96)
        size = round(area.width), round(area.height)
        return Shot(Image.new("RGB", size, self.colour), CoordinateMap.of_region(*size, area))


@pytest.fixture
def grabber(monkeypatch: pytest.MonkeyPatch) -> Grabber:
    made = Grabber()
    monkeypatch.setattr(screen_picture, "choose_grabber", lambda _layout, _cancelled: made)
    monkeypatch.setattr(screen_sources, "ASIDE_MS", 1)
    return made


@pytest.fixture
def panel(opened: Opened, grabber: Grabber) -> ScreenPanel:
    opened.window.show_panel("screen")
    return opened.window.screens


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    """A picture of 320 × 192 pixels with a button on it."""
    picture = Image.new("RGB", (320, 192), "white")
    picture.paste("teal", (200, 120, 280, 160))
    file = tmp_path / "shot.png"
    picture.save(file)
    return file


def read(panel: ScreenPanel, qtbot) -> None:
    qtbot.waitUntil(lambda: panel.session.stage == "ready", timeout=20_000)


def ask(panel: ScreenPanel, qtbot, question: str) -> None:
    panel.bar.edit.setText(question)
    qtbot.keyClick(panel.bar.edit, Qt.Key.Key_Return)
    answered(panel, qtbot)


def answered(panel: ScreenPanel, qtbot) -> None:
    qtbot.waitUntil(lambda: panel.session.shown is not None and not panel.session.shown.waiting, timeout=20_000)


def detail(panel: ScreenPanel) -> str:
    return panel.bar._detail.text


# Pictures


def test_the_empty_panel_offers_one_thing(panel: ScreenPanel, grabber: Grabber, qtbot) -> None:
    assert panel._pages.currentWidget() is panel.empty
    assert panel.empty._button.text() == "Capture this screen"
    qtbot.mouseClick(panel.empty._button, Qt.MouseButton.LeftButton)
    assert panel.window().isHidden()  # it would be in the picture
    read(panel, qtbot)
    assert panel.window().isVisible()
    assert grabber.grabbed == [MonitorTarget(1)]
    assert panel._pages.currentWidget() is not panel.empty
    assert panel.header._subject.text().startswith("Monitor 1 · 320 × 192 · ")
    assert "Each question now takes only a moment" in detail(panel)
    assert not panel.bar.copy.isVisible()


def test_a_file_is_read_and_asked(panel: ScreenPanel, shot: Path, qtbot) -> None:
    panel.session.open_file(shot)
    read(panel, qtbot)
    ask(panel, qtbot, "the button")
    asked = panel.session.shown
    assert asked is not None
    assert asked.answer is not None
    assert panel.bar.edit.text() == ""
    x, y = asked.desktop
    assert 0 <= x < 320
    assert 0 <= y < 192
    mark = panel.view._mark
    assert mark is not None
    assert (mark.x, mark.y) == asked.answer.pixels
    assert mark.radius == asked.answer.uncertainty
    assert panel.bar._place.text() == f"{x}, {y}"
    assert "sure · ±" in detail(panel)
    (row,) = panel.questions.rows
    assert (row.question, row.outcome) == ("the button", f"{x}, {y}")
    assert row.detail.endswith("ms")


def test_a_question_waits_for_the_picture(panel: ScreenPanel, shot: Path, qtbot) -> None:
    panel.session.open_file(shot)
    qtbot.waitUntil(lambda: panel.session.picture is not None, timeout=10_000)
    panel.session.ask("the button")
    answered(panel, qtbot)
    assert panel.session.shown.answer is not None


def test_pictures_are_dropped_and_pasted(panel: ScreenPanel, shot: Path, qtbot, qapp: QApplication) -> None:
    dropped = QMimeData()
    dropped.setUrls([QUrl.fromLocalFile(str(shot))])
    actions, buttons = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    panel.dropEvent(QDropEvent(QPointF(5, 5), actions, dropped, buttons, Qt.KeyboardModifier.NoModifier))
    read(panel, qtbot)
    assert panel.session.picture.path == shot
    image = QImage(90, 60, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    qapp.clipboard().setImage(image)
    qtbot.keyClick(panel.view, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: panel.session.picture.image.size == (90, 60), timeout=10_000)
    assert panel.session.picture.image.getpixel((0, 0)) == (255, 255, 255)
    larger = image.scaled(120, 60)
    qapp.clipboard().setImage(larger)
    panel.bar.edit.setFocus()
    qtbot.keyClick(panel.bar.edit, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: panel.session.picture.image.size == (120, 60), timeout=10_000)
    qapp.clipboard().setText("no picture")
    qtbot.keyClick(panel.bar.edit, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert panel.bar.edit.text() == "no picture"
    panel.paste()
    assert "no picture to paste" in panel._toast._text.text()


def test_files_that_are_no_pictures(panel: ScreenPanel, tmp_path: Path, qtbot) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("words")
    for path, words in ((text, "no picture that can be read"), (tmp_path / "gone.png", "cannot be read")):
        panel.session.open_file(path)
        qtbot.waitUntil(lambda words=words: words in panel._toast._text.text(), timeout=10_000)
        assert panel.session.stage == "empty"


def test_only_the_last_of_several_pictures_stays(panel: ScreenPanel, shot: Path, qtbot, tmp_path: Path) -> None:
    last = tmp_path / "last.png"
    Image.new("RGB", (160, 96), "white").save(last)
    retained = panel._engine.snapshot.retained
    for path in (shot, shot, last):
        panel.session.open_file(path)
    read(panel, qtbot)
    panel.session.open_file(shot)
    qtbot.waitUntil(lambda: panel.session.picture.name == "shot.png", timeout=10_000)
    panel.session.open_file(last)
    qtbot.waitUntil(lambda: panel.session.picture.name == "last.png", timeout=10_000)
    read(panel, qtbot)
    qtbot.waitUntil(lambda: panel._engine.snapshot.retained == retained + 1, timeout=10_000)
    panel.close_screen()
    qtbot.waitUntil(lambda: panel._engine.snapshot.retained == retained, timeout=10_000)


def test_stopping_the_reading(panel: ScreenPanel, shot: Path, qtbot, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    prepare = panel._engine.engine.prepare_image

    def slow(image: object) -> object:
        held.wait(20)
        return prepare(image)

    monkeypatch.setattr(panel._engine.engine, "prepare_image", slow)
    panel.session.open_file(shot)
    qtbot.waitUntil(lambda: panel.session.stage == "encoding", timeout=10_000)
    assert panel.bar.work.isVisible()
    panel.session.ask("the button")
    qtbot.keyClick(panel.window(), Qt.Key.Key_Escape)
    held.set()
    qtbot.waitUntil(lambda: panel.session.stage == "failed", timeout=20_000)
    assert "stopped" in panel.bar._fault_text.text()
    assert panel.session.asked == []
    qtbot.mouseClick(panel.bar._mend, Qt.MouseButton.LeftButton)
    read(panel, qtbot)
    assert panel.bar._fault.isHidden()


# Asking


def test_the_list_shows_an_answer_again(panel: ScreenPanel, shot: Path, qtbot) -> None:
    panel.session.open_file(shot)
    read(panel, qtbot)
    for question in ("the button", "the white area"):
        ask(panel, qtbot, question)
    first, second = panel.session.asked
    assert panel.session.shown is second
    view = panel.questions.view
    assert view.currentIndex().row() == 1
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(40, 20))
    assert panel.session.shown is first
    assert panel.view._mark.x == first.answer.pixels[0]
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert panel.session.shown is second


def test_not_found_has_no_mark(panel: ScreenPanel, shot: Path, qtbot) -> None:
    panel.session.open_file(shot)
    read(panel, qtbot)
    ask(panel, qtbot, "a rocket")
    asked = panel.session.shown
    asked.answer = replace(asked.answer, found=False)
    panel.session.changed.emit()
    assert panel.view._mark is None
    assert panel.bar._place.text() == "Not on this screen"
    assert "“a rocket”" in detail(panel)
    assert not panel.bar.copy.isVisible()
    assert panel.questions.rows[0].outcome == "not found"


def test_a_question_that_fails_is_asked_again(panel: ScreenPanel, shot: Path, qtbot, monkeypatch) -> None:
    panel.session.open_file(shot)
    read(panel, qtbot)

    def refuse(*_: object, **__: object) -> None:
        raise EngineError("The queue is full.")

    with monkeypatch.context() as patch:
        patch.setattr(panel.session._screen, "point", refuse)
        ask(panel, qtbot, "the button")
    assert panel.bar._fault_text.text() == "The queue is full."
    assert panel.questions.rows[0].outcome == "Not answered"
    qtbot.mouseClick(panel.bar._mend, Qt.MouseButton.LeftButton)
    answered(panel, qtbot)
    assert panel.session.shown.answer is not None


def test_heat_is_shown_by_a_key(panel: ScreenPanel, shot: Path, qtbot) -> None:
    panel.session.open_file(shot)
    read(panel, qtbot)
    ask(panel, qtbot, "the button")
    answer = panel.session.shown.answer
    assert panel.view._heat.size().toTuple() == answer.heat.shape[::-1]
    row, column = divmod(int(answer.heat.argmax()), answer.heat.shape[1])
    assert panel.view._heat.pixelColor(column, row).red() == 215
    panel.view.set_mark(None)
    plain = panel.view.grab().toImage()
    panel.view.setFocus()
    qtbot.keyClick(panel.view, Qt.Key.Key_H)
    assert panel.bar.heat.isChecked()
    assert panel.view.grab().toImage() != plain
    panel.bar.edit.setFocus()
    qtbot.keyClick(panel.bar.edit, Qt.Key.Key_H)
    assert panel.bar.edit.text() == "h"
    assert panel.bar.heat.isChecked()


def test_answers_are_copied(panel: ScreenPanel, opened: Opened, qtbot, qapp: QApplication) -> None:
    panel.sources.take(RegionTarget(Rect(-100, 20, 160, 96)), "Region")
    read(panel, qtbot)
    ask(panel, qtbot, "the “Save” button")
    x, y = panel.session.shown.desktop
    assert -100 <= x < 60
    panel.copy("coordinates")
    assert qapp.clipboard().text() == f"{x} {y}"
    panel.copy("Python")
    code = qapp.clipboard().text()
    compile(code, "snippet", "exec")
    assert "{'region': [-100, 20, 160, 96]}" in code
    assert f'base_url="{opened.window.server.base_url()}"' in code
    names = [action.text() for action in panel.bar._menu.actions()]
    assert names[:2] == ["Copy coordinates", "Copy as Python"]


# Capturing


def test_the_menu_lists_what_there_is(panel: ScreenPanel, grabber: Grabber, qtbot) -> None:
    sources = screen_picture.list_sources((), own=0)
    menu = panel.sources.menu(sources)
    texts = [action.text() for action in menu.actions() if action.text()]
    assert texts == [
        "Monitor 1 · DP-1 · 320 × 192", "Monitor 2 · DP && 2 · 320 × 192", "All monitors", "A region…", "A window",
        "Hide this window meanwhile",
    ]  # fmt: skip
    windows = menu.actions()[5].menu()
    assert [action.text() for action in windows.actions()] == ["Reports && more"]
    menu.actions()[-1].trigger()
    assert not panel.sources.stands_aside
    windows.actions()[0].trigger()
    assert panel.window().isVisible()
    read(panel, qtbot)
    assert grabber.grabbed == [WindowTarget("Reports & more", 5)]
    menu.deleteLater()
    own = screen_picture.list_sources((), own=5)
    assert own.windows == ()


def test_a_refused_capture_is_said(panel: ScreenPanel, grabber: Grabber, qtbot) -> None:
    grabber.fault = CaptureError("Nothing was captured: the capture was declined.", "capture_refused")
    panel.sources.take_first()
    qtbot.waitUntil(lambda: "declined" in panel._toast._text.text(), timeout=10_000)
    assert panel.window().isVisible()
    assert panel.session.stage == "empty"
    assert panel.take.isEnabled()
    panel._toast._text.clear()
    panel.sources.open_menu(panel.take)
    qtbot.waitUntil(lambda: "declined" in panel._toast._text.text(), timeout=10_000)


def test_a_region_is_drawn(panel: ScreenPanel, grabber: Grabber, qtbot) -> None:
    panel.sources.pick_region()
    qtbot.waitUntil(lambda: panel.sources.picker is not None, timeout=10_000)
    (still,) = panel.sources.picker.windows
    qtbot.waitExposed(still)
    across, down = still.width() / 320, still.height() / 192
    start, end = QPoint(round(32 * across), round(19 * down)), QPoint(round(160 * across), round(96 * down))
    qtbot.mousePress(still, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(still, end)
    assert not still.grab().toImage().isNull()
    qtbot.mouseRelease(still, Qt.MouseButton.LeftButton, pos=end)
    read(panel, qtbot)
    assert panel.window().isVisible()
    width, height = panel.session.picture.image.size
    assert (width, height) == pytest.approx((128, 77), abs=2)
    area = panel.session.picture.target.area
    assert (area.x, area.y) == pytest.approx((32, 19), abs=2)
    assert (area.width, area.height) == (width, height)


def test_a_region_by_keys_or_not_at_all(panel: ScreenPanel, qtbot) -> None:
    def picker():
        panel.sources.pick_region()
        qtbot.waitUntil(lambda: panel.sources.picker is not None, timeout=10_000)
        return panel.sources.picker.windows[0]

    still = picker()
    qtbot.keyClick(still, Qt.Key.Key_Escape)
    assert panel.sources.picker is None
    assert panel.session.picture is None
    still = picker()
    qtbot.mouseClick(still, Qt.MouseButton.LeftButton, pos=QPoint(9, 9))  # no rectangle: it stays open
    assert panel.sources.picker is not None
    still.area = still.area.__class__()
    qtbot.keyClick(still, Qt.Key.Key_Right)
    centred = still.area.center()
    qtbot.keyClick(still, Qt.Key.Key_Right)
    qtbot.keyClick(still, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert still.area.center().x() == centred.x() + 8
    assert still.area.height() == still.height() / 2 + 8
    qtbot.keyClick(still, Qt.Key.Key_Return)
    read(panel, qtbot)
    assert panel.session.picture.image.width == pytest.approx(160, abs=1)


# Watching


@pytest.fixture
def watched(panel: ScreenPanel, qtbot, monkeypatch: pytest.MonkeyPatch) -> ScreenPanel:
    monkeypatch.setattr(screen_watch, "window_area", lambda _window: None)
    panel.watcher._timer.setInterval(10)
    panel.sources.take_first()
    read(panel, qtbot)
    ask(panel, qtbot, "the button")
    panel.watch.click()
    assert panel.watcher.on
    return panel


def test_a_screen_that_changes_is_read_again(watched: ScreenPanel, grabber: Grabber, qtbot) -> None:
    before, asked = watched.session.picture, watched.session.shown
    answer = asked.answer
    count = len(grabber.grabbed)
    qtbot.waitUntil(lambda: len(grabber.grabbed) > count + 2, timeout=20_000)
    assert watched.session.picture is before  # nothing has changed
    grabber.colour = "tomato"
    qtbot.waitUntil(lambda: watched.session.picture is not before, timeout=20_000)
    assert watched.watcher.on
    qtbot.waitUntil(lambda: asked.answer is not None and asked.answer is not answer, timeout=20_000)
    assert watched.session.shown is asked
    assert not asked.stale


def test_what_was_asked_of_an_earlier_picture_is_asked_again(watched: ScreenPanel, grabber: Grabber, qtbot) -> None:
    ask(watched, qtbot, "the corner")
    before, first = watched.session.picture, watched.session.asked[0]
    grabber.colour = "tomato"
    qtbot.waitUntil(lambda: watched.session.picture is not before, timeout=20_000)
    read(watched, qtbot)
    answered(watched, qtbot)
    assert first.stale
    assert watched.questions.rows[0].outcome == "on an earlier picture"
    watched.session.select(first.number)
    answered(watched, qtbot)
    assert not first.stale
    assert first.answer is not None


def test_a_window_that_moves_keeps_its_answers(watched: ScreenPanel, grabber: Grabber, qtbot) -> None:
    asked = watched.session.shown
    x, y = asked.desktop
    grabber.origin = 1000.0
    qtbot.waitUntil(lambda: asked.desktop == (x + 1000, y), timeout=20_000)
    qtbot.waitUntil(lambda: watched.bar._place.text() == f"{x + 1000}, {y}", timeout=5000)


def test_watching_ends_with_the_capture(watched: ScreenPanel, grabber: Grabber, shot: Path, qtbot) -> None:
    grabber.fault = CaptureError("The display is gone.")
    qtbot.waitUntil(lambda: not watched.watcher.on, timeout=20_000)
    assert "The display is gone." in watched._toast._text.text()
    assert not watched.watch.isChecked()
    grabber.fault = None
    watched.watch.click()
    watched.session.open_file(shot)
    qtbot.waitUntil(lambda: watched.session.picture.path == shot, timeout=10_000)
    assert not watched.watcher.on
    assert not watched.watch.isEnabled()


def test_the_own_window_is_not_read(watched: ScreenPanel, grabber: Grabber, qtbot, monkeypatch) -> None:
    monkeypatch.setattr(screen_watch, "window_area", lambda _window: Rect(-10, -10, 400, 400))
    before, count = watched.session.picture, len(grabber.grabbed)
    grabber.colour = "tomato"
    qtbot.waitUntil(lambda: len(grabber.grabbed) > count + 3, timeout=20_000)
    assert watched.session.picture is before
    monkeypatch.setattr(screen_watch, "window_area", lambda _window: Rect(-10, -10, 110, 400))
    qtbot.waitUntil(lambda: watched.session.picture is not before, timeout=20_000)
    image = watched.session.picture.image
    assert image.getpixel((50, 100)) == before.image.getpixel((50, 100))
    assert image.getpixel((200, 100)) == (255, 99, 71)  # tomato


def test_what_counts_as_a_change() -> None:
    plain = Image.new("RGB", (1920, 1080), "white")
    caret, button, elsewhere = plain.copy(), plain.copy(), plain.copy()
    caret.paste("black", (400, 400, 402, 420))
    button.paste("grey", (400, 400, 490, 430))
    elsewhere.paste("black", (1000, 500, 1400, 800))
    base = Thumbnail.of(plain)
    assert not base.differs(Thumbnail.of(plain))
    assert not base.differs(Thumbnail.of(caret))
    assert base.differs(Thumbnail.of(button))
    assert base.differs(Thumbnail.of(elsewhere))
    assert base.differs(Thumbnail.of(plain.resize((1280, 720))))
    assert Thumbnail.of(Image.new("RGB", (2, 2))).differs(Thumbnail.of(Image.new("RGB", (2, 2), "white")))


# Around it


def test_the_picture_is_read_again_by_another_engine(qapp: QApplication, qtbot, tiny_model: Path, shot: Path) -> None:
    config = EngineConfig(model=tiny_model, threads=1, dtype="float32")
    thread = EngineThread(config)
    session = ScreenSession(thread)
    session.show(Picture.of("shot", Image.open(shot).convert("RGB")))
    assert session.stage == "waiting"
    thread.snapshot_changed.connect(session.show_snapshot)
    thread.start()
    qtbot.waitUntil(lambda: session.stage == "ready", timeout=30_000)
    first = session._screen
    thread.restart(config)
    assert session.stage == "waiting"
    qtbot.waitUntil(lambda: session.stage == "ready" and session._screen is not first, timeout=30_000)
    session.ask("the button")
    qtbot.waitUntil(lambda: not session.shown.waiting, timeout=20_000)
    assert session.shown.answer is not None
    session.close()
    assert thread.stop()


def test_a_model_without_eyes_says_so(qapp: QApplication, qtbot, tmp_path: Path, shot: Path) -> None:
    from tests.tiny import write_tiny

    thread = EngineThread(EngineConfig(model=write_tiny(tmp_path / "blind", vision=False), threads=1, dtype="float32"))
    thread.start()
    thread.engine.wait_ready(60)
    session = ScreenSession(thread)
    session.show(Picture.of("shot", Image.open(shot).convert("RGB")))
    qtbot.waitUntil(lambda: session.stage == "failed", timeout=20_000)
    assert session.fault
    session.close()
    assert thread.stop()


def test_a_model_that_failed_is_no_progress(panel: ScreenPanel, shot: Path, qtbot) -> None:
    panel.session.open_file(shot)
    read(panel, qtbot)
    panel.session._enter("waiting")
    panel.show_snapshot(replace(panel._engine.snapshot, state="loading", progress=0.4))
    assert panel.bar.work.isVisible()
    assert not panel.bar.work.stop.isVisible()
    assert "40%" in panel.bar.work.words.text
    panel.show_snapshot(replace(panel._engine.snapshot, state="failed", reason="No memory is left."))
    assert "No memory is left." in panel.bar._fault_text.text()
    assert not panel.bar.work.isVisible()


def test_a_large_picture_does_not_hold_the_window_up(panel: ScreenPanel, tmp_path: Path, qtbot) -> None:
    file = tmp_path / "large.png"
    Image.effect_noise((3840, 2160), 60).convert("RGB").save(file, compress_level=1)
    longest, last = 0.0, time.monotonic()
    panel.session.open_file(file)
    end = time.monotonic() + 60
    while panel.session.stage not in ("ready", "failed") and time.monotonic() < end:
        QApplication.processEvents()
        now = time.monotonic()
        longest, last = max(longest, now - last), now
        time.sleep(0.002)
    assert panel.session.stage == "ready"
    assert longest < 1.0  # the machine under test may be loaded; what is painted takes a tenth of this


def test_korean(open_window, grabber: Grabber, shot: Path, qtbot) -> None:
    panel = open_window("ko").window.screens
    panel.window().show_panel("screen")
    assert panel.empty._button.text() == "이 화면 캡처"
    panel.session.open_file(shot)
    read(panel, qtbot)
    ask(panel, qtbot, "버튼")
    assert "확신" in detail(panel)


def test_the_program_ends_while_a_picture_is_read(
    qapp: QApplication, qtbot, tiny_model: Path, shot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SettingsFile().change(serve=False)
    desktop = Desktop(qapp, EngineConfig(model=tiny_model, threads=1, dtype="float32"))
    monkeypatch.setattr(desktop._app, "quit", lambda: None)
    desktop.start()
    desktop.engine.engine.wait_ready(60)
    qapp.processEvents()
    forward = Decoder.forward

    def slow(*args: object, **options: object) -> object:
        time.sleep(1)  # so that the window is sure to close before the picture is read
        return forward(*args, **options)

    monkeypatch.setattr(Decoder, "forward", slow)
    desktop.window.screens.session.open_file(shot)
    qtbot.waitUntil(lambda: desktop.window.screens.session.stage == "encoding", timeout=10_000)
    desktop.window.close()
    assert desktop.engine.isFinished()
    desktop.window.deleteLater()
    desktop.deleteLater()


def test_each_screen_shows_its_own_part(qapp: QApplication) -> None:
    """Qt's size of a screen is rounded when it is scaled; the picture's tile is exact."""
    geometry = qapp.primaryScreen().geometry()
    own = Rect(geometry.x(), geometry.y(), geometry.width() + 1, geometry.height())
    tiles = (
        Tile(Rect(640, 0, own.width, own.height), own),
        Tile(Rect(0, 0, 640, 480), Rect(own.x - 640, own.y, 640, 480)),
    )
    (still,) = screen_sources.stills(CoordinateMap(round(640 + own.width), round(own.height), tiles))
    assert still.part.getRect() == (640, 0, own.width, own.height)
    elsewhere = CoordinateMap.of_region(900, 700, Rect(5000, 5000, 900, 700))
    (still,) = screen_sources.stills(elsewhere)
    assert still.part.getRect() == (0, 0, 900, 700)
