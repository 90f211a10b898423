"""What the Screen panel can take a picture of, as a menu, and the way to it: the window stands aside meanwhile."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from engine.messages import EngineError
from ignis_desktop.capture.coordinates import CoordinateMap, Rect
from ignis_desktop.capture.grabbing import (
    ALL_MONITORS,
    Monitor,
    MonitorTarget,
    RegionTarget,
    Target,
    Window,
    WindowTarget,
)
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.jobs import Job
from ignis_desktop.screen_picture import Picture, Sources, capture, desktop_area, list_sources, screen_layout
from ignis_desktop.widgets.region_picker import RegionPicker, Still
from ignis_desktop.widgets.texts import tr

ASIDE_MS = 300
"""How long a desktop may take to remove the window from the screen."""
_ROUNDING = 4.0
"""Pixels."""
_TITLE = 60
"""Characters of a window's title in the menu."""


class ScreenSources(QObject):
    """``taken`` brings a ``Picture``, ``failed`` one sentence."""

    taken = Signal(object)
    failed = Signal(str)
    busy_changed = Signal()

    def __init__(self, engine: EngineThread, owner: QWidget) -> None:
        super().__init__(owner)
        self._engine = engine
        self._owner = owner
        self.busy = False
        """Whether something is being listed, picked or captured."""
        self.watchable = True
        """Whether this desktop lets a screen be captured again and again."""
        self.stands_aside = True
        """Whether the program's own window is hidden while a picture is taken."""
        self.picker: RegionPicker | None = None

    # Choosing

    def open_menu(self, at: QWidget) -> None:
        """Lists what there is, then opens the menu under ``at``."""
        if self.busy:
            return
        self._set_busy(True)
        layout, own = screen_layout(), int(self._owner.window().winId())
        job = self._engine.jobs.start(lambda _job: list_sources(layout, own))
        job.done.connect(lambda sources: self._show_menu(sources, at))
        job.failed.connect(self._fail)

    def _show_menu(self, sources: Sources, at: QWidget) -> None:
        self._set_busy(False)
        self.watchable = sources.watchable
        if not at.isVisible():
            return
        menu = self.menu(sources)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(at.mapToGlobal(at.rect().bottomLeft()))

    def menu(self, sources: Sources) -> QMenu:
        menu = QMenu(self._owner)
        for monitor in sources.monitors:
            target = MonitorTarget(monitor.number)
            menu.addAction(monitor_text(monitor, len(sources.monitors)), partial(self._take_monitor, target))
        if len(sources.monitors) > 1:
            menu.addAction(tr("screen.all_monitors"), partial(self._take_monitor, MonitorTarget(ALL_MONITORS)))
        menu.addSeparator()
        menu.addAction(tr("screen.region"), self.pick_region)
        if sources.windows:
            windows = menu.addMenu(tr("screen.window"))
            for window in sources.windows:
                windows.addAction(_menu_text(window), partial(self._take_window, window))
        menu.addSeparator()
        aside = menu.addAction(tr("screen.stand_aside"))
        aside.setCheckable(True)
        aside.setChecked(self.stands_aside)
        aside.toggled.connect(self._set_stands_aside)
        return menu

    def _set_stands_aside(self, on: bool) -> None:
        self.stands_aside = on

    # Taking

    def take_first(self) -> None:
        """The monitor that the window is on, as far as can be told; the main one otherwise."""
        self._take_monitor(MonitorTarget(1))

    def _take_monitor(self, target: MonitorTarget) -> None:
        name = tr("screen.all_monitors")
        if target.number != ALL_MONITORS:
            name = tr("screen.monitor", number=target.number)
        self.take(target, name)

    def _take_window(self, window: Window) -> None:
        self.take(WindowTarget(window.title, window.id), window.title)

    def take(self, target: Target, name: str) -> None:
        self._capture(target, name, self._finish)

    def pick_region(self) -> None:
        """Takes everything and lets a part of it be chosen."""
        self._capture(MonitorTarget(ALL_MONITORS), tr("screen.region_name"), self._pick)

    def _capture(self, target: Target, name: str, then) -> None:
        if self.busy:
            return
        self._set_busy(True)
        layout = screen_layout()

        def start() -> None:
            def work(job: Job) -> Picture:
                shot = capture(layout, target, job)
                return Picture.of(name, shot.image, shot.coordinates, target=target)

            job = self._engine.jobs.start(work)
            job.done.connect(then)
            job.failed.connect(self._fail)

        if self.stands_aside:
            self._owner.window().hide()
            QTimer.singleShot(ASIDE_MS, self, start)
        else:
            start()

    def _finish(self, picture: Picture) -> None:
        self._come_back()
        self.taken.emit(picture)

    def _fail(self, error: EngineError) -> None:
        self._come_back()
        self.failed.emit(error.message)

    def _come_back(self) -> None:
        window = self._owner.window()
        if window.isHidden():
            window.show()
            window.activateWindow()
        self._set_busy(False)

    def _pick(self, picture: Picture) -> None:
        picker = self.picker = RegionPicker(picture.shown, stills(picture.coordinates), self)
        picker.picked.connect(lambda area: self._picked(picture, area))
        picker.cancelled.connect(self._picking_ended)
        picker.open()

    def _picking_ended(self) -> None:
        self.picker = None
        self._come_back()

    def _picked(self, picture: Picture, area: QRectF) -> None:
        self._picking_ended()
        self.taken.emit(part_of(picture, area))

    def _set_busy(self, on: bool) -> None:
        self.busy = on
        self.busy_changed.emit()


