"""The desktop application: window, engine and server in one process."""

from __future__ import annotations

# torch must be loaded before PySide6: on Windows, Qt's DLLs bring an older C runtime into the process and torch's
# c10.dll then fails to initialise (WinError 1114, pytorch issue 166628). This module is the one place that decides
# the order; whoever starts the window imports it first.
# engine comes before torch: it sets what torch's compute threads read when they are loaded.
import engine  # noqa: F401  # isort: skip
import torch  # noqa: F401  # isort: skip

import logging
import signal
from collections.abc import Sequence
from logging.handlers import RotatingFileHandler

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication, QMenu, QSystemTrayIcon

from engine.config import EngineConfig
from ignis_desktop.engine_thread import EngineThread, engine_config
from ignis_desktop.panels.window import MainWindow
from ignis_desktop.server_control import ServerControl
from ignis_desktop.single_instance import RaiseListener, raise_running_window
from ignis_desktop.store.chat_worker import ChatWorker
from ignis_desktop.store.paths import data_dir, log_file
from ignis_desktop.store.settings import SettingsFile
from ignis_desktop.watchdog import StallWatchdog
from ignis_desktop.widgets import texts, thumbnails
from ignis_desktop.widgets.icons import app_icon
from ignis_desktop.widgets.theme import Theme

log = logging.getLogger(__name__)

_LOG_BYTES = 2 << 20
_SIGNAL_MS = 200


class Desktop(QObject):
    """Everything that lives as long as the window: engine, server, store, watchdog."""

    def __init__(self, app: QApplication, config: EngineConfig | None = None) -> None:
        super().__init__()
        self._app = app
        self._closed = False
        self.settings = SettingsFile()
        texts.use_language(self.settings.values.language)
        self.theme = Theme.of(app)
        self.theme.apply(self.settings.values.theme)
        self.watchdog = StallWatchdog(self)
        self.engine = EngineThread(config or engine_config(self.settings.values))
        self.server = ServerControl(self.engine.engine, self.settings.values)
        self.worker = ChatWorker(data_dir() / "chats.sqlite3")
        self.window = MainWindow(self.engine, self.server, self.worker, self.settings, self.theme)
        self.window.restart_wanted.connect(self.restart_engine)
        self.window.closing.connect(self.close)
        self.engine.engine_replaced.connect(self.server.use_engine)
        self._tray = self._make_tray()

    def start(self) -> None:
        """Shows the window; engine and server start behind it."""
        self.watchdog.start()
        self.engine.start()
        if self.settings.values.serve:
            self.server.start()
        self.window.show()

    def restart_engine(self) -> None:
        """Loads again with what is set now."""
        values = self.settings.values
        self.engine.restart(engine_config(values))
        self.window.settings.loaded_with(values)

    def close(self) -> None:
        """Stops everything in order and waits for it; afterwards no thread of ours is left."""
        if self._closed:
            return
        self._closed = True
        self.watchdog.stop()  # from here on the window waits on purpose
        self.window.chat.session.close()
        self.server.close()
        if not self.engine.stop():
            log.error("the engine did not end in time")
        self.worker.close()
        thumbnails.close_shared()
        if self._tray is not None:
            self._tray.hide()
        self._app.quit()

    def _make_tray(self) -> QSystemTrayIcon | None:
        if not QSystemTrayIcon.isSystemTrayAvailable():
            return None
        tray = QSystemTrayIcon(app_icon(), self)
        menu = QMenu(self.window)
        menu.addAction(texts.tr("tray.open"), self.window.bring_to_front)
        menu.addAction(texts.tr("keys.quit"), self.window.close)
        tray.setContextMenu(menu)
        tray.setToolTip("Ignis")
        tray.activated.connect(self.window.bring_to_front)
        tray.show()
        return tray


def run_app(argv: Sequence[str] = (), config: EngineConfig | None = None) -> int:
    """Opens the window and returns when it was closed (0).

    ``config`` replaces what is set in the window. If a window of the same user is open already, it is brought to the
    front instead. Needs a display: whoever calls has checked.
    """
    app = QApplication(["ignis", *argv])
    app.setApplicationName("Ignis")
    app.setDesktopFileName("ignis-desktop")
    app.setWindowIcon(app_icon())
    if raise_running_window():
        print("Ignis is open already; its window was brought to the front.")  # noqa: T201
        return 0
    _log_to_file()
    listener = RaiseListener()
    desktop = Desktop(app, config)
    listener.raise_wanted.connect(desktop.window.bring_to_front)
    # Python runs signal handlers between its own instructions: a timer gives it some while Qt waits for events.
    pulse = QTimer(interval=_SIGNAL_MS)
    pulse.timeout.connect(lambda: None)
    pulse.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: desktop.window.close())
    desktop.start()
    code = app.exec()
    desktop.close()
    listener.close()
    return code


def _log_to_file() -> None:
    handler = RotatingFileHandler(log_file(), maxBytes=_LOG_BYTES, backupCount=2, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    # Stacks of a slow window are for the file only, not for the terminal the program was started from.
    stalls = logging.getLogger("ignis_desktop.watchdog")
    stalls.addHandler(handler)
    stalls.propagate = False
