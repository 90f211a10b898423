"""The keys of the window, in one place for the window itself, the palette and the settings."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence

PANELS = ("chat", "lanes", "vram_plan", "log_search", "screen", "decide", "server", "settings")
"""The panels in the order of the sidebar: Ctrl and their number open them."""
SHORTCUTS: tuple[tuple[str, str], ...] = (
    ("palette", "Ctrl+K"),
    ("new", "Ctrl+N"),
    ("stop", "Esc"),
    ("search", "Ctrl+F"),
    ("list", "Ctrl+B"),
    ("panels", "Ctrl+1"),
    ("quit", "Ctrl+Q"),
)
_KEYS = dict(SHORTCUTS)


def shortcut(name: str) -> QKeySequence:
    return QKeySequence(_KEYS[name])


def shortcut_text(name: str) -> str:
    """As the system writes it; the panels' key stands for all of them."""
    text = shortcut(name).toString(QKeySequence.SequenceFormat.NativeText)
    return f"{text} … {len(PANELS)}" if name == "panels" else text
