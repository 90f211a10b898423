"""Applies a theme to the whole application: palette, style sheet, fonts. Follows the system unless told otherwise."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import Template

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

from ignis_desktop.widgets.tokens import CONTROL_HEIGHT, DARK, LIGHT, RADIUS, Tokens

# A desktop environment names its own font; a bare X server only says "Sans Serif", which is DejaVu on most
# systems and too wide for this layout. Then the first of these that is installed is taken.
_PLAIN_FONTS = ("Inter", "Noto Sans", "Cantarell", "Ubuntu", "Liberation Sans")
_GENERIC_FAMILIES = {"Sans Serif", "sans-serif", "Sans", ""}


class Theme(QObject):
    """The one theme of the application. ``changed`` comes after every widget has been restyled."""

    changed = Signal()

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._app = app
        self._choice = "system"
        app.setStyle(QStyleFactory.create("Fusion"))
        app.setFont(ui_font())
        app.styleHints().colorSchemeChanged.connect(self._on_system_scheme)

    @classmethod
    def of(cls, app: QApplication) -> Theme:
        """The application's theme; made when it is first asked for."""
        return app.findChild(cls) or cls(app)

    @property
    def choice(self) -> str:
        return self._choice

    def apply(self, choice: str) -> None:
        """Switches to "light" or "dark"; anything else follows the system."""
        self._choice = choice if choice in ("light", "dark") else "system"
        scheme = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}.get(choice, Qt.ColorScheme.Unknown)
        # Window frames and native dialogs follow this too.
        self._app.styleHints().setColorScheme(scheme)
        self._restyle()

    def _on_system_scheme(self) -> None:
        if self._choice == "system":
            self._restyle()

    def _restyle(self) -> None:
        global _current  # noqa: PLW0603 - one theme a process, read by every paintEvent
        dark = self._choice == "dark" or (
            self._choice == "system" and self._app.styleHints().colorScheme() == Qt.ColorScheme.Dark
        )
        _current = DARK if dark else LIGHT
        self._app.setPalette(_palette(_current))
        self._app.setStyleSheet(style_sheet(_current))
        self.changed.emit()


_current: Tokens = LIGHT


def tokens() -> Tokens:
    """The theme in force."""
    return _current


@cache
def _template() -> str:
    return Path(__file__).with_name("style.qss").read_text(encoding="utf-8")


def style_sheet(theme: Tokens) -> str:
    """The style sheet filled from ``theme``; raises ``KeyError`` for a token that does not exist."""
    values = theme.colours() | {
        "radius": f"{RADIUS}px",
        "control": f"{CONTROL_HEIGHT}px",
        "mono": mono_font().family(),
    }
    sheet = Template(_template()).substitute(values)
    return re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)


def ui_font(pixels: int = 13) -> QFont:
    """The system's font for controls, ``pixels`` high, with figures of equal width."""
    font = QFont(_ui_base())
    font.setPixelSize(pixels)
    return font


def mono_font(pixels: int = 13) -> QFont:
    """The system's monospace font; for logs, code and numbers."""
    font = QFont(_mono_base())
    font.setPixelSize(pixels)
    return font


@cache
def _ui_base() -> QFont:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    if font.family() in _GENERIC_FAMILIES:
        installed = set(QFontDatabase.families())
        plain = next((name for name in _PLAIN_FONTS if name in installed), None)
        if plain:
            font.setFamily(plain)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


@cache
def _mono_base() -> QFont:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setFamily(QFontInfo(font).family())
    return font


def _palette(theme: Tokens) -> QPalette:
    palette = QPalette()
    roles = QPalette.ColorRole
    for role, colour in {
        roles.Window: theme.window,
        roles.WindowText: theme.text,
        roles.Base: theme.panel,
        roles.AlternateBase: theme.window,
        roles.Text: theme.text,
        roles.PlaceholderText: theme.secondary,
        roles.Button: theme.panel,
        roles.ButtonText: theme.text,
        roles.BrightText: theme.bad,
        roles.Highlight: theme.selection,
        roles.HighlightedText: theme.text,
        roles.Link: theme.text,
        roles.LinkVisited: theme.secondary,
        roles.ToolTipBase: theme.raised,
        roles.ToolTipText: theme.text,
        roles.Accent: theme.accent,
        roles.Light: theme.raised,
        roles.Midlight: theme.hover,
        roles.Mid: theme.line,
        roles.Dark: theme.control_line,
        roles.Shadow: theme.control_line,
    }.items():
        palette.setColor(role, QColor(colour))
    for role in (roles.WindowText, roles.Text, roles.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.disabled))
    return palette
