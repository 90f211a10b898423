"""Markdown: what it turns into, what it must never do, and growing texts."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from ignis_desktop.widgets.code_highlight import highlight
from ignis_desktop.widgets.markdown import GrowingMarkdown, join, render, with_caret
from ignis_desktop.widgets.rich_text import CodeView, ProseView, code_document, height_for, open_link, prose_document
from ignis_desktop.widgets.tokens import DARK, LIGHT

TEXT = """\
A log is a **record**. See [the manual](https://example.org/a?b=1&c=2).

1. one
2. two

   ```sh
   grep -n 'x' < file
   ```

```python
def find(word: str) -> int:
    return 42  # the answer
```

| a | b |
|---|---|
| 1 | <b>2</b> |

> quoted

    indented code

Last *words* here.
"""


def test_pieces() -> None:
    pieces = render(TEXT, LIGHT)
    assert [piece.kind for piece in pieces] == ["prose", "code", "prose", "code", "prose"]
    assert pieces[1].language == "python"
    assert pieces[1].text == "def find(word: str) -> int:\n    return 42  # the answer"
    assert pieces[3].text == "indented code"
    assert "<table>" in pieces[2].text
    assert "<pre>grep -n" in pieces[0].text.replace("<span", "").replace("</span>", "") or "<pre>" in pieces[0].text
    assert 'href="https://example.org/a?b=1&amp;c=2"' in pieces[0].text


def test_raw_html_stays_text() -> None:
    (piece,) = render("<script>alert(1)</script> and <img src=x onerror=y>", LIGHT)
    assert "<script" not in piece.text
    assert "<img" not in piece.text
    assert "&lt;script&gt;" in piece.text


def test_pictures_become_links() -> None:
    (piece,) = render('![a "cat"](file:///etc/passwd) ![x](https://example.org/"><b>)', LIGHT)
    assert "<img" not in piece.text
    assert "<b>" not in piece.text


def test_only_safe_links_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    for address in ("https://example.org", "mailto:a@b.c", "file:///etc/passwd", "javascript:alert(1)", "smb://x", ""):
        open_link(QUrl(address))
    assert opened == ["https://example.org", "mailto:a@b.c"]


def test_nothing_is_loaded_for_a_text(qtbot) -> None:
    view = ProseView()
    qtbot.addWidget(view)
    assert view.loadResource(2, QUrl("file:///etc/hostname")) is None


@pytest.mark.parametrize("step", [1, 3, 7, 50])
def test_growing_text_ends_as_the_whole_one(step: int) -> None:
    growing = GrowingMarkdown(LIGHT)
    pieces = []
    for start in range(0, len(TEXT), step):
        pieces = growing.add(TEXT[start : start + step])
    whole = render(TEXT, LIGHT)
    assert "".join(piece.text for piece in pieces) == "".join(piece.text for piece in whole)
    assert [piece.kind for piece in pieces] == [piece.kind for piece in whole]


def test_growing_text_keeps_finished_pieces() -> None:
    growing = GrowingMarkdown(LIGHT)
    growing.add("x " * 3000 + "\n\n")
    first = growing.add("more")[0]
    assert growing.add(" words\n\nand more")[0] is first


def test_text_that_markdown_would_swallow_is_shown() -> None:
    assert "1. 2. 3." in render("1. 2. 3.", LIGHT)[0].text
    assert "hr" in render("---", LIGHT)[0].text


def test_long_prose_is_cut_into_pieces() -> None:
    pieces = render("\n\n".join("word " * 100 for _ in range(40)), LIGHT)
    assert len(pieces) > 3
    assert max(len(piece.text) for piece in pieces) < 5_000
    assert join(pieces) == pieces


def test_caret_stands_behind_the_last_letter() -> None:
    prose = with_caret(render("Hello\n\n- one\n- two", LIGHT), LIGHT)
    assert (
        prose[-1].text.index("two")
        < prose[-1].text.index("▍")
        < prose[-1].text.index("</li>", prose[-1].text.index("two"))
    )
    assert [piece.kind for piece in with_caret(render("```\nx", LIGHT), LIGHT)] == ["code", "prose"]
    assert "▍" in with_caret([], LIGHT)[0].text


def test_highlighting_colours_and_escapes() -> None:
    html = highlight("def f(): return '<b>'", "python", DARK)
    assert DARK.code_keyword in html
    assert DARK.code_string in html
    assert "<b>" not in html
    assert highlight("a < b", "no-such-language", LIGHT) == "a &lt; b"
    assert "<span" not in highlight("x = 1\n" * 20_000, "python", LIGHT)


def test_code_view_copies_the_code_as_it_is(qtbot, qapp) -> None:
    (piece,) = render("```python\n\tif a < b:\n\n        pass\n```", LIGHT)
    document = code_document(piece.text, piece.language)
    assert document.toPlainText() == piece.text
    view = CodeView()
    qtbot.addWidget(view)
    view.show_code(piece, document)
    view._copy.click()
    assert qapp.clipboard().text() == "\tif a < b:\n\n        pass"


def test_heights_follow_the_width(qtbot) -> None:
    (piece,) = render("word " * 200, LIGHT)
    document = prose_document(piece.text)
    assert height_for(piece, document, 300) > 2 * height_for(piece, document, 700)
