"""Text that can be selected: prose and code blocks, each a document that is laid out once and shown when in view."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QContextMenuEvent, QDesktopServices, QTextDocument, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QTextBrowser, QVBoxLayout, QWidget

from ignis_desktop.widgets.buttons import CopyButton
from ignis_desktop.widgets.code_highlight import highlight
from ignis_desktop.widgets.markdown import Piece
from ignis_desktop.widgets.theme import mono_font, tokens, ui_font

READING_SIZE = 14
CODE_SIZE = 13
CODE_HEADER = 32
CODE_PADDING = 10
_SCROLL_BAR = 12
_SAFE_SCHEMES = frozenset({"http", "https", "mailto"})


def prose_document(html: str, tone: str = "text") -> QTextDocument:
    """HTML of ``markdown.render`` as a document in the theme's colours."""
    document = QTextDocument()
    document.setDocumentMargin(0)
    document.setDefaultFont(ui_font(READING_SIZE))
    document.setDefaultStyleSheet(_prose_style(tone))
    document.setHtml(html)
    return document


def plain_document(text: str, tone: str = "text") -> QTextDocument:
    """Text as it was typed."""
    document = QTextDocument()
    document.setDocumentMargin(0)
    document.setDefaultFont(ui_font(READING_SIZE))
    document.setDefaultStyleSheet(_prose_style(tone))
    document.setHtml(f'<div style="white-space:pre-wrap">{escape(text)}</div>')
    return document


def code_document(code: str, language: str) -> QTextDocument:
    """Highlighted source code; lines are never wrapped."""
    document = QTextDocument()
    document.setDocumentMargin(0)
    document.setDefaultFont(mono_font(CODE_SIZE))
    document.setDefaultTextOption(_no_wrap())
    theme = tokens()
    document.setHtml(f'<pre style="color:{theme.text};margin:0">{highlight(code, language, theme)}</pre>')
    return document


def document_for(piece: Piece) -> QTextDocument:
    return prose_document(piece.text) if piece.kind == "prose" else code_document(piece.text, piece.language)


def height_for(piece: Piece, document: QTextDocument, width: int) -> int:
    """Pixels that ``piece`` takes in a column ``width`` pixels wide."""
    if piece.kind == "prose":
        document.setTextWidth(width)
        return math.ceil(document.size().height())
    inner = width - 2 * CODE_PADDING - 2
    bar = _SCROLL_BAR if document.idealWidth() > inner else 0
    return CODE_HEADER + math.ceil(document.size().height()) + CODE_PADDING + bar + 2


class ProseView(QTextBrowser):
    """Shows one document without scrolling; links open in the browser."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setOpenLinks(False)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.viewport().setAutoFillBackground(False)
        self.anchorClicked.connect(open_link)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Nothing is ever loaded because a text names it."""
        return None

    def createMimeDataFromSelection(self) -> QMimeData:
        """Plain text: colours and fonts of this window have no place in what is copied."""
        data = QMimeData()
        data.setText(self.textCursor().selection().toPlainText())
        return data

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.horizontalScrollBar().maximum() and abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            super().wheelEvent(event)
        else:
            event.ignore()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = self.createStandardContextMenu(event.pos())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())


class CodeView(QFrame):
    """A code block: language and copy button above, the code below, scrolled sideways when it is wide."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("codeBlock")
        self._code = ""
        self._language = QLabel(self)
        self._language.setProperty("kind", "small")
        self._copy = CopyButton(lambda: self._code, self)
        self._body = no_wrap_view(self)
        header = QHBoxLayout()
        header.setContentsMargins(CODE_PADDING, 2, 2, 2)
        header.addWidget(self._language)
        header.addStretch()
        header.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 1, 1, 1)
        layout.setSpacing(0)
        layout.addLayout(header)
        body = QHBoxLayout()
        body.setContentsMargins(CODE_PADDING, 0, CODE_PADDING, 0)
        body.addWidget(self._body)
        layout.addLayout(body)

    def show_code(self, piece: Piece, document: QTextDocument) -> None:
        self._code = piece.text
        self._language.setText(piece.language)
        self._body.setDocument(document)


def no_wrap_view(parent: QWidget) -> ProseView:
    """A view for code: long lines are scrolled, not wrapped."""
    view = ProseView(parent)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
    view.setLineWrapMode(QTextBrowser.LineWrapMode.NoWrap)
    view.setWordWrapMode(QTextOption.WrapMode.NoWrap)
    return view


def open_link(url: QUrl) -> None:
    """Opens web and mail links with the system's program; anything else an answer might name is left alone."""
    if url.scheme() in _SAFE_SCHEMES:
        QDesktopServices.openUrl(url)


def _no_wrap() -> QTextOption:
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    return option


def _prose_style(tone: str) -> str:
    theme = tokens()
    mono = mono_font().family()
    return f"""
        body, div, p, li, td, th, h1, h2, h3, h4, h5, h6, blockquote {{ color: {getattr(theme, tone)}; }}
        p {{ margin: 0 0 8px 0; line-height: 145%; }}
        div {{ line-height: 145%; }}
        li {{ margin: 0 0 4px 0; line-height: 145%; }}
        h1 {{ font-size: 20px; font-weight: 600; margin: 12px 0 8px 0; }}
        h2 {{ font-size: 17px; font-weight: 600; margin: 12px 0 6px 0; }}
        h3, h4, h5, h6 {{ font-size: 15px; font-weight: 600; margin: 10px 0 4px 0; }}
        code {{ font-family: "{mono}"; font-size: {CODE_SIZE}px; background-color: {theme.hover}; }}
        pre {{ font-family: "{mono}"; font-size: {CODE_SIZE}px; background-color: {theme.hover}; margin: 4px 0 8px 0; }}
        blockquote {{ color: {theme.secondary}; margin: 0 0 8px 16px; }}
        table {{ border-collapse: collapse; border: 1px solid {theme.line}; margin: 0 0 8px 0; }}
        th {{ font-weight: 600; text-align: left; padding: 4px 10px; border: 1px solid {theme.line};
              background-color: {theme.window}; }}
        td {{ padding: 4px 10px; border: 1px solid {theme.line}; }}
        a {{ color: {theme.text}; text-decoration: underline; }}
    """
