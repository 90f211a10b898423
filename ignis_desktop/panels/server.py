"""The Server panel: address, access, snippets and the requests that come in."""

from __future__ import annotations

import secrets
import socket
from urllib.parse import urlsplit

import psutil
from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from engine.messages import EngineSnapshot
from ignis_desktop.panels.model_line import model_line
from ignis_desktop.panels.snippets import snippets
from ignis_desktop.server_control import ALL_INTERFACES, ServerControl
from ignis_desktop.store.settings import SettingsFile
from ignis_desktop.widgets.buttons import CopyButton, IconButton, Select, Switch, button
from ignis_desktop.widgets.code_panel import CodePanel
from ignis_desktop.widgets.number_field import NumberField
from ignis_desktop.widgets.panel import PanelHeader, ScrolledColumn, card, form_row, section
from ignis_desktop.widgets.request_table import RequestRow, RequestTable
from ignis_desktop.widgets.status_strip import StatusDot
from ignis_desktop.widgets.texts import tr

_LOG_MS = 250
_NARROW = 760
_LOOPBACK = "127.0.0.1"
_TONES = {"running": "good", "failed": "bad", "starting": "warn", "stopping": "warn", "stopped": "disabled"}


class ServerPanel(QWidget):
    def __init__(self, control: ServerControl, settings: SettingsFile, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._control = control
        self._settings = settings
        self._model_id = ""
        self._shown_records = -2
        self._key_shown = False
        self.setObjectName("panelBody")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.header = PanelHeader(tr("nav.server"))
        self._body = ScrolledColumn(1040)
        self._middle = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._middle.setSpacing(16)
        self._middle.addWidget(self._access_card(), 2)
        self._middle.addWidget(self._snippet_card(), 3)
        column = self._body.column
        column.setSpacing(16)
        column.addWidget(self._address_card())
        column.addLayout(self._middle)
        column.addSpacing(4)
        column.addWidget(section(tr("server.requests")))
        self.table = RequestTable()
        self.table.setMinimumHeight(180)
        column.addWidget(self.table, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self._body, 1)
        control.changed.connect(self._show_state)
        self._timer = QTimer(self, interval=_LOG_MS)
        self._timer.timeout.connect(self._show_records)
        self._show_state()

    # Building

    def _address_card(self) -> QWidget:
        frame, layout = card()
        self._address = QLabel()
        self._address.setProperty("kind", "address")
        self._address.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._copy = CopyButton(self.base_url, hint=tr("server.copy_address"))
        self._dot = StatusDot()
        self._state = QLabel(wordWrap=True)
        self._toggle = button("")
        self._toggle.setMinimumWidth(96)
        self._toggle.clicked.connect(self.toggle)
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(self._address)
        line.addWidget(self._copy)
        line.addStretch()
        line.addWidget(self._toggle)
        state = QHBoxLayout()
        state.setSpacing(8)
        state.addWidget(self._dot)
        state.addWidget(self._state, 1)
        layout.addLayout(line)
        layout.addLayout(state)
        return frame

    def _access_card(self) -> QWidget:
        values = self._settings.values
        frame, layout = card()
        self.port = NumberField(values.port, 0, 65535)
        self.port.changed.connect(lambda: self._apply(port=self.port.value))
        self._port_error = QLabel(wordWrap=True)
        self._port_error.setProperty("tone", "bad")
        self._port_error.hide()
        self.key = QLineEdit(values.api_key)
        self.key.setProperty("kind", "mono")
        self.key.setPlaceholderText(tr("server.no_key"))
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setAccessibleName(tr("server.key"))
        self.key.editingFinished.connect(lambda: self._change_key(self.key.text().strip()))
        self._eye = IconButton("eye", tr("server.show_key"))
        self._eye.clicked.connect(self._toggle_key)
        copy = CopyButton(self.key.text, hint=tr("server.copy_key"))
        generate = button(tr("server.generate"))
        generate.clicked.connect(lambda: self._change_key(new_key()))
        key_line = QHBoxLayout()
        key_line.setSpacing(4)
        key_line.addWidget(self.key, 1)
        key_line.addWidget(self._eye)
        key_line.addWidget(copy)
        key_line.addWidget(generate)
        self.lan = Switch(tr("server.lan"))
        self.lan.setChecked(values.host != _LOOPBACK)
        self.lan.toggled.connect(self._change_lan)
        self._warning = QLabel(wordWrap=True)
        self._warning.setProperty("tone", "warn")
        self.cors = Switch(tr("server.cors"))
        self.cors.setChecked(values.cors)
        self.cors.toggled.connect(lambda on: self._apply(cors=on))
        self.capture = Switch(tr("server.capture"))
        self.capture.setChecked(values.capture)
        self.capture.toggled.connect(lambda on: self._apply(capture=on))
        layout.addWidget(form_row(tr("server.port"), self.port))
        layout.addWidget(self._port_error)
        layout.addWidget(QLabel(tr("server.key")))
        layout.addLayout(key_line)
        key_hint = QLabel(tr("server.key_hint"), wordWrap=True)
        key_hint.setProperty("kind", "small")
        layout.addWidget(key_hint)
        layout.addWidget(form_row(tr("server.lan"), self.lan, tr("server.lan_hint")))
        layout.addWidget(self._warning)
        layout.addWidget(form_row(tr("server.cors"), self.cors, tr("server.cors_hint")))
        layout.addWidget(form_row(tr("server.capture"), self.capture, tr("server.capture_hint")))
        layout.addStretch(1)
        return frame

    def _snippet_card(self) -> QWidget:
        frame, layout = card()
        titles = [one.title for one in snippets(self.base_url(), "", "")]
        choices = [(title, tr("server.others") if title == "Others" else title) for title in titles]
        self.client = Select(choices, titles[0])
        self.client.setAccessibleName(tr("server.client"))
        self.client.chosen.connect(lambda _: self._show_snippets())
        self._place = QLabel()
        self._place.setProperty("kind", "small")
        self._place.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.code = CodePanel()
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(QLabel(tr("server.client")))
        head.addWidget(self.client)
        head.addStretch(1)
        head.addWidget(self._place)
        layout.addLayout(head)
        layout.addWidget(self.code)
        layout.addStretch(1)
        return frame

    # Showing

    def base_url(self) -> str:
        """What a client calls its base URL; of the port that is set while the server does not run."""
        return (self._control.url or f"http://{_LOOPBACK}:{self._settings.values.port}") + "/v1"

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        self.header.set_subject(model_line(snapshot))
        if snapshot.model_id != self._model_id:
            self._model_id = snapshot.model_id
            self._show_snippets()

    def _show_state(self) -> None:
        control = self._control
        running = control.state == "running"
        self._address.setText(self.base_url())
        self._address.setEnabled(running)
        self._dot.set_tone(_TONES[control.state])
        words = tr(f"server.{control.state}")
        if running and self._settings.values.host != _LOOPBACK:
            words = tr("server.running_lan", address=f"http://{lan_address()}:{urlsplit(control.url).port}/v1")
        self._state.setText(words)
        busy = control.state in ("starting", "stopping")
        self._toggle.setEnabled(not busy)
        self._toggle.setText(tr("server.stop") if running or control.state == "starting" else tr("server.start"))
        self._toggle.setProperty("kind", "" if running else "primary")
        self._toggle.style().polish(self._toggle)
        failed = control.state == "failed"
        self._port_error.setText(control.reason)
        self._port_error.setVisible(failed)
        self.port.setProperty("invalid", failed)
        self.port.style().polish(self.port)
        self._warning.setText(tr("server.lan_warning"))
        self._warning.setVisible(self._settings.values.host != _LOOPBACK)
        self._show_snippets()

    def _show_snippets(self) -> None:
        key = self._settings.values.api_key
        shown = key if self._key_shown else "•" * 12 if key else ""
        model = self._model_id or "ember"
        base, title = self.base_url(), self.client.value
        real = next(one for one in snippets(base, key, model) if one.title == title)
        masked = next(one for one in snippets(base, shown, model) if one.title == title)
        self._place.setText(tr("server.in_file", file=real.file) if real.file else "")
        self.code.show_code(masked.code, masked.language, copied=real.code)

    def _show_records(self) -> None:
        version = self._control.records_version()
        if version == self._shown_records:
            return
        self._shown_records = version
        self.table.show_rows(
            [
                RequestRow(
                    r.number,
                    r.time,
                    r.method,
                    r.path,
                    r.client,
                    r.status,
                    r.milliseconds,
                    r.request_class,
                    r.prompt_tokens,
                    r.cached_tokens,
                    r.output_tokens,
                    r.tokens_per_second,
                    r.error,
                )
                for r in self._control.records()
            ]
        )

    # Changing

    def toggle(self) -> None:
        """Starts the server, or stops it; the choice holds for the next start of the program too."""
        if self._control.state in ("running", "starting"):
            self._settings.change(serve=False)
            self._control.stop()
        else:
            self._control.start(self._settings.change(serve=True))

    def _apply(self, **values: object) -> None:
        changed = self._settings.change(**values)
        if self._control.state in ("running", "starting", "failed"):
            self._control.start(changed)
        else:
            self._show_state()

    def _change_key(self, key: str) -> None:
        if key == self._settings.values.api_key:
            return
        if not key and self._settings.values.host != _LOOPBACK:
            # Without a key nobody else may reach it.
            self.lan.setChecked(False)
        self.key.setText(key)
        self._apply(api_key=key)

    def _change_lan(self, on: bool) -> None:
        if on and not self._settings.values.api_key:
            key = new_key()
            self.key.setText(key)
            self._settings.change(api_key=key)
        self._apply(host=ALL_INTERFACES if on else _LOOPBACK)

    def _toggle_key(self) -> None:
        self._key_shown = not self._key_shown
        self.key.setEchoMode(QLineEdit.EchoMode.Normal if self._key_shown else QLineEdit.EchoMode.Password)
        hint = tr("server.hide_key") if self._key_shown else tr("server.show_key")
        self._eye.set_icon("eye-off" if self._key_shown else "eye")
        self._eye.setToolTip(hint)
        self._eye.setAccessibleName(hint)
        self._show_snippets()

    def resizeEvent(self, event: QEvent) -> None:
        narrow = self.width() < _NARROW
        down, right = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight
        self._middle.setDirection(down if narrow else right)

    def showEvent(self, event: QEvent) -> None:
        self._show_records()
        self._timer.start()

    def hideEvent(self, event: QEvent) -> None:
        self._timer.stop()


def new_key() -> str:
    """A key nobody guesses: 192 random bits."""
    return "ignis-" + secrets.token_urlsafe(24)


def lan_address() -> str:
    """This machine's address in its network, as far as the system tells; its name otherwise."""
    for name, addresses in psutil.net_if_addrs().items():
        if name.startswith(("docker", "veth", "br-", "virbr")):
            continue
        for address in addresses:
            if address.family == socket.AF_INET and not address.address.startswith(("127.", "169.254.")):
                return address.address
    return socket.gethostname()
