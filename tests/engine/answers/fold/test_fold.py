"""Every row of any text belongs to one entry and one template, and no rendering loses one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.answers.fold import cluster, slots
from engine.answers.fold import source as sources
from engine.answers.fold.fold import Fold, fold, share_folded
from engine.answers.fold.render import DETAILS, fitted, render_rows, render_templates
from engine.answers.fold.source import Source

LOGS = Path(__file__).parents[3] / "data" / "logs"

BITS = st.sampled_from(
    [
        *("foo", "bar12", "10.0.0.1:80", "/var/log/x", "2026-11-30 16:40:50.834", "Nov 30 16:40:50", "16:40:50"),
        *("[30/Nov/2026:16:42:46 +0000]", "ERROR", "sshd[12]:", ",", ";", "|", "a,b,1", "\t", "  ", " ", "x=1"),
        *("é", "가나", "\x00", "\x01", "\x1b[31m", "I1130 16:40:50.1", "1700000000.123", "081109 203615"),
        *("[   12.345678]", "Traceback (most recent call last):", "goroutine 1 [running]:", "Caused by: x", "}"),
        *("\u2028", "9:05:12 PM", "11/30/2026", "w " * 140),
    ]
)
LINES = st.lists(BITS, max_size=8).map(" ".join) | st.lists(BITS, max_size=5).map("".join)
LONG = st.builds(lambda piece, n: piece * n, st.sampled_from(["w1 ", "x", "가"]), st.integers(4000, 9000))
TEXTS = st.builds(
    lambda lines, newline: newline.join(lines),
    st.lists(LINES | LONG, max_size=30),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
)


def check(folded: Fold) -> None:
    """What must hold for any text."""
    source = folded.source
    assert folded.rows == source.rows
    rows = np.arange(folded.rows)
    templates, entries = folded.template_of(rows), folded.entry_of(rows)
    assert sum(template.count for template in folded.templates) == folded.rows
    assert np.bincount(templates, minlength=len(folded.templates)).tolist() == [t.count for t in folded.templates]
    # Entries are runs of rows, numbered from 0; all windows of a line are of one.
    assert set(np.diff(entries, prepend=-1).tolist()) <= {0, 1}
    assert folded.heads().tolist() == [folded.entry_rows(entry)[0] for entry in range(folded.entries)]
    for entry in range(folded.entries):
        assert (entries[list(folded.entry_rows(entry))] == entry).all()
    assert sum(len(folded.entry_rows(entry)) for entry in range(folded.entries)) == folded.rows
    for line in range(1, source.lines + 1):
        assert len(set(entries[list(source.rows_of(line))])) == 1
    # A row is what its template says: its literal words, and values that its slots know.
    for row in rows.tolist():
        template, tokens = folded.templates[templates[row]], folded.tokens(row)
        assert len(tokens) == len(template.tokens)
        assert template.blank == (not tokens)
        for place, token in enumerate(tokens):
            values = template.values.get(place)
            if values is None:
                assert template.tokens[place] == token
            else:
                assert token in values or place in template.more
    for template in folded.templates[1:]:
        assert template.first == folded.rows_of([template.number])[0]
    # Rendering.
    lines = render_templates(folded)
    assert [line.template for line in lines] == [t.number for t in folded.templates if t.count and not t.blank]
    assert sum(line.count for line in lines) == folded.rows - folded.templates[0].count
    for line in lines:
        mine = folded.rows_of([line.template])
        shown = render_rows(folded, mine)
        assert sorted(int(row) for one in shown for row in one.rows) == mine.tolist()
        assert all("\n" not in one.text for one in shown)
        assert len({one.text for one in shown}) == len(shown)


@settings(max_examples=150)
@given(TEXTS)
def test_every_row_has_one_entry_one_template_and_its_rendering(text: str) -> None:
    check(fold(Source(text)))


@settings(max_examples=60)
@given(st.binary(max_size=2000).filter(lambda b: not b.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))))
def test_so_do_bytes_of_any_kind(data: bytes) -> None:
    check(fold(Source(data)))


@settings(max_examples=30)
@given(TEXTS, st.sampled_from(["utf-8-sig", "utf-16"]))
def test_the_encoding_makes_no_difference(text: str, name: str) -> None:
    one, two = fold(Source(text)), fold(Source(text.encode(name)))
    assert [line.text for line in render_templates(one)] == [line.text for line in render_templates(two)]
    rows = np.arange(one.rows)
    assert (one.template_of(rows) == two.template_of(rows)).all()
    assert (one.times_of(rows) == two.times_of(rows)).all()


def test_blocks_make_no_difference_to_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    data = (LOGS / "postgresql.log").read_bytes()
    whole = fold(Source(data))
    monkeypatch.setattr(sources, "BLOCK", 1 << 15)
    blocks = fold(Source(data))
    rows = np.arange(whole.rows)
    assert len(list(blocks.source.blocks())) > 4
    assert [line.text for line in render_templates(whole)] == [line.text for line in render_templates(blocks)]
    assert (whole.template_of(rows) == blocks.template_of(rows)).all()
    assert (whole.entry_of(rows) == blocks.entry_of(rows)).all()
    assert (whole.times_of(rows) == blocks.times_of(rows)).all()
    check(blocks)


def test_a_trace_over_the_edge_of_a_block_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK", 1 << 15)
    frames = "".join(f'  File "app.py", line {n}, in step\n    call({n})\n' for n in range(2000))
    folded = fold(Source(f"ready\nTraceback (most recent call last):\n{frames}ValueError: no\nready\n"))
    assert folded.entries == 3
    assert len(folded.entry_rows(1)) == 4002
    go = "".join(f"main.step{n}()\n\t/src/main.go:{n} +0x1d\n" for n in range(2000))
    folded = fold(Source(f"up\npanic: no\n\ngoroutine 1 [running]:\n{go}\nexit status 2\n"))
    assert [len(folded.entry_rows(n)) for n in range(folded.entries)] == [1, 4004, 1]


def test_the_memory_for_what_does_not_fold_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 200 tokens of templates and 50 values; and nothing is lost for it."""
    monkeypatch.setattr(cluster, "TEMPLATE_TOKENS", 200)
    monkeypatch.setattr(cluster, "REMEMBERED", 20)
    monkeypatch.setattr(slots, "VALUES_KEPT", 50)
    rng = np.random.default_rng(3)
    words = ["".join(rng.choice(list("abcdefghij"), 6)) for _ in range(3000)]
    text = "\n".join(" ".join([*rng.choice(words, rng.integers(2, 9)), str(n), f"a{n}"]) for n in range(1500))
    folded = fold(Source(text))
    check(folded)
    assert len(folded.templates) < 80
    kept = sum(len(values) for t in folded.templates for values in t.values.values())
    assert kept <= 50 + sum(cluster.VALUES * len(t.tokens) for t in folded.templates)


