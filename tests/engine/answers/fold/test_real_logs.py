"""The real logs: how far they fold, and that their templates are the events that the services log."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.answers.fold.fold import Fold, fold
from engine.answers.fold.render import render_rows, render_templates
from engine.answers.fold.source import Source
from engine.text.tokenizer import Tokenizer
from tests.engine.answers.fold.measure import varied
from tests.engine.answers.fold.test_fold import check

ROOT = Path(__file__).parents[4]
LOGS = ROOT / "tests" / "data" / "logs"

SIZES = {
    # lines, templates, share of the text's tokens that is left of it
    "postgresql.log": (1442, (80, 110), 0.07),
    "nginx-access.log": (1118, (12, 25), 0.04),
    "redis.log": (926, (50, 70), 0.05),
    "sshd.log": (556, (22, 36), 0.09),
    "dpkg.log": (1400, (12, 22), 0.02),
}

EVENTS = {
    "sshd.log": (
        "Invalid user <oracle|pi|test…9> from 127.0.0.1 port <41666|41670|41678…32+> (×148)",
        "User postgres not allowed because account is locked (×12)",
        "drop connection #<3|5|4> from [127.0.0.1]:<37236|37268|37270|37292> on [127.0.0.1]:38129 past MaxStartups"
        " (×4)",
        "beginning MaxStartups throttling",
    ),
    "dpkg.log": (
        "startup packages configure (×8)",
        "upgrade openssh-client:amd64 1:9.2p1-2+deb12u6 1:9.2p1-2+deb12u10",
    ),
    "postgresql.log": (
        "[4178] postgres@shop ERROR: deadlock detected",
        "[<4339|4344|4348…9>] report@shop FATAL: remaining connection slots are reserved for non-replication superuser"
        " connections (×9)",
        "[3565] LOG: received SIGHUP, reloading configuration files (×2)",
    ),
    "redis.log": (
        "<3457|4469>:M * Background saving terminated with success (×3)",
        "<3457:M|3637:S|4469:M|4608:S> * Ready to accept connections (×4)",
    ),
    "nginx-access.log": ('127.0.0.1 - - "DELETE /about HTTP/1.1" 405 157 "-" "PostmanRuntime/7.39.0"',),
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(ROOT / "assets" / "ember")


def read(name: str) -> Fold:
    return fold(Source((LOGS / name).read_bytes()))


@pytest.mark.parametrize("name", SIZES)
def test_a_log_folds_to_its_events(name: str, tokenizer: Tokenizer) -> None:
    lines, (least, most), share = SIZES[name]
    folded = read(name)
    assert folded.source.lines == lines
    assert least <= len(folded.templates) - 1 <= most
    texts = [line.text for line in render_templates(folded)]
    assert set(EVENTS[name]) <= set(texts)
    tokens = sum(len(tokenizer.encode(text + "\n")) for text in texts)
    assert tokens <= share * len(tokenizer.encode((LOGS / name).read_text()))
    check(folded)


def test_every_line_that_answers_a_question_is_reached() -> None:
    """From its template, then by its values among those of the template's rows, down to the line itself."""
    folds = {name: read(name) for name in SIZES}
    for question in json.loads((LOGS / "questions.json").read_text()):
        folded = folds[question["log"]]
        for line in question["lines"]:
            row = folded.source.rows_of(line)[0]
            template = int(folded.template_of(np.array([row]))[0])
            assert template in {shown.template for shown in render_templates(folded)}
            rows = folded.rows_of([template])
            (mine,) = (shown for shown in render_rows(folded, rows) if row in shown.rows)
            assert mine.text
            assert line in folded.lines_of(mine.rows)


def test_times_of_real_logs() -> None:
    for name, first, last in (
        ("postgresql.log", "2026-11-30T16:40:50.834", "2026-11-30T16:42:43"),
        ("nginx-access.log", "2026-11-30T16:42:46", "2026-11-30T16:43:12"),
        ("dpkg.log", "2026-11-30T16:11:00", "2026-11-30T16:35:53"),
    ):
        folded = read(name)
        low, high = (np.datetime64(t, "us") for t in folded.time_range)
        assert low == np.datetime64(first)
        assert folded.kinds.dated
        assert folded.kinds.with_year
        assert low < high < np.datetime64("2026-12-01")
        assert str(high)[:10] == last[:10]
    assert not read("sshd.log").kinds.any


def test_values_of_rows_are_short(tokenizer: Tokenizer) -> None:
    folded = read("nginx-access.log")
    template = max(folded.templates, key=lambda t: t.count)
    rows = folded.rows_of([template.number])
    shown = render_rows(folded, rows)
    whole = sum(len(tokenizer.encode(folded.source.row(int(row)))) for row in rows)
    assert sum(len(tokenizer.encode(line.text)) for line in shown) < whole / 4


def test_a_million_tokens_fold_to_a_window_of_a_large_model(tokenizer: Tokenizer) -> None:
    text = b"".join(varied(2_000_000)).decode()
    tokens = len(tokenizer.encode(text[:200_000])) / 200_000 * len(text)
    folded = fold(Source(text))
    assert tokens > 1_000_000
    assert sum(len(tokenizer.encode(line.text + "\n")) for line in render_templates(folded)) < 30_000
