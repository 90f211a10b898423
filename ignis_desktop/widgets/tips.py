"""Tool tips that show a text as it is."""

from __future__ import annotations

from PySide6.QtGui import Qt


def plain(text: str) -> str:
    """``text`` for a tool tip. Qt reads a tip that looks like HTML as such and loads what it names; a prompt that some
    client sent must never get that far."""
    return Qt.convertFromPlainText(text) if text else ""
