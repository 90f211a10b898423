"""Markdown into pieces a message is made of: prose as HTML, code as text.

Raw HTML in the source is shown as text, pictures become links: nothing is loaded because an answer names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ignis_desktop.widgets.code_highlight import highlight
from ignis_desktop.widgets.tokens import Tokens

_PROSE_LIMIT = 4_000
"""Characters of HTML in one piece: what an update of a growing answer has to lay out again is bounded."""

_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclass(frozen=True)
class Piece:
    """``text`` is HTML when ``kind`` is "prose", source code when it is "code"."""

    kind: Literal["prose", "code"]
    text: str
    language: str = ""


@dataclass(frozen=True)
class _Block:
    """One block of the document's top level; ``line`` is where it starts."""

    piece: Piece
    line: int


def render(source: str, theme: Tokens) -> list[Piece]:
    """The pieces of a whole text."""
    return join([block.piece for block in _blocks(source, theme)])


def join(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbouring prose in one piece each, cut where it gets long."""
    result: list[Piece] = []
    for piece in pieces:
        last = result[-1] if result else None
        if piece.kind == "prose" and last is not None and last.kind == "prose" and len(last.text) < _PROSE_LIMIT:
            result[-1] = Piece("prose", last.text + piece.text)
        else:
            result.append(piece)
    return result


def with_caret(pieces: Sequence[Piece], theme: Tokens) -> list[Piece]:
    """The same pieces with the streaming caret behind the last letter."""
    caret = f'<span style="color:{theme.accent}">▍</span>'
    if not pieces or pieces[-1].kind == "code":
        return [*pieces, Piece("prose", f"<p>{caret}</p>")]
    text = pieces[-1].text
    closing = re.search(r"(?:</\w+>\s*)*$", text)
    at = closing.start() if closing else len(text)
    return [*pieces[:-1], Piece("prose", text[:at] + caret + text[at:])]


class GrowingMarkdown:
    """A text that grows at its end. Blocks that are complete are kept; only the last one is parsed again."""

    def __init__(self, theme: Tokens) -> None:
        self._theme = theme
        self._done: list[Piece] = []
        self._tail = ""

    def add(self, text: str) -> list[Piece]:
        """Appends ``text`` and returns the pieces of everything so far."""
        self._tail += text
        blocks = _blocks(self._tail, self._theme)
        if len(blocks) > 1:
            self._done = join([*self._done, *(block.piece for block in blocks[:-1])])
            self._tail = "".join(self._tail.splitlines(keepends=True)[blocks[-1].line :])
        return join([*self._done, *(block.piece for block in blocks[-1:])])


def _blocks(source: str, theme: Tokens) -> list[_Block]:
    env: dict[str, object] = {}
    source = source.replace("\r\n", "\n")
    tokens = _parser.parse(source, env)
    lines = source.splitlines(keepends=True)
    blocks: list[_Block] = []
    start = 0
    for index, token in enumerate(tokens):
        if token.level or token.nesting == 1:
            continue
        first = tokens[start]
        line = first.map[0] if first.map else 0
        if first.type in ("fence", "code_block"):
            language = first.info.split()[0] if first.info.strip() else ""
            piece = Piece("code", first.content.removesuffix("\n"), language)
        else:
            html = _html(tokens[start : index + 1], theme, env)
            if first.map and first.type != "hr" and not re.sub(r"<[^>]*>|\s", "", html):
                # Nothing to see, e.g. "1. 2. 3.", which is three lists inside each other: then as it was written.
                html = f"<p>{escape(''.join(lines[first.map[0] : first.map[1]]))}</p>"
            piece = Piece("prose", html)
        blocks.append(_Block(piece, line))
        start = index + 1
    return blocks


def _html(tokens: Sequence[Token], theme: Tokens, env: dict[str, object]) -> str:
    for token in tokens:
        for child in token.children or ():
            if child.type == "image":
                _make_link(child)
    parts: list[str] = []
    start = 0
    for index, token in enumerate(tokens):
        if token.type in ("fence", "code_block"):
            # Code inside a list or a quotation stays in the flow of the text.
            parts.append(_parser.renderer.render(tokens[start:index], _parser.options, env))
            language = token.info.split()[0] if token.info.strip() else ""
            parts.append(f"<pre>{highlight(token.content.removesuffix(chr(10)), language, theme)}</pre>")
            start = index + 1
    parts.append(_parser.renderer.render(tokens[start:], _parser.options, env))
    return "".join(parts)


def _make_link(token: Token) -> None:
    """Turns an image into a link to it, in place."""
    target = escape(str(token.attrs.get("src", "")))
    token.type = "html_inline"
    token.content = f'<a href="{target}">{escape(token.content or target)}</a>'
    token.children = None
