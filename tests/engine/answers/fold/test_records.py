"""Records of JSON as they are spelled, and their schema folded."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.answers.fold.records import (
    ArrayRecords,
    LineRecords,
    Number,
    Records,
    find_records,
    one_line,
    parse,
    spelled,
)
from engine.answers.fold.source import Source
from engine.answers.fold.table import FEW, Column, Table, cells, groupings_of
from engine.messages import RequestError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["id", "name", "a b", "é", "x|y"]) | st.text(max_size=5), VALUES, max_size=5)


def records_of(text: str | bytes, within: str = "") -> Records:
    records = find_records(Source(text), within)
    assert records is not None
    return records


def words(texts: list[str]) -> list[int]:
    """Tokens, as far as these tests go."""
    return [len(text.replace("|", " | ").split()) + 1 for text in texts]


@settings(max_examples=150)
@given(st.lists(OBJECTS, min_size=2, max_size=6), st.sampled_from([None, 1, 2]), st.booleans())
def test_elements_of_any_array_are_found(objects: list[dict], indent: int | None, ascii_: bool) -> None:
    text = json.dumps(objects, indent=indent, ensure_ascii=ascii_)
    records = records_of(" \n" + text + "\r\n")
    assert isinstance(records, ArrayRecords)
    assert [json.loads(records.text(n)) for n in range(len(records))] == objects
    assert [records.pointer(n) for n in range(len(records))] == [f"/{n}" for n in range(len(objects))]
    lines = ("\n" + text).split("\n")
    for n in range(len(records)):
        assert "\n" not in records.text(n)
        assert "{" in lines[records.line(n) - 1]
    assert [json.loads(spelled(value)) for value in records.values()] == objects


@settings(max_examples=100)
@given(st.lists(OBJECTS, min_size=2, max_size=6), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_json_lines(objects: list[dict], newline: str) -> None:
    text = newline.join(json.dumps(value, ensure_ascii=False) for value in objects)
    records = records_of(text)
    assert isinstance(records, LineRecords)
    assert [json.loads(records.text(n)) for n in range(len(records))] == objects
    assert [json.loads(Source(text).line(records.line(n))) for n in range(len(records))] == objects


@given(VALUES)
def test_one_line_and_spelling_change_no_value(value: object) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    assert json.loads(one_line(text)) == value
    assert json.loads(spelled(parse(text))) == value
    assert "\n" not in one_line(text)


def test_numbers_keep_their_spelling_and_keys_their_order() -> None:
    text = '[{"z": 1.10, "a": 1e3, "n": -0.0},\n {"z": 12345678901234567890, "a": 1E+2, "n": [0.10, NaN]}]'
    records = records_of(text)
    assert records.text(0) == '{"z": 1.10, "a": 1e3, "n": -0.0}'
    assert [spelled(value) for value in records.values()][1] == '{"z":12345678901234567890,"a":1E+2,"n":[0.10,NaN]}'
    assert cells(parse('{"b": {"y": 1.0, "x": {}}, "a": []}')) == [
        (("b", "y"), "1.0"),
        (("b", "x"), "{}"),
        (("a",), "[]"),
    ]
    assert records.line(1) == 2


@pytest.mark.parametrize(
    ("within", "count", "pointer"),
    [
        ("/orders", 2, "/orders/1"),
        ("/a~1b/m~0n", 1, None),
        ("/list/1", 3, "/list/1/1"),
        ("/empty", 0, None),
        ('/é "q"', 1, None),
    ],
)
def test_arrays_inside(within: str, count: int, pointer: str | None) -> None:
    state = {"first": {"x": [9]}, "orders": [{"n": 1}, {"n": 2}], "a/b": {"m~n": [5]}, "list": [[0], [1, 2, 3]]}
    state |= {"empty": [], 'é "q"': ["a"]}
    records = records_of(json.dumps(state), within)
    assert len(records) == count
    if pointer:
        assert records.pointer(1) == pointer


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ('{"a": 1}', "/b"),
        ('{"a": 1}', "/a"),
        ('{"a": [1]}', "a"),
        ('{"a": [1]}', "/a/5"),
        ('{"a": [1]}', "/a/x"),
        ('{"a": [1', "/a"),
        ('{"a" [1]}', "/a"),
        ("no json", "/a"),
        ("", "/a"),
        ("[" * 100_000, "/0"),
    ],
)
def test_a_pointer_to_no_array_is_one_sentence(text: str, within: str) -> None:
    with pytest.raises(RequestError) as caught:
        find_records(Source(text), within)
    assert caught.value.code == "no_records"
    assert within in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text\nof two lines",
        "[1, 2]",
        '[{"a": 1}]',
        '[{"a": 1}, 2]',
        '[{"a": 1}, {"b": 2}',
        '[{"a": 1} {"b": 2}]',
        '[{"a": 1}, {"b": 2}] and more',
        '{"a": 1}',
        '{"a": 1}\nnot json',
        "[2026-11-30 16:40:50] a log\n[2026-11-30 16:40:51] with brackets",
        "{one: not}\n{two: json}",
        "[" * 100_000,
    ],
)
def test_what_has_no_records(text: str) -> None:
    assert find_records(Source(text)) is None


def test_elements_that_would_hold_other_threads_up_are_left_alone() -> None:
    elements = [json.dumps({"number": n, "text": "x" * (n % 40)}) for n in range(300)]
    most = max(map(len, elements))
    text = "[\n" + ",\n".join(elements) + "\n]"
    found = find_records(Source(text), longest=most)
    assert found is not None
    assert [found.text(n) for n in range(len(found))] == elements
    assert find_records(Source(text), longest=most - 1) is None


def test_a_broken_line_among_many_is_a_text() -> None:
    lines = [json.dumps({"n": n}) for n in range(3000)]
    lines[2500] = '{"n": 25'
    records = records_of("\n".join(lines))
    values = list(records.values())
    assert len(records) == len(values) == 3000
    assert values[2500] == '{"n": 25'
    table = Table(records)
    assert sorted(int(n) for line in table.rows() for n in line.records) == list(range(3000))


def test_marks_and_encodings() -> None:
    text = '[{"name": "über"}, {"name": "가나"}]'
    for data in (b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16"), "\ufeff" + text):
        assert records_of(data).text(1) == '{"name": "가나"}'


ORDERS = [
    {
        "id": 1000 + n,
        "customer": {"name": f"Ann {n * 37 % 9973}", "country": ("DE", "FR", "KR")[n * n % 3]},
        "status": "failed" if n % 97 == 5 else "paid",
        "currency": "EUR",
        "url": f"https://shop.example/orders/{1000 + n}.html",
        **({"note": "a | b"} if n % 50 == 1 else {}),
    }
    for n in range(10_000)
]


def test_a_table_says_once_what_is_the_same() -> None:
    table = Table(records_of(json.dumps(ORDERS[:9])))
    assert table.head() == [
        "All records: currency=EUR",
        "Columns: id | customer.name Ann | customer.country | status | url https://shop.example/orders/….html",
    ]


def test_rows_of_a_table() -> None:
    table = Table(records_of(json.dumps(ORDERS[:3])))
    assert [line.text for line in table.rows()] == [
        "1000 | 0 | DE | 1000",
        '1001 | 37 | FR | 1001 | note="a | b"',
        "1002 | 74 | FR | 1002",
    ]
    assert [line.records.tolist() for line in table.rows([2, 0])] == [[0], [2]]
    assert [column.name for column in table.constant] == ["status", "currency"]


def test_records_that_read_the_same_share_a_row() -> None:
    table = Table(records_of('[{"a": 1, "b": 2}, {"a": 2, "b": 2}, {"b": 2, "a": 1}]'))
    assert [(line.text, line.records.tolist()) for line in table.rows()] == [("1", [0, 2]), ("2", [1])]
    same = Table(records_of('[{"a": 1}, {"a": 1}]'))
    assert [(line.text, line.records.tolist()) for line in same.rows()] == [("", [0, 1])]
    assert same.head() == ["All records: a=1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("kettle", "kettle"),
        ("two words", "two words"),
        ("", '""'),
        ("12", '"12"'),
        ("-1 day", '"-1 day"'),
        ("true", '"true"'),
        ("truly", "truly"),
        ("null", '"null"'),
        ("a | b", '"a | b"'),
        (" a", '" a"'),
        ("a\nb", '"a\\nb"'),
        (True, "true"),
        (None, "null"),
        (Number("1.10"), "1.10"),
        ([Number("1"), "x"], '[1,"x"]'),
    ],
)
def test_values_can_be_told_apart(value: object, text: str) -> None:
    assert cells(value) == [((), text)]


@settings(max_examples=120)
@given(st.lists(OBJECTS, min_size=2, max_size=30), st.integers(0, 400))
def test_no_record_is_lost_in_any_room(objects: list[dict], room: int) -> None:
    table = Table(records_of(json.dumps(objects)))
    assert sorted(int(n) for line in table.rows() for n in line.records) == list(range(len(objects)))
    lines, tokens = table.fitted(room, words)
    assert sorted(int(n) for line in lines for n in line.records) == list(range(len(objects)))
    assert tokens == sum(words(table.head())) + sum(words([line.text for line in lines]))
    assert tokens <= room or len(lines) == 1
    assert all("\n" not in line.text for line in lines)


def test_ten_thousand_records_fit_a_small_window() -> None:
    """As groups: those that failed are told from the others, and all of them can be reached."""
    table = Table(records_of("\n".join(map(json.dumps, ORDERS))))
    lines, tokens = table.fitted(2000, words)
    assert tokens <= 2000
    assert 10 <= len(lines) <= 500
    assert sorted(int(n) for line in lines for n in line.records) == list(range(10_000))
    failed = {n for n, order in enumerate(ORDERS) if order["status"] == "failed"}
    for line in lines:
        mine = set(line.records.tolist())
        assert mine <= failed or not mine & failed
        assert ("status=failed" in line.text) == (mine <= failed)
        assert line.text.endswith(f" (×{len(mine)})") or len(mine) == 1
    large, tokens = table.fitted(1_000_000, words)
    assert len(large) == 10_000
    assert tokens <= 1_000_000


def test_groups_get_finer_and_stay_nested() -> None:
    column = Column(("status",))
    for n in range(100):
        column.add(n, "failed" if n % 10 == 3 else "paid")
    many = Column(("id",))
    for n in range(FEW + 1):
        many.add(n, str(n))
    assert many.codes is None
    groupings = groupings_of([column, many], 100, most=30)
    assert [int(ids.max()) + 1 for ids in groupings] == [1, 2, 4, 8, 16, 26]
    for coarse, fine in pairwise(groupings):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == int(fine.max()) + 1
    assert set(np.flatnonzero(groupings[1] == groupings[1][3]) % 10) == {3}
    assert [int(ids.max()) + 1 for ids in groupings_of([], 5, most=1)] == [1]


@given(st.lists(st.text(max_size=8) | st.sampled_from(["a-1", "a-12", "a-1-a", "a-"]), min_size=1, max_size=8))
def test_what_a_column_cuts_can_be_put_back(values: list[str]) -> None:
    column = Column(("c",))
    for n, value in enumerate(values):
        column.add(n, value)
    column.finish()
    assert [column.before + column.cut(value) + column.after for value in values] == values


def test_progress_can_end_the_work() -> None:
    seen: list[tuple[int, int]] = []
    records = records_of(json.dumps(ORDERS[:50]))
    Table(records, lambda done, total: seen.append((done, total)))
    assert seen == [(n + 1, 50) for n in range(50)]
