"""Which rows fold together, and how their templates read."""

from __future__ import annotations

import pytest

from engine.answers.fold import cluster
from engine.answers.fold.fold import fold
from engine.answers.fold.render import render_templates, shared
from engine.answers.fold.source import Source


def folded(*rows: str) -> list[str]:
    return [line.text for line in render_templates(fold(Source("\n".join(rows))))]


def test_values_are_listed() -> None:
    assert folded(
        "Failed password for root from 10.0.0.7 port 51122 ssh2",
        "Failed password for admin from 10.0.0.9 port 51123 ssh2",
        "Failed password for root from 10.0.0.7 port 51124 ssh2",
    ) == ["Failed password for <root|admin> from 10.0.0.<7|9> port <51122|51123|51124> ssh2 (×3)"]


def test_many_values_are_counted() -> None:
    text = folded(*(f"connection {n} accepted" for n in range(20)))
    assert text == ["connection <0|1|2…20> accepted (×20)"]
    text = folded(*(f"connection {n} accepted" for n in range(500)))
    assert text == [f"connection <0|1|2…{cluster.VALUES}+> accepted (×500)"]


def test_a_slot_of_one_value_is_a_word() -> None:
    assert folded("listening on 10.0.0.1:80 as web1", "listening on 10.0.0.1:80 as web1") == [
        "listening on 10.0.0.1:80 as web1 (×2)"
    ]


def test_times_are_left_out() -> None:
    assert folded("2026-11-30 16:40:50 [12] up", "2026-11-30 16:40:51 [12] up") == ["[12] up (×2)"]


def test_labels_keep_rows_apart() -> None:
    lines = folded("sshd[12]: session opened now", "cron[13]: session opened now", "sshd[14]: session opened now")
    assert lines == ["sshd[<12|14>]: session opened now (×2)", "cron[13]: session opened now"]
    assert len(folded("ERROR disk is full", "INFO disk is full")) == 2
    assert len(folded("[error] disk is full", "[info] disk is full")) == 2
    # Nor do they make rows alike: one word of two behind it is not enough to differ in, none of two is.
    assert len(folded("LOG: received shutdown", "LOG: checkpoint complete")) == 2


@pytest.mark.parametrize(
    ("one", "two", "together"),
    [
        ("session opened for user root", "session closed for user root", True),
        ("a b c d", "a b x y", True),
        ("a b c d", "a x y z", False),
        ("a b c", "a b c d", False),
        ("word", "other", False),
        ("12 34", "56 78", True),
        ("1 2 3 up", "1 2 3 down", False),
        ("  at com.shop.Cart now", "at com.shop.Cart now", False),
    ],
)
def test_half_of_the_words_must_agree(one: str, two: str, together: bool) -> None:
    assert (len(folded(one, two)) == 1) == together


def test_words_of_a_crowd_are_values() -> None:
    """Names in rows that have little else in common, as of hundreds of packages."""
    rows = [f"upgrade {''.join(chr(97 + int(d)) for d in str(n + 1000))}:amd64 1.{n} 2.{n}" for n in range(300)]
    assert len(folded(*rows)) <= cluster.CROWDED + 1


def test_commas_separate() -> None:
    assert folded("up,web,b,1", "up,web,c,2") == ["up,web,<b|c>,<1|2> (×2)"]


def test_colours_make_no_difference() -> None:
    assert folded("\x1b[31mdisk full\x1b[0m", "disk full") == ["disk full (×2)"]


def test_indented_rows_are_shown_so() -> None:
    assert folded("failed", "\tat com.shop.Cart.add(Cart.java:77)", "\tat com.shop.Cart.add(Cart.java:78)") == [
        "failed",
        "  at com.shop.Cart.add(Cart.java:<77|78>) (×2)",
    ]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["10.0.0.4", "10.0.0.17"], ("10.0.0.", "")),
        (["port=1;", "port=22;"], ("port=", ";")),
        (["abc", "abd"], ("", "")),
        (["a-b", "a-b-c"], ("a-b", "")),
        (["x.log", "y.log"], ("", ".log")),
        (["ab", "ab"], ("ab", "")),
        (["", "a"], ("", "")),
        (["aXa", "a"], ("", "")),
    ],
)
def test_shared_parts_end_where_words_do(texts: list[str], expected: tuple[str, str]) -> None:
    before, after = shared(texts)
    assert (before, after) == expected
    assert all(text.startswith(before) and text[len(before) :].endswith(after) for text in texts)
