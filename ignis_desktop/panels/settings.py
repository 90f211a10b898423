"""The Settings panel: appearance at once, the model's settings with a restart of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QGridLayout, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from engine.messages import EngineSnapshot
from ignis_desktop.panels.model_line import loading_text, model_line
from ignis_desktop.panels.shortcuts import SHORTCUTS, shortcut_text
from ignis_desktop.store.paths import data_dir, log_file
from ignis_desktop.store.settings import SettingsFile, WindowSettings
from ignis_desktop.widgets.buttons import Select, button
from ignis_desktop.widgets.number_field import NumberField
from ignis_desktop.widgets.panel import PanelHeader, ScrolledColumn, card, form_row, section
from ignis_desktop.widgets.texts import tr

_ENGINE_FIELDS = ("model", "threads", "max_context", "lanes", "kv_format", "yarn", "headroom", "host_tier")
_MIN_CONTEXT = 256


class SettingsPanel(QWidget):
    theme_chosen = Signal(str)
    restart_wanted = Signal()
    """The engine shall load again with what is set now."""

    def __init__(self, settings: SettingsFile, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._loaded_with = settings.values
        self.setObjectName("panelBody")
        self.header = PanelHeader(tr("nav.settings"))
        body = ScrolledColumn(720)
        column = body.column
        for title, content in (
            (tr("settings.appearance"), self._appearance()),
            (tr("settings.model"), self._model()),
            (tr("settings.keys"), self._keys()),
            (tr("settings.files"), self._files()),
        ):
            column.addWidget(section(title))
            column.addWidget(content)
            column.addSpacing(16)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(body, 1)
        self._show_pending()

    # Building

    def _appearance(self) -> QWidget:
        values = self._settings.values
        frame, layout = card()
        self.theme = Select([(key, tr(f"theme.{key}")) for key in ("system", "light", "dark")], values.theme)
        self.theme.chosen.connect(self._choose_theme)
        self.language = Select(
            [("system", tr("language.system")), ("en", "English"), ("ko", "한국어")], values.language
        )
        self.language.chosen.connect(lambda language: self._settings.change(language=language))
        layout.addWidget(form_row(tr("settings.theme"), self.theme))
        layout.addWidget(form_row(tr("settings.language"), self.language, tr("settings.language_hint")))
        return frame

    def _model(self) -> QWidget:
        values = self._settings.values
        frame, layout = card()
        self._state = QLabel(wordWrap=True)
        self.folder = QLineEdit(values.model, placeholderText=tr("settings.bundled"))
        self.folder.setAccessibleName(tr("settings.folder"))
        self.folder.editingFinished.connect(lambda: self._change(model=self.folder.text().strip()))
        browse = button(tr("settings.browse"))
        browse.clicked.connect(self._browse)
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(self.folder, 1)
        line.addWidget(browse)
        self._folder_error = QLabel(wordWrap=True)
        self._folder_error.setProperty("tone", "bad")
        automatic = tr("settings.automatic")
        self.threads = NumberField(values.threads, 1, 256, automatic=automatic)
        self.threads.changed.connect(lambda: self._change(threads=self.threads.value))
        self.context = NumberField(values.max_context, _MIN_CONTEXT, 1 << 20, automatic=automatic)
        self.context.changed.connect(lambda: self._change(max_context=self.context.value))
        self.lanes = NumberField(values.lanes, 1, 16, automatic=automatic)
        self.lanes.changed.connect(lambda: self._change(lanes=self.lanes.value))
        self._pending = QLabel(wordWrap=True)
        self._pending.setProperty("kind", "small")
        self.restart = button(tr("settings.restart"), "primary")
        self.restart.clicked.connect(self._restart)
        bottom = QHBoxLayout()
        bottom.setSpacing(16)
        bottom.addWidget(self._pending, 1)
        bottom.addWidget(self.restart)
        folder_hint = QLabel(tr("settings.folder_hint"), wordWrap=True)
        folder_hint.setProperty("kind", "small")
        layout.addWidget(self._state)
        layout.addWidget(QLabel(tr("settings.folder")))
        layout.addLayout(line)
        layout.addWidget(folder_hint)
        layout.addWidget(self._folder_error)
        layout.addWidget(form_row(tr("settings.threads"), self.threads, tr("settings.threads_hint")))
        layout.addWidget(form_row(tr("settings.context"), self.context, tr("settings.context_hint")))
        layout.addWidget(form_row(tr("settings.lanes"), self.lanes, tr("settings.lanes_hint")))
        layout.addLayout(bottom)
        return frame

    def _keys(self) -> QWidget:
        frame, layout = card()
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        for row, (name, _) in enumerate(SHORTCUTS):
            keys = QLabel(shortcut_text(name))
            keys.setProperty("kind", "mono")
            grid.addWidget(QLabel(tr(f"keys.{name}")), row, 0)
            grid.addWidget(keys, row, 1)
        grid.setColumnStretch(0, 1)
        layout.addLayout(grid)
        return frame

    def _files(self) -> QWidget:
        frame, layout = card()
        for label, path in ((tr("settings.data"), data_dir()), (tr("settings.log"), log_file())):
            show = button(tr("settings.open"))
            show.clicked.connect(lambda _checked=False, path=path: open_path(path))
            layout.addWidget(form_row(label, show, str(path)))
        return frame

    # Showing

    def show_snapshot(self, snapshot: EngineSnapshot) -> None:
        self.header.set_subject(model_line(snapshot))
        if snapshot.state == "ready":
            text = tr(
                "settings.running",
                model=snapshot.model,
                device=snapshot.device,
                context=f"{snapshot.context_length:,}",
                lanes=len(snapshot.lanes) or "",
            )
        else:
            text = loading_text(snapshot)
        if text != self._state.text():
            self._state.setText(text)
            self._state.setProperty("tone", "bad" if snapshot.state == "failed" else "")
            self._state.style().polish(self._state)

    def _show_pending(self) -> None:
        values = self._settings.values
        pending = any(getattr(values, name) != getattr(self._loaded_with, name) for name in _ENGINE_FIELDS)
        fault = folder_fault(values.model)
        self._folder_error.setText(fault)
        self._folder_error.setVisible(bool(fault))
        self.folder.setProperty("invalid", bool(fault))
        self.folder.style().polish(self.folder)
        self._pending.setText(tr("settings.pending") if pending else tr("settings.restart_hint"))
        self.restart.setEnabled(not fault)

    # Changing

    def loaded_with(self, values: WindowSettings) -> None:
        """Says what the engine was loaded with; anything else needs a restart."""
        self._loaded_with = values
        # The memory plan's panel sets these too.
        self.context.set_value(values.max_context)
        self.lanes.set_value(values.lanes)
        self._show_pending()

    def _choose_theme(self, theme: str) -> None:
        self._settings.change(theme=theme)
        self.theme_chosen.emit(theme)

    def _change(self, **values: Any) -> None:
        self._settings.change(**values)
        self._show_pending()

    def _browse(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, tr("settings.folder"), self.folder.text())
        if chosen:
            self.folder.setText(chosen)
            self._change(model=chosen)

    def _restart(self) -> None:
        # The folder may still be in the middle of being typed.
        self._change(model=self.folder.text().strip())
        if not folder_fault(self._settings.values.model):
            self.restart_wanted.emit()


def folder_fault(folder: str) -> str:
    """What is wrong with a checkpoint folder as far as its files tell; "" when nothing is."""
    if not folder:
        return ""
    path = Path(folder)
    if not path.is_dir():
        return tr("settings.no_folder", path=folder)
    if not (path / "config.json").is_file():
        return tr("settings.no_config", path=folder)
    return ""


def open_path(path: Path) -> None:
    """Shows a file or folder with the system's program; the folder when the file is not there yet."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path if path.exists() else path.parent)))
