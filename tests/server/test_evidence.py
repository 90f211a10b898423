"""The state of a decide request as text."""

from __future__ import annotations

import json

import pytest

from ignis_desktop.server.evidence import Evidence


def read(body: str, within: str | None = None) -> str | list[str]:
    return Evidence(json.loads(body)["state"], body.encode()).read(within)


def test_a_text_is_taken_as_it_is() -> None:
    assert read('{"state": "a\\r\\n b \\n"}') == "a\r\n b \n"


def test_order_and_spelling_of_an_object_are_kept() -> None:
    body = (
        '{"state": {"z": 1.10, "a": [1e3, -0, 12345678901234567890123], "b": {"ü": "\\u00fc", "n": null, "t": true}}}'
    )
    assert read(body) == '{"z": 1.10, "a": [1e3, -0, 12345678901234567890123], "b": {"ü": "ü", "n": null, "t": true}}'


def test_an_array_is_one_line_an_element() -> None:
    assert read('{"state": [{"id": 1, "v": 2.50}, "plain", "two\\nlines", 3]}') == [
        '{"id": 1, "v": 2.50}',
        "plain",
        '"two\\nlines"',
        "3",
    ]


def test_parts_are_joined() -> None:
    assert read('{"state": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}') == "a\nb"


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/log", "x\ny"),
        ("/items/1/name", "b"),
        ("/items", ['{"name": "a"}', '{"name": "b"}']),
        ("/a~1b/c~0d", "5.0"),
        ("", '{"log": "x\\ny", "items": [{"name": "a"}, {"name": "b"}], "a/b": {"c~d": 5.0}}'),
    ],
)
def test_a_pointer_names_a_part(pointer: str, expected: str) -> None:
    body = '{"state": {"log": "x\\ny", "items": [{"name": "a"}, {"name": "b"}], "a/b": {"c~d": 5.0}}}'
    assert read(body, pointer) == expected


@pytest.mark.parametrize("pointer", ["log", "/nothing", "/items/2", "/items/-1", "/log/0"])
def test_a_pointer_to_nothing_is_a_fault(pointer: str) -> None:
    with pytest.raises(ValueError, match="within"):
        read('{"state": {"log": "x", "items": [1, 2]}}', pointer)


@pytest.mark.parametrize("state", ['""', '" \\n "', "[]"])
def test_an_empty_state_is_a_fault(state: str) -> None:
    with pytest.raises(ValueError, match="empty"):
        read(f'{{"state": {state}}}')


def test_pictures_are_not_read_for_lines() -> None:
    with pytest.raises(ValueError, match="type point"):
        read('{"state": [{"type": "image_url", "image_url": {"url": "data:"}}]}')
