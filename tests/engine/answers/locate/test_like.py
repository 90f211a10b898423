"""Which rows answer as well as one that does."""

from __future__ import annotations

import pytest

from engine import Engine
from engine.answers.fold.fold import fold
from engine.answers.fold.source import Source
from engine.answers.locate import locate
from engine.answers.locate.lexical import match
from engine.answers.locate.like import rows_like

LOG = """\
10:00:01 db[1]: Aborted connection 5 to db 'shop' user 'web'
10:00:02 db[1]: Access denied for user 'web'@'localhost'
10:00:03 db[1]: Aborted connection 8 before login, nothing was sent (a quite different reason stands here, and more)
10:00:04 db[1]: Connection pool: one was aborted
10:00:05 db[1]: Access denied for user 'anna'@'localhost' while the server was in read-only mode
10:00:06 web: heartbeat of worker 3
10:00:07 web: lost the heartbeat of worker 4, which is restarted from here and will report again soon
10:00:08 web: heartbeat of worker 9
"""


@pytest.mark.parametrize(
    ("question", "line", "lines"),
    [
        ("a connection that was aborted", 1, [1, 3]),  # another template, in the same run; not the pool's
        ("access denied for user", 2, [2, 5]),
        ("access denied for user 'web'", 2, [2]),
        ("the heartbeat", 6, [6, 8]),  # a lone word behind another beginning says something else
    ],
)
def test_rows_like_one(question: str, line: int, lines: list[int]) -> None:
    with Source(LOG) as source:
        folded = fold(source)
        words = match((block.data for block in source.blocks()), source.rows, question)
        assert (rows_like(folded, question, words, line - 1) + 1).tolist() == lines


def test_a_level_is_looked_up_and_nothing_is_read(tiny: Engine) -> None:
    text = "".join(f"10:00:{n:02} {'WARN' if n % 3 == 1 else 'INFO'} error number {n}\n" for n in range(20))
    last = locate(tiny, text, "What was the last warning before 10:00:15?", kind="log")
    assert (last.line, last.found, last.input_tokens) == (14, True, 0)
    assert locate(tiny, text, "How many warnings were logged?", kind="log").count == 7
    early = locate(tiny, text, "What was the last warning before 10:00:01?", kind="log")
    assert (early.found, early.line, early.note) == (False, None, "No line of that time answers.")
    # No row is of that level, so "error" is a word like others.
    assert locate(tiny, text, "How many errors were logged?", kind="log").input_tokens > 0
