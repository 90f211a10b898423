"""Renders PySide6 windows offscreen as training screens: real widgets, many palettes and scales, exact boxes.

Windows are built from toolbars, menus, trees, tables, forms, tabs and dialogs with the drawer's words and icons. A
drawn title bar or panel around some of them stands for the desktop. Set QT_QPA_PLATFORM=offscreen.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import shiboken6
from PIL import Image
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QAction, QColor, QFont, QIcon, QImage, QPalette, QPixmap
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDockWidget,
    QFormLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QMainWindow,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QSlider,
    QSpinBox,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QToolBar,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from .canvas import Canvas
from .canvas import Kit as Assets
from .desktop import Desktop
from .looks import make_look
from .pack import encode_picture
from .words import Label, Words

SIZES = [(800, 600), (1024, 768), (1280, 800), (1366, 768), (1600, 900), (1920, 1080), (2560, 1440), (3840, 2160)]
_WEIGHTS = [2, 4, 3, 2, 1.5, 2, 0.5, 0.15]
_FAMILIES = [
    "DejaVu Sans",
    "Cantarell",
    "Inter",
    "Noto Sans",
    "Open Sans",
    "Roboto",
    "Liberation Sans",
    "Carlito",
    "Lato",
]
_SHEETS = [
    "",
    "",
    "",
    "QPushButton{{border:1px solid {line};border-radius:{r}px;padding:4px 12px;background:{button}}}"
    "QLineEdit,QComboBox,QSpinBox{{border:1px solid {line};border-radius:{r}px;padding:3px}}",
    "QToolBar{{border:0;spacing:{r}px}} QTabBar::tab{{padding:6px 14px;border:0;border-bottom:2px solid transparent}}"
    "QTabBar::tab:selected{{border-bottom:2px solid {accent}}}",
    "QMenuBar{{background:{panel}}} QGroupBox{{font-weight:bold;border:0}}"
    "QPushButton{{padding:5px 14px;border-radius:{r}px;border:0;background:{button}}}"
    "QHeaderView::section{{border:0;padding:4px;background:{panel}}}",
]
Where = Callable[[], QRect | None]


class Window:
    """One main window of random content; `items` are (kind, questions, where) with `where` read after layout."""

    def __init__(self, assets: Assets, rng: random.Random, look: Any, words: Words) -> None:
        self.assets, self.rng, self.look, self.words = assets, rng, look, words
        self.items: list[tuple[str, list[dict[str, str]], Where]] = []
        self.main = QMainWindow()
        self.scale = 1.0

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    # -- places
    def at(self, widget: QWidget, part: Callable[[], QRect] | None = None) -> Where:
        """Where a widget, or `part` of it in its own coordinates, lies in the window, as far as it is visible."""

        def where() -> QRect | None:
            if not widget.isVisibleTo(self.main):
                return None
            rect = part() if part is not None else widget.rect()
            seen = rect.intersected(widget.rect())
            parent = widget.parentWidget()
            while parent is not None and parent is not self.main:  # scrolled or squeezed out of sight
                seen = seen.intersected(parent.rect().translated(widget.mapFrom(parent, QPoint(0, 0))))
                parent = parent.parentWidget()
            if seen.width() * seen.height() < 0.8 * rect.width() * rect.height() or seen.isEmpty():
                return None
            return QRect(widget.mapTo(self.main, seen.topLeft()), seen.size())

        return where

    def note(self, kind: str, queries: list[dict[str, str]], where: Where) -> None:
        self.items.append((kind, queries, where))

    def icon(self, number: int) -> QIcon:
        icon = QIcon()
        colour = self.look.icon_tint or self.look.fg
        for size in (16, 24, 32, 48):
            bitmap = self.assets.bitmap(number, size)
            if bitmap.ndim == 2:
                bitmap = np.dstack([np.full((size, size, 3), colour, np.uint8), bitmap])
            data = np.ascontiguousarray(bitmap)
            icon.addPixmap(
                QPixmap.fromImage(QImage(data.data, size, size, 4 * size, QImage.Format.Format_RGBA8888).copy())
            )
        return icon

    def fresh_icon(self) -> int | None:
        for _ in range(30):
            number = self.assets.choose(self.look.icons, self.rng, 0.8)
            if self.words.take_icon(self.assets.icons[number]):
                return number
        return None

    # -- parts
    def menus(self) -> None:
        bar = self.main.menuBar()
        for _ in range(self.rng.randint(3, 9)):
            label = self.words.label("n", 14)
            if label is not None:
                action = bar.addAction(label.text.replace("&", "&&"))
                self.note("menu", self.words.ask("menu", label), self.at(bar, lambda a=action: bar.actionGeometry(a)))

    def tools(self) -> None:
        bar = QToolBar(self.main)
        side = self.rng.choice([16, 16, 20, 22, 24, 32])
        bar.setIconSize(QSize(side, side))
        bar.setMovable(self.chance(0.4))
        style = self.rng.choices(["icon", "beside", "under"], [8, 1, 1])[0]
        kinds = Qt.ToolButtonStyle
        bar.setToolButtonStyle(
            {
                "icon": kinds.ToolButtonIconOnly,
                "beside": kinds.ToolButtonTextBesideIcon,
                "under": kinds.ToolButtonTextUnderIcon,
            }[style]
        )
        vertical = self.chance(0.2)
        for _ in range(self.rng.randint(4, 22)):
            if self.chance(0.12):
                bar.addSeparator()
                continue
            number = self.fresh_icon()
            if number is None:
                continue
            entry = self.assets.icons[number]
            action = QAction(self.icon(number), entry["names"][0].capitalize(), self.main)
            action.setEnabled(self.chance(0.9))
            bar.addAction(action)
            button = bar.widgetForAction(action)
            if style == "icon":
                self.note("icon", self.words.icon_questions(entry), self.at(button))
            else:
                self.note(
                    "button",
                    self.words.ask("button", Label(entry["names"][0].capitalize(), entry["functions"])),
                    self.at(button),
                )
        if not vertical and self.chance(0.3) and self.words.take("search", "edit-find", "find"):
            field = QLineEdit(bar)
            field.setPlaceholderText(self.rng.choice(["Search", "Find...", "Filter"]))
            bar.addWidget(field)
            self.note(
                "field",
                [{"q": "the search field", "by": "name"}, *self.words.functions(["type what I am looking for"], 1)],
                self.at(field),
            )
        self.main.addToolBar(Qt.ToolBarArea.LeftToolBarArea if vertical else Qt.ToolBarArea.TopToolBarArea, bar)
        if self.chance(0.3):
            self.main.addToolBarBreak()

    def button(self, letter: str = "b") -> QPushButton | None:
        label = self.words.label(letter, 20)
        if label is None:
            return None
        button = QPushButton(label.text.replace("&", "&&"))
        if self.chance(0.2):
            button.setIcon(self.icon(self.rng.choice(self.look.icons)))
        button.setDefault(self.chance(0.2))
        self.note("button", self.words.ask("button", label), self.at(button))
        return button

    def choice(self) -> QWidget | None:
        label = self.words.label("c", 48)
        if label is None:
            return None
        radio = self.chance(0.25)
        box = (QRadioButton if radio else QCheckBox)(label.text.replace("&", "&&"))
        box.setAutoExclusive(False)
        box.setChecked(self.chance(0.5))
        kind = "radio" if radio else "check"

        def used() -> QRect:
            return QRect(0, 0, min(box.width(), box.sizeHint().width()), box.height())

        self.note(kind, self.words.ask(kind, label), self.at(box, used))
        return box

    def form(self) -> QWidget:
        rng, holder = self.rng, QWidget()
        layout = QVBoxLayout(holder)
        for _ in range(rng.randint(1, 3)):
            title = self.words.label("t", 24)
            group = QGroupBox(title.text.replace("&", "&&") if title and self.chance(0.7) else "")
            rows = QFormLayout(group)
            for _ in range(rng.randint(1, 6)):
                if self.chance(0.4):
                    box = self.choice()
                    if box is not None:
                        rows.addRow(box)
                    continue
                label = self.words.label("f", 24)
                if label is None:
                    continue
                kind = rng.choices(["field", "combo", "spin", "slider"], [5, 2, 1, 0.6])[0]
                field: QWidget
                if kind == "combo":
                    field = QComboBox()
                    field.addItems([self.words.value() for _ in range(3)])
                elif kind == "spin":
                    field = QSpinBox()
                    field.setValue(rng.randint(0, 90))
                elif kind == "slider":
                    field = QSlider(Qt.Orientation.Horizontal)
                    field.setValue(rng.randint(0, 90))
                else:
                    field = QLineEdit(self.words.value() if self.chance(0.5) else "")
                rows.addRow(label.text + ":", field)
                self.note(
                    "combo" if kind == "combo" else "field",
                    self.words.ask("combo" if kind == "combo" else "field", label),
                    self.at(field),
                )
            layout.addWidget(group)
        layout.addStretch(1)
        line = QHBoxLayout()
        if self.chance(0.7):
            line.addStretch(1)
        for _ in range(rng.randint(1, 4)):
            button = self.button()
            if button is not None:
                line.addWidget(button)
        layout.addLayout(line)
        return holder

    def tree(self) -> QWidget:
        tree, rng = QTreeWidget(), self.rng
        tree.setHeaderHidden(True)
        tree.setIconSize(QSize(16, 16))
        icons = self.chance(0.6)
        parents: list[QTreeWidgetItem] = []
        for _ in range(rng.randint(8, 34)):
            label = self.words.label("l", 30)
            if label is None:
                break
            item = QTreeWidgetItem([label.text])
            if icons:
                item.setIcon(0, self.icon(rng.choice(self.look.icons)))
            if parents and self.chance(0.6):
                rng.choice(parents[-3:]).addChild(item)
            else:
                tree.addTopLevelItem(item)
            if self.chance(0.35):
                parents.append(item)
            self.note(
                "item", self.words.ask("item", label), self.at(tree.viewport(), lambda i=item: tree.visualItemRect(i))
            )
        tree.expandAll()
        return tree

    def rows(self) -> QWidget:
        view, files = QListWidget(), self.chance(0.4)
        view.setAlternatingRowColors(self.chance(0.3))
        for _ in range(self.rng.randint(6, 40)):
            label = self.words.file() if files else self.words.label("l", 30)
            if label is None:
                continue
            view.addItem(label.text)
            item = view.item(view.count() - 1)
            if self.chance(0.5):
                item.setIcon(self.icon(self.rng.choice(self.look.icons)))
            kind = "file" if files else "item"
            self.note(
                kind, self.words.ask(kind, label), self.at(view.viewport(), lambda i=item: view.visualItemRect(i))
            )
        if self.chance(0.2):
            view.setViewMode(QListWidget.ViewMode.IconMode)
            view.setIconSize(QSize(32, 32))
            view.setGridSize(QSize(110, 70))
        return view

    def table(self) -> QWidget:
        rng = self.rng
        n, m = rng.randint(2, 6), rng.randint(4, 30)
        table = QTableWidget(m, n)
        table.setShowGrid(self.chance(0.6))
        table.setAlternatingRowColors(self.chance(0.4))
        table.verticalHeader().setVisible(self.chance(0.5))
        header = table.horizontalHeader()
        for column in range(n):
            label = self.words.label("h", 16)
            table.setHorizontalHeaderItem(column, QTableWidgetItem(label.text if label else str(column)))
            if label is not None:

                def section(c: int = column) -> QRect:
                    return QRect(header.sectionViewportPosition(c), 0, header.sectionSize(c), header.height())

                self.note("header", self.words.ask("header", label), self.at(header.viewport(), section))
            for row in range(m):
                text = self.words.words(2) if column == 0 else self.words.value()
                item = QTableWidgetItem(text)
                table.setItem(row, column, item)
                if (column == 0 or self.chance(0.12)) and self.words.take(text):
                    kind = "item" if column == 0 else "cell"
                    self.note(
                        kind,
                        self.words.ask(kind, Label(text, [])),
                        self.at(table.viewport(), lambda i=item: table.visualItemRect(i)),
                    )
        header.setStretchLastSection(True)
        return table

    def text(self) -> QWidget:
        edit = QPlainTextEdit("\n".join(self.words.sentence(100) for _ in range(40)))
        if self.chance(0.4):
            edit.setFont(QFont("DejaVu Sans Mono", 10))
        return edit

    def tabs(self, depth: int) -> QWidget:
        tabs, files = QTabWidget(), self.chance(0.3)
        tabs.setTabsClosable(files and self.chance(0.6))
        tabs.setDocumentMode(self.chance(0.4))
        bar = tabs.tabBar()
        for i in range(self.rng.randint(2, 6)):
            label = self.words.file() if files else self.words.label("t", 18)
            if label is None:
                continue
            tabs.addTab(self.content(depth + 1) if i == 0 else QLabel(""), label.text.replace("&", "&&"))
            self.note("tab", self.words.ask("tab", label), self.at(bar, partial(bar.tabRect, tabs.count() - 1)))
        return tabs

    def content(self, depth: int = 0) -> QWidget:
        kinds: list[Callable[[], QWidget]] = [self.form, self.form, self.tree, self.rows, self.table, self.text]
        if depth < 2 and self.chance(0.45):
            split = QSplitter(Qt.Orientation.Horizontal if self.chance(0.7) else Qt.Orientation.Vertical)
            for _ in range(self.rng.choice([2, 2, 3])):
                split.addWidget(self.content(depth + 1))
            return split
        if depth < 2 and self.chance(0.3):
            return self.tabs(depth)
        return self.rng.choice(kinds)()

    def build(self) -> None:
        if self.chance(0.75):
            self.menus()
        for _ in range(self.rng.choice([0, 1, 1, 2, 3])):
            self.tools()
        if self.chance(0.25):
            label = self.words.label("t", 18)
            if label is not None:
                dock = QDockWidget(label.text.replace("&", "&&"), self.main)
                dock.setWidget(self.rng.choice([self.tree, self.rows, self.form])())
                self.main.addDockWidget(
                    self.rng.choice([Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea]), dock
                )
        self.main.setCentralWidget(self.content())
        if self.chance(0.5):
            for _ in range(self.rng.randint(1, 3)):
                self.main.statusBar().addWidget(QLabel(self.words.value()))

    def popup(self) -> tuple[QMenu, list[tuple[list[dict[str, str]], QAction]]]:
        menu, asked = QMenu(), []
        for _ in range(self.rng.randint(4, 14)):
            if self.chance(0.12):
                menu.addSeparator()
                continue
            label = self.words.label("m", 26)
            if label is None:
                continue
            action = menu.addAction(label.text.replace("&", "&&"))
            if self.chance(0.35):
                action.setIcon(self.icon(self.rng.choice(self.look.icons)))
            if self.chance(0.3):
                action.setShortcut(f"Ctrl+{chr(65 + self.rng.randint(0, 25))}")
            asked.append((self.words.ask("menuitem", label), action))
        return menu, asked


def _hex(colour: tuple[int, int, int]) -> str:
    return "#" + bytes(colour).hex()


def _palette(look: Any) -> QPalette:
    roles = QPalette.ColorRole
    palette = QPalette()
    for role, colour in (
        (roles.Window, look.bg),
        (roles.WindowText, look.fg),
        (roles.Base, look.base),
        (roles.AlternateBase, look.panel),
        (roles.Text, look.fg),
        (roles.Button, look.button),
        (roles.ButtonText, look.fg),
        (roles.Highlight, look.accent),
        (roles.HighlightedText, (255, 255, 255)),
        (roles.PlaceholderText, look.dim),
        (roles.Mid, look.line),
        (roles.ToolTipBase, look.base),
        (roles.ToolTipText, look.fg),
        (roles.Link, look.accent),
    ):
        palette.setColor(role, QColor(*colour))
    for role in (roles.Text, roles.WindowText, roles.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(*look.dim))
    return palette


def _picture(widget: QWidget, ratio: float) -> Image.Image:
    image = QImage(round(widget.width() * ratio), round(widget.height() * ratio), QImage.Format.Format_RGB888)
    image.setDevicePixelRatio(ratio)
    widget.render(image)
    data = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return Image.fromarray(data[:, : image.width() * 3].reshape(image.height(), image.width(), 3).copy())


def windows(assets: Assets, n: int, seed: int, held: bool = False) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """`n` screens with one Qt window each."""
    app = QApplication.instance() or QApplication([])
    rng = random.Random(seed)
    for _ in range(n):
        width, height = rng.choices(SIZES, _WEIGHTS)[0]
        ratio = rng.choice([1, 1, 1, 1.25, 1.5] if width < 1500 else [1, 1.25, 1.5, 2] if width < 3000 else [2, 2.5])
        words, look = Words(assets, rng, held), make_look(assets, rng, ratio, held)
        app.setStyle(rng.choice(["Fusion", "Fusion", "Windows"]))
        app.setPalette(_palette(look))
        app.setFont(QFont(rng.choice(_FAMILIES), rng.choice([8, 9, 9, 10, 10, 11, 12])))
        colours = {
            "line": _hex(look.line),
            "button": _hex(look.button),
            "accent": _hex(look.accent),
            "panel": _hex(look.panel),
        }
        app.setStyleSheet(rng.choice(_SHEETS).format(r=rng.choice([2, 4, 6, 9]), **colours))
        background = tuple(rng.randint(0, 255) for _ in range(3))
        canvas = Canvas(assets, rng, width, height, background)  # type: ignore[arg-type]
        desktop = Desktop(canvas, look, words)
        left = top = 0.0
        bottom, right = float(height), float(width)
        if rng.random() < 0.35:
            bottom -= desktop.panel(False)
        if rng.random() < 0.4:
            left, top = rng.uniform(0, width * 0.2), rng.uniform(0, height * 0.15)
            right, bottom = right - rng.uniform(0, width * 0.2), bottom - rng.uniform(0, height * 0.15)
        if rng.random() < 0.75 or left:
            top = desktop.title_bar(left, top, right - left, dialog=False)
        window = Window(assets, rng, look, words)
        window.build()
        main = window.main
        main.resize(int((right - left) / ratio), int((bottom - top) / ratio))
        main.show()
        app.processEvents()
        picture = _picture(main, ratio)
        at = (round(left), round(top))
        canvas.image.paste(picture, at)
        for kind, queries, where in window.items:
            rect = where()
            if rect is not None:
                x, y = at[0] + rect.x() * ratio, at[1] + rect.y() * ratio
                canvas.add((x, y, x + rect.width() * ratio, y + rect.height() * ratio), kind, queries)
        if rng.random() < 0.3:
            menu, asked = window.popup()
            menu.ensurePolished()
            menu.resize(menu.sizeHint())
            shown = _picture(menu, ratio)
            mx, my = rng.randint(0, max(1, width - shown.width)), rng.randint(0, max(1, height - shown.height))
            canvas.cover((mx, my, mx + shown.width, my + shown.height))
            canvas.image.paste(shown, (mx, my))
            for queries, action in asked:
                rect = menu.actionGeometry(action)
                canvas.add(
                    (
                        mx + rect.x() * ratio,
                        my + rect.y() * ratio,
                        mx + rect.right() * ratio,
                        my + rect.bottom() * ratio,
                    ),
                    "menuitem",
                    queries,
                )
        main.close()
        app.processEvents()
        # Live windows slow every restyling down, and no event loop runs that would delete them later. Python's handles
        # of their parts go first: a handle that outlives its part is taken for the next one at that address.
        window.items.clear()
        window = where = menu = asked = action = None
        gc.collect()
        shiboken6.delete(main)
        items = canvas.items
        if len(items) >= 4:
            record = {
                "w": width,
                "h": height,
                "source": "qt",
                "theme": "dark" if look.dark else "light",
                "split": "heldout" if held else "train",
                "items": items,
                "absent": [query for item in words.absent for query in item["queries"]],
            }
            yield encode_picture(canvas.image, 76), record