def part_of(picture: Picture, area: QRectF) -> Picture:
    """The chosen part; capturing it again takes the same part of the desktop."""
    box = area.toRect().intersected(picture.shown.rect())
    left, top, width, height = box.x(), box.y(), box.width(), box.height()
    coordinates = picture.coordinates.cropped(left, top, width, height)
    corners = [tile.desktop for tile in coordinates.tiles]
    x0, y0 = min(c.x for c in corners), min(c.y for c in corners)
    x1, y1 = max(c.x + c.width for c in corners), max(c.y + c.height for c in corners)
    image = picture.image.crop((left, top, left + width, top + height))
    return Picture.of(picture.name, image, coordinates, target=RegionTarget(Rect(x0, y0, x1 - x0, y1 - y0)))


def stills(coordinates: CoordinateMap) -> list[Still]:
    """Each screen with the part of a picture of the whole desktop that it shows."""
    found = []
    for screen in QGuiApplication.screens():
        area = desktop_area(screen, screen.geometry())
        for tile in coordinates.tiles:
            if _same(tile.desktop, area):
                part = tile.image
                found.append(Still(screen, QRectF(part.x, part.y, part.width, part.height)))
    if not found:  # a picture that lies nowhere Qt knows of: all of it, on the main screen
        found.append(Still(QGuiApplication.primaryScreen(), QRectF(0, 0, coordinates.width, coordinates.height)))
    return found


def _same(first: Rect, second: Rect) -> bool:
    """Whether two descriptions of a monitor mean the same one; Qt's sizes are rounded to its own pixels."""
    pairs = zip(vars(first).values(), vars(second).values(), strict=True)
    return all(abs(one - other) <= _ROUNDING for one, other in pairs)


def monitor_text(monitor: Monitor, count: int) -> str:
    name = tr("screen.monitor", number=monitor.number) if count > 1 else tr("screen.this_monitor")
    parts = [name]
    if monitor.name and count > 1:
        parts.append(monitor.name)
    if monitor.area.width > 1:
        parts.append(f"{monitor.area.width:.0f} × {monitor.area.height:.0f}")
    return " · ".join(parts).replace("&", "&&")


def _menu_text(window: Window) -> str:
    title = window.title if len(window.title) <= _TITLE else window.title[: _TITLE - 1] + "…"
    return title.replace("&", "&&")
