"""What a row says of how grave it is."""

from __future__ import annotations

import pytest

from engine.answers.fold.index import read_question
from engine.answers.fold.levels import level_of, rows_of_level

ROWS = [
    (b"2026-11-30 21:07:15,001 WARN  [main] shop.Config - no file", "warning"),
    (b"[Mon Nov 30 21:11:00 2026] [ssl:warn] [pid 9] AH01906: a CA certificate", "warning"),
    (b'{"ts":1,"caller":"a.go:1","msg":"error in it","level":"info"}', "info"),
    (b"ts=2026-11-30T21:22:59Z caller=file.go:343 level=error msg=x", "error"),
    (b"2026-11-30 16:40:57 UTC [3975] web@shop FATAL:  password failed", "critical"),
    (b"[2026-11-30 21:09:34] [3385] [CRITICAL] WORKER TIMEOUT", "critical"),
    (b"sshd[7]: error: kex_exchange_identification: closed", "error"),
    (b"E1130 21:13:35.202000       1 main.go:7] no route", "error"),
    (b"2026-11-30 21:22:01 0 [Note] ready", "notice"),
    (b"<3>1 2026-11-30T21:22:01Z host app - - - said", None),
    (b"an error occurred while the WARNINGS table was read", None),
    (b"GET /error/404 HTTP/1.1", None),
    (b"order saved, code INFO-7", None),
]


@pytest.mark.parametrize(("row", "level"), ROWS)
def test_level_of_a_row(row: bytes, level: str | None) -> None:
    assert level_of(row) == level


def test_rows_of_a_level_over_blocks() -> None:
    blocks = [b"a\nERROR b\n", b"", b"INFO no error\nlevel=error c\nE1130 21:13:35.2 x\n[err] d\n"]
    assert rows_of_level(blocks, "error").tolist() == [1, 3, 4, 5]
    assert rows_of_level(blocks, "warning").tolist() == []


@pytest.mark.parametrize(
    ("question", "level"),
    [
        ("What was the first warning?", "warning"),
        ("How many errors were logged with level=error?", "error"),
        ("the last 5 errors after 14:02", "error"),
        ("How many critical messages are there?", "critical"),
        ("What was the first warning about memory?", None),
        ("How many errors and warnings were there?", None),
        ("What was the first?", None),
    ],
)
def test_questions_for_a_level_alone(question: str, level: str | None) -> None:
    assert read_question(question).level == level
