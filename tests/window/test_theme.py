"""Tokens, style sheet, icons, texts."""

from __future__ import annotations

import re
import string
import subprocess
import sys

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication

from ignis_desktop.store.paths import assets_dir
from ignis_desktop.widgets import icons, texts
from ignis_desktop.widgets.theme import Theme, style_sheet, tokens
from ignis_desktop.widgets.tokens import DARK, LIGHT, Tokens, contrast

GROUNDS = ("window", "panel", "raised", "hover")
WORDS = ("text", "secondary", "good", "warn", "bad")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_every_text_can_be_read(theme: Tokens) -> None:
    for ground in GROUNDS:
        for word in WORDS:
            ratio = contrast(getattr(theme, word), getattr(theme, ground))
            assert ratio >= 4.5, f"{word} on {ground}: {ratio:.2f}"
        assert contrast(theme.accent, getattr(theme, ground)) >= 3.0
    for code in ("code_keyword", "code_string", "code_number", "code_comment", "code_name"):
        assert contrast(getattr(theme, code), theme.window) >= 4.5, code
    assert contrast(theme.text, theme.pressed) >= 4.5
    assert contrast(theme.text, theme.selection) >= 4.5


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#767676", "#FFFFFF") == pytest.approx(4.54, abs=0.01)


def test_style_sheet_is_filled_whole() -> None:
    for theme in (LIGHT, DARK):
        sheet = style_sheet(theme)
        assert "$" not in sheet
        colours = set(re.findall(r"#[0-9A-Fa-f]{6}\b", sheet))
        assert colours <= set(theme.colours().values()), "a colour that is no token"


def test_theme_switches_palette_and_sheet(qapp: QApplication, theme: Theme, qtbot) -> None:
    theme.apply("light")
    before = qapp.styleSheet()
    with qtbot.waitSignal(theme.changed):
        theme.apply("dark")
    assert tokens() is DARK
    assert qapp.styleSheet() != before
    assert qapp.palette().color(QPalette.ColorRole.Window).name().upper() == DARK.window
    theme.apply("light")
    assert qapp.palette().color(QPalette.ColorRole.Window).name().upper() == LIGHT.window


def test_theme_follows_the_system_only_when_told(qapp: QApplication, theme: Theme) -> None:
    theme.apply("system")
    qapp.styleHints().setColorScheme(Qt.ColorScheme.Dark)
    assert tokens().name == ("dark" if qapp.styleHints().colorScheme() == Qt.ColorScheme.Dark else "light")
    theme.apply("light")
    qapp.styleHints().setColorScheme(Qt.ColorScheme.Dark)
    assert tokens() is LIGHT


def test_every_icon_can_be_drawn(qapp: QApplication) -> None:
    for path in (assets_dir() / "icons").glob("*.svg"):
        image = icons.pixmap(path.stem, "#D9541E", 16, 2.0).toImage()
        painted = {
            image.pixelColor(x, y).name() for x in range(32) for y in range(32) if image.pixelColor(x, y).alpha() > 200
        }
        assert "#d9541e" in painted, path.stem
    assert "ISC License" in (assets_dir() / "icons" / "LICENSE").read_text(encoding="utf-8")


def test_both_languages_say_the_same_things() -> None:
    english, korean = texts.load("en"), texts.load("ko")
    assert english.keys() == korean.keys()
    for key, text in english.items():
        names = {name for _, name, _, _ in string.Formatter().parse(text) if name}
        assert names == {name for _, name, _, _ in string.Formatter().parse(korean[key]) if name}, key
        assert korean[key].strip(), key


def test_every_text_that_is_asked_for_exists() -> None:
    package = assets_dir().parent / "ignis_desktop"
    asked: set[str] = set()
    patterns: set[str] = set()
    for path in package.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        asked |= set(re.findall(r"""\btr\(\s*"([^"{]+)\"""", source))
        patterns |= set(re.findall(r"""\btr\(\s*f"([^"]+)\"""", source))
    known = texts.load("en").keys()
    assert asked, "nothing was found"
    assert asked <= known, asked - known
    for pattern in patterns:
        expression = re.sub(r"\\\{.*?\\\}", "[a-z_0-9]+", re.escape(pattern))
        assert any(re.fullmatch(expression, key) for key in known), pattern


def test_unknown_text_is_an_error() -> None:
    with pytest.raises(KeyError):
        texts.tr("no.such.text")


def test_torch_comes_before_qt() -> None:
    """On Windows the other order fails with WinError 1114 (pytorch issue 166628)."""
    script = (
        "import sys\n"
        "order = []\n"
        "class Watch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('torch', 'PySide6') and name not in order: order.append(name)\n"
        "sys.meta_path.insert(0, Watch())\n"
        "import ignis_desktop.app\n"
        "print(*order)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.split() == ["torch", "PySide6"]


def test_pyside_counts_references_to_none(qapp: QApplication) -> None:
    """PySide6 6.12.0 drops a reference to None with every call on Python 3.11, until the interpreter aborts."""
    thing = QObject()
    before = sys.getrefcount(None)
    for _ in range(200):
        thing.setObjectName("name")
    assert sys.getrefcount(None) > before - 100
