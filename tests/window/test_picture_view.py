"""The picture that is zoomed, moved and marked."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QWheelEvent
from PySide6.QtWidgets import QApplication

from ignis_desktop.widgets.picture_marks import Mark
from ignis_desktop.widgets.picture_view import MARGIN, PictureView
from ignis_desktop.widgets.theme import tokens


def picture(width: int, height: int) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    return image


@pytest.fixture
def view(qtbot) -> PictureView:
    made = PictureView()
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    return made


def wheel(view: PictureView, at: QPointF, steps: int) -> None:
    event = QWheelEvent(
        at, view.mapToGlobal(at), QPoint(), QPoint(0, 120 * steps), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view, event)


def test_a_picture_is_shown_whole_clear_of_what_covers_it(view: PictureView) -> None:
    view.covered = 80
    view.set_picture(picture(1600, 900))
    top_left, bottom_right = view.at(0, 0), view.at(1600, 900)
    assert top_left.x() >= MARGIN - 0.5
    assert bottom_right.x() <= 600 - MARGIN + 0.5
    assert bottom_right.y() <= 400 - 80 - MARGIN + 0.5
    assert bottom_right.y() - top_left.y() == pytest.approx(400 - 80 - 2 * MARGIN, abs=1)
    view.resize(900, 400)
    assert view.at(1600, 900).y() <= 400 - 80 - MARGIN + 0.5


def test_a_small_picture_is_not_blown_up(view: PictureView) -> None:
    view.set_picture(picture(40, 30))
    assert view.zoom == 2.0


def test_the_wheel_zooms_around_the_pointer(view: PictureView) -> None:
    view.set_picture(picture(1600, 900))
    fitted = view.zoom
    wheel(view, view.at(800, 450), 6)
    assert view.zoom == pytest.approx(fitted * 1.25**6)
    held = view.at(900, 500)
    wheel(view, held, 2)
    assert (view.at(900, 500) - held).manhattanLength() < 0.01
    for _ in range(20):
        wheel(view, held, -2)
    assert view.zoom == pytest.approx(fitted)
    for _ in range(40):
        wheel(view, held, 2)
    assert view.zoom == 16


def test_dragging_and_keys_move_it_never_out_of_sight(view: PictureView, qtbot) -> None:
    view.set_picture(picture(1600, 900))
    view.zoom_by(4)
    before = view.at(0, 0)
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(300, 200))
    qtbot.mouseMove(view, QPoint(280, 210))
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=QPoint(280, 210))
    assert (view.at(0, 0) - before).toPoint() == QPoint(-20, 10)
    for _ in range(100):
        qtbot.keyClick(view, Qt.Key.Key_Right)
        qtbot.keyClick(view, Qt.Key.Key_Down)
    assert view.at(1600, 900).toPoint() == QPoint(600 - MARGIN, 400 - MARGIN)
    qtbot.keyClick(view, Qt.Key.Key_0)
    assert view.at(1600, 900).x() == pytest.approx(600 - MARGIN, abs=0.5)
    qtbot.keyClick(view, Qt.Key.Key_Plus)
    qtbot.keyClick(view, Qt.Key.Key_Minus)
    assert view.at(1600, 900).x() == pytest.approx(600 - MARGIN, abs=0.5)
    qtbot.mouseDClick(view, Qt.MouseButton.LeftButton, pos=QPoint(300, 200))
    assert view.zoom == 1.0
    qtbot.mouseDClick(view, Qt.MouseButton.LeftButton, pos=QPoint(300, 200))
    assert view.at(1600, 900).x() == pytest.approx(600 - MARGIN, abs=0.5)


def test_a_mark_out_of_sight_is_brought_into_sight(view: PictureView) -> None:
    view.set_picture(picture(1600, 900))
    view.zoom_by(6)
    assert not view.rect().contains(view.at(20, 20).toPoint())
    view.set_mark(Mark(20, 20, 5))
    assert view.rect().contains(view.at(20, 20).toPoint())


def test_mark_box_and_heat_are_painted(view: PictureView) -> None:
    view.set_picture(picture(400, 300))
    plain = view.grab().toImage()
    accent = QColor(tokens().accent)
    view.set_mark(Mark(200, 150, 30, (100, 50, 300, 250)))
    marked = view.grab().toImage()
    ratio = marked.devicePixelRatio()

    def colour(image: QImage, x: float, y: float) -> QColor:
        at = view.at(x, y) * ratio
        return image.pixelColor(round(at.x()), round(at.y()))

    assert colour(marked, 200, 150).name() == accent.name()
    edge = colour(marked, 200, 50)  # a thin line between two pixels
    assert edge.red() - edge.blue() > 80
    assert colour(marked, 350, 280) == colour(plain, 350, 280)
    view.set_mark(None)
    heat = QImage(4, 3, QImage.Format.Format_Grayscale8)
    heat.fill(0)
    heat.setPixelColor(3, 0, QColor(215, 215, 215))
    view.set_heat(heat)
    assert view.grab().toImage() == plain
    view.show_heat(True)
    warm = view.grab().toImage()
    hot, cold = colour(warm, 390, 10), colour(warm, 10, 290)
    assert hot.red() - hot.blue() > 100
    assert abs(cold.red() - cold.blue()) < 12


def test_a_picture_of_the_same_size_keeps_the_place(view: PictureView) -> None:
    view.set_picture(picture(1600, 900))
    view.zoom_by(4)
    before = view.at(0, 0), view.zoom
    view.set_picture(picture(1600, 900))
    assert (view.at(0, 0), view.zoom) == before
    view.set_picture(None)
    view.zoom_by(2)
    view.fit()
    assert not view.grab().isNull()