def test_rows_of_several_templates_come_in_order() -> None:
    folded = fold(Source("a 1\nb b b\na 2\n\nb b b\nc c c c\n"))
    numbers = folded.template_of(np.array([0, 1, 5]))
    assert folded.rows_of(numbers[:2].tolist()).tolist() == [0, 1, 2, 4]
    assert folded.lines_of(folded.rows_of([int(numbers[2])])).tolist() == [6]
    with pytest.raises(IndexError):
        folded.entry_rows(folded.entries)


def test_nothing_folds_to_nothing() -> None:
    for text in ("", b"\xef\xbb\xbf"):
        folded = fold(Source(text))
        assert (folded.rows, folded.entries, render_templates(folded)) == (0, 0, [])
        assert share_folded(Source(text)) == 0


def test_a_log_is_told_from_prose() -> None:
    for path in LOGS.glob("*.log"):
        assert share_folded(Source(path.read_bytes())) > 0.9, path.name
    prose = (
        "The kettle was on when Ann came home from the harbour.\nShe had not expected anybody to wait for her there.\n"
        "Outside, gulls were quarrelling over something that glittered.\nNobody spoke until the water boiled.\n"
    )
    assert share_folded(Source(prose)) < 0.5
    assert share_folded(Source("\n\n\n")) == 0


def test_a_text_is_told_by_its_first_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    head = "".join(f"connection {n} accepted\n" for n in range(2000))
    tail = "".join(f"{'x' * n} is its own kind of {'y' * n}, {'z' * (n % 7)} too\n" for n in range(1, 300))
    assert share_folded(Source(head + tail * 5)) == 1.0


def test_progress_is_told_and_can_end_the_work() -> None:
    data = b"2026-11-30 16:40:50 up\n" * 40_000
    seen: list[tuple[int, int]] = []
    fold(Source(data), lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (len(data), len(data))

    def give_up(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fold(Source(data), give_up)


def test_a_window_gets_as_much_detail_as_fits() -> None:
    folded = fold(Source((LOGS / "redis.log").read_bytes()))

    def words(texts: list[str]) -> list[int]:
        return [len(text.split()) + text.count("|") for text in texts]

    full = [line.text for line in render_templates(folded)]
    least = [line.text for line in render_templates(folded, detail=DETAILS[-1])]
    lines, tokens = fitted(folded, 10**6, words)
    assert [line.text for line in lines] == full
    assert tokens == sum(words(full))
    lines, tokens = fitted(folded, sum(words(least)), words)
    assert [line.text for line in lines] == least
    lines, tokens = fitted(folded, 1, words)
    assert [line.text for line in lines] == least
    assert tokens == sum(words(least)) > 1
    assert len(full) == len(least)


def test_some_rows_are_rendered_with_their_own_counts() -> None:
    folded = fold(Source("up 1\nup 2\ndown now then\nup 3\n"))
    lines = render_templates(folded, np.array([0, 2, 3]))
    assert [(line.text, line.count) for line in lines] == [("up <1|2|3> (×2)", 2), ("down now then", 1)]
    assert render_rows(folded, np.array([], np.int64)) == []
