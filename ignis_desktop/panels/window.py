"""The main window: sidebar, the panels, the status bar, keys and the command palette."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QByteArray, Qt, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from engine.messages import EngineSnapshot
from ignis_desktop.engine_thread import EngineThread
from ignis_desktop.panels.chat import ChatPanel
from ignis_desktop.panels.decide import DecidePanel
from ignis_desktop.panels.lanes import LanesPanel
from ignis_desktop.panels.log_search import LogSearchPanel
from ignis_desktop.panels.model_line import status_parts
from ignis_desktop.panels.screen import ScreenPanel
from ignis_desktop.panels.server import ServerPanel
from ignis_desktop.panels.settings import SettingsPanel
from ignis_desktop.panels.shortcuts import PANELS, shortcut, shortcut_text
from ignis_desktop.panels.vram_plan import VramPlanPanel
from ignis_desktop.server_control import ServerControl
from ignis_desktop.store.chat_worker import ChatWorker
from ignis_desktop.store.settings import SettingsFile
from ignis_desktop.widgets.buttons import IconTextButton
from ignis_desktop.widgets.command_palette import Command, CommandPalette
from ignis_desktop.widgets.status_strip import StatusStrip
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.theme import Theme, tokens
from ignis_desktop.widgets.toast import Toast

_SIZE = (1280, 800)
_SIDEBAR = 168
_SIDEBAR_NARROW = 52
_NARROW = 960
"""Pixels of width under which the sidebar shows its icons only."""
_ICONS = {
    "chat": "message-square",
    "lanes": "chart-gantt",
    "vram_plan": "memory-stick",
    "log_search": "text-search",
    "screen": "crosshair",
    "decide": "scale",
    "server": "arrow-left-right",
    "settings": "settings",
}


class MainWindow(QMainWindow):
    """Everything in it comes from the engine's snapshots, the server's state and the store."""

    restart_wanted = Signal()
    closing = Signal()

    def __init__(
        self, engine: EngineThread, server: ServerControl, worker: ChatWorker, settings: SettingsFile, theme: Theme
    ) -> None:
        super().__init__()
        self._engine = engine
        self._server = server
        self._settings = settings
        self._theme = theme
        self.setWindowTitle("Ignis")
        self.setMinimumSize(760, 480)
        central = QWidget()
        self.setCentralWidget(central)
        self.toast = Toast(self)
        self.chat = ChatPanel(engine, worker, settings, self.toast)
        self.lanes = LanesPanel(engine, self.toast)
        self.vram_plan = VramPlanPanel(engine, settings)
        self.log_search = LogSearchPanel(engine, self.toast)
        self.server = ServerPanel(server, settings)
        self.screens = ScreenPanel(engine, self._server_access, self.toast)
        self.decide = DecidePanel(engine, self.toast, self._server_access)
        self.settings = SettingsPanel(settings)
        self._stack = QStackedWidget()
        self._stack.setObjectName("panelArea")
        panels = {"screen": self.screens}  # QWidget.screen is something else
        for name in PANELS:
            self._stack.addWidget(panels.get(name) or getattr(self, name))
        self.status = StatusStrip()
        row = QHBoxLayout()
        row.setSpacing(0)
        row.addWidget(self._build_sidebar())
        row.addWidget(self._stack, 1)
        column = QVBoxLayout(central)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row, 1)
        column.addWidget(self.status)
        self.palette_box = CommandPalette(self)
        self._add_shortcuts()
        engine.snapshot_changed.connect(self.show_snapshot)
        server.changed.connect(self._show_status)
        self.settings.theme_chosen.connect(theme.apply)
        self.settings.restart_wanted.connect(self.restart_wanted)
        self.vram_plan.restart_wanted.connect(self.restart_wanted)
        self.chat.settings_wanted.connect(lambda: self.show_panel("settings"))
        self.screens.settings_wanted.connect(lambda: self.show_panel("settings"))
        self.lanes.settings_wanted.connect(lambda: self.show_panel("settings"))
        self.lanes.chat_wanted.connect(lambda: self.show_panel("chat"))
        self._restore_geometry()
        self.show_panel("chat")
        self.show_snapshot(engine.snapshot)

    @property
    def panel(self) -> str:
        """Name of the panel that is shown."""
        return PANELS[self._stack.currentIndex()]

    def show_panel(self, name: str) -> None:
        index = PANELS.index(name)
        self._stack.setCurrentIndex(index)
        self._nav.button(index).setChecked(True)
        if name == "chat":
            self.chat.composer.edit.setFocus()
        elif name == "screen":
            self.screens.focus_question()
        elif name == "log_search":
            self.log_search.question.setFocus()
        elif name == "decide":
            self.decide.evidence.edit.setFocus()

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        """Passes the engine's newest state on to whatever shows it."""
        self.chat.show_snapshot(snapshot)
        self.lanes.show_snapshot(snapshot)
        self.vram_plan.show_snapshot(snapshot)
        self.log_search.show_snapshot(snapshot)
        self.screens.show_snapshot(snapshot)
        self.decide.show_snapshot(snapshot)
        self.server.show_snapshot(snapshot)
        self.settings.show_snapshot(snapshot)
        self._show_status()

    def bring_to_front(self) -> None:
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def commands(self) -> list[Command]:
        """What the palette offers now."""
        running = self._server.state in ("running", "starting")
        dark = tokens().name == "dark"
        commands = [
            Command(tr("chat.new"), self._new_conversation, shortcut_text("new")),
            *(
                Command(tr("palette.panel", name=tr(f"nav.{name}")), partial(self.show_panel, name), f"Ctrl+{i}")
                for i, name in enumerate(PANELS, start=1)
            ),
            Command(tr("log.open"), self._open_log),
            Command(tr("screen.capture_this"), self._capture),
            Command(tr("chat.search"), self._search_chats, shortcut_text("search")),
            Command(tr("options.title"), self._open_options),
            Command(tr("server.stop_server") if running else tr("server.start_server"), self.server.toggle),
            Command(tr("server.copy_address"), self._copy_address),
            Command(tr("palette.to_light") if dark else tr("palette.to_dark"), self._switch_theme),
            Command(tr("settings.restart"), self.restart_wanted.emit),
            Command(tr("keys.quit"), self.close, shortcut_text("quit")),
        ]
        if self.chat.session.running:
            commands.insert(0, Command(tr("keys.stop"), self.chat.stop, shortcut_text("stop")))
        if self.chat.session.current is not None:
            commands.append(Command(tr("chat.export_markdown"), lambda: self.chat.export_current("markdown")))
            commands.append(Command(tr("chat.export_json"), lambda: self.chat.export_current("json")))
        recent = self.chat.session.rows()[:50]
        return commands + [Command(tr("palette.open", title=row.title), partial(self._open, row.id)) for row in recent]

    # Building

    def _build_sidebar(self) -> QWidget:
        self._sidebar = sidebar = QWidget()
        sidebar.setObjectName("sidebar")
        sidebar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        layout = QVBoxLayout(sidebar)
        layout.setContentsMargins(8, 10, 8, 10)
        layout.setSpacing(2)
        self._nav = QButtonGroup(self)
        for index, name in enumerate(PANELS):
            nav = IconTextButton(_ICONS[name], "", "nav")
            nav.setCheckable(True)
            nav.setToolTip(f"{tr(f'nav.{name}')} (Ctrl+{index + 1})")
            nav.setAccessibleName(tr(f"nav.{name}"))
            nav.clicked.connect(lambda _checked=False, name=name: self.show_panel(name))
            self._nav.addButton(nav, index)
            if name == "settings":
                layout.addStretch(1)
            layout.addWidget(nav)
        return sidebar

    def _add_shortcuts(self) -> None:
        for keys, then in (
            (shortcut("palette"), self.open_palette),
            (shortcut("new"), self._new_conversation),
            (shortcut("stop"), self._stop),
            (shortcut("search"), self._search),
            (shortcut("list"), self.chat.toggle_list),
            (shortcut("quit"), self.close),
        ):
            QShortcut(keys, self).activated.connect(then)
        for i, name in enumerate(PANELS, start=1):
            QShortcut(QKeySequence(f"Ctrl+{i}"), self).activated.connect(lambda name=name: self.show_panel(name))

    # Doing

    def open_palette(self) -> None:
        self.palette_box.open(self.commands())

    def _show_status(self) -> None:
        address = self._server.url
        if self._server.state == "failed":
            address = tr("status.no_server")
        self.status.show_state(*status_parts(self._engine.snapshot, address))

    def _new_conversation(self) -> None:
        self.show_panel("chat")
        self.chat.new_conversation()

    def _stop(self) -> None:
        """What is going on in the panel that is shown."""
        if self.panel == "log_search":
            self.log_search.stop()
        elif self.panel == "decide":
            self.decide.stop()
        elif self.panel == "screen":
            self.screens.stop()
        else:
            self.chat.stop()

    def _search(self) -> None:
        if self.panel == "log_search":
            self.log_search.reader.finder.start()
            return
        self._search_chats()

    def _search_chats(self) -> None:
        self.show_panel("chat")
        self.chat.focus_search()

    def _open_log(self) -> None:
        self.show_panel("log_search")
        self.log_search.choose_file()

    def _capture(self) -> None:
        self.show_panel("screen")
        self.screens.sources.take_first()

    def _server_access(self) -> tuple[str, str]:
        """The server's address and key, for snippets."""
        return self.server.base_url(), self._settings.values.api_key

    def _open_options(self) -> None:
        self.show_panel("chat")
        self.chat.open_options()

    def _open(self, conversation: str) -> None:
        self.show_panel("chat")
        self.chat.session.open(conversation)

    def _copy_address(self) -> None:
        QGuiApplication.clipboard().setText(self.server.base_url())
        self.toast.say(tr("chat.copied"))

    def _switch_theme(self) -> None:
        theme = "light" if tokens().name == "dark" else "dark"
        self._settings.change(theme=theme)
        self.settings.theme.set_value(theme)
        self._theme.apply(theme)

    # Geometry

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < _NARROW
        self._sidebar.setFixedWidth(_SIDEBAR_NARROW if narrow else _SIDEBAR)
        for index, name in enumerate(PANELS):
            self._nav.button(index).setText("" if narrow else "  " + tr(f"nav.{name}"))

    def _restore_geometry(self) -> None:
        saved = QByteArray.fromBase64(self._settings.values.geometry.encode())
        if saved.isEmpty() or not self.restoreGeometry(saved):
            screen = self.screen().availableGeometry()
            self.resize(min(_SIZE[0], screen.width()), min(_SIZE[1], screen.height()))

    def closeEvent(self, event: QCloseEvent) -> None:
        self._settings.change(geometry=bytes(self.saveGeometry().toBase64().data()).decode())
        self.log_search.close_log()
        self.decide.leave()
        self.screens.close_screen()
        self.closing.emit()
        event.accept()
