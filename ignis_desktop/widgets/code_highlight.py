"""Source code as HTML spans in the theme's colours (pygments finds the tokens)."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound

from ignis_desktop.widgets.tokens import Tokens

HIGHLIGHT_LIMIT = 60_000
"""Characters; longer code is shown in one colour, since colouring it would hold the window up."""

_TONES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "code_comment"),
    (Keyword, "code_keyword"),
    (Operator.Word, "code_keyword"),
    (String, "code_string"),
    (Number, "code_number"),
    (Name.Function, "code_name"),
    (Name.Class, "code_name"),
    (Name.Tag, "code_name"),
    (Name.Attribute, "code_number"),
    (Name.Builtin, "code_name"),
    (Name.Decorator, "code_keyword"),
)


@lru_cache(maxsize=32)
def _lexer(language: str) -> Lexer:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False, ensurenl=False)


@lru_cache(maxsize=256)
def _tone(kind: _TokenType) -> str | None:
    return next((tone for parent, tone in _TONES if kind in parent), None)


def highlight(code: str, language: str, theme: Tokens) -> str:
    """``code`` escaped, with coloured spans; goes inside ``<pre>``."""
    if not language or len(code) > HIGHLIGHT_LIMIT:
        return escape(code)
    parts: list[str] = []
    for kind, text in _lexer(language).get_tokens(code):
        tone = _tone(kind)
        escaped = escape(text)
        parts.append(f'<span style="color:{getattr(theme, tone)}">{escaped}</span>' if tone else escaped)
    return "".join(parts)
