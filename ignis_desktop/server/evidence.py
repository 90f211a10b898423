"""The ``state`` of a decide request as the text that is read.

Key order and the spelling of numbers are kept as they were sent: 1.10 must not become 1.1 in an invoice.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any


class Number(str):
    """A JSON number as it was spelled."""

    __slots__ = ()


class Evidence:
    """A request's ``state``; read in parts that each question names."""

    def __init__(self, state: Any, raw_body: bytes) -> None:
        """``raw_body``: the request's body as received."""
        self._state = state
        self._raw = raw_body
        self._found: dict[str | None, str | list[str]] = {}

    @cached_property
    def parts(self) -> list[str | int]:
        """Content parts in order: texts, and numbers of pictures. Empty when the state is something else.

        Raises ``ValueError`` with a sentence for a part that cannot be read.
        """
        if not _is_parts(self._state):
            return []
        numbers = iter(range(len(self._state)))
        return [next(numbers) if part["type"] == "image_url" else _part_text(part) for part in self._state]

    @cached_property
    def images(self) -> list[str]:
        """What stands for each picture: its URL, "" where there is none."""
        if not _is_parts(self._state):
            return []
        links = [part.get("image_url") for part in self._state if part["type"] == "image_url"]
        urls = [link.get("url") if isinstance(link, dict) else link for link in links]
        return [url if isinstance(url, str) else "" for url in urls]

    def read(self, within: str | None = None) -> str | list[str]:
        """The state, or what the JSON pointer ``within`` finds in it.

        A text is taken as it is, content parts are joined, an array gives one line an element, anything else its
        JSON in one line. Raises ``ValueError`` with a sentence for what cannot be read.
        """
        if within not in self._found:
            found = self._find(within)
            if not "".join(found).strip():
                raise ValueError("the state is empty: there is nothing to look in.")
            self._found[within] = found
        return self._found[within]

    def _find(self, within: str | None) -> str | list[str]:
        if within is None and isinstance(self._state, str):
            return self._state
        if within is None and _is_parts(self._state):
            return "\n".join(_part_text(part) for part in self._state)
        value = resolve(self._spelled, within or "")
        if isinstance(value, list):
            return [_line(element) for element in value]
        return value if isinstance(value, str) else _json(value)

    @cached_property
    def _spelled(self) -> Any:
        return json.loads(self._raw, parse_int=Number, parse_float=Number)["state"]


def resolve(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) finds; raises ``ValueError`` when it finds nothing."""
    if pointer == "":
        return value
    if not pointer.startswith("/"):
        raise ValueError(f"within must be a JSON pointer that begins with /, not {pointer!r}.")
    for part in pointer[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise ValueError(f"within: the state has nothing at {pointer!r} (no {key!r}).")
    return value


def _line(element: Any) -> str:
    """An array's element as one line: strings as they are unless that would take several lines."""
    if isinstance(element, str) and not isinstance(element, Number) and len(element.splitlines()) <= 1:
        return element
    return _json(element)


def _json(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}: {_json(member)}" for key, member in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _is_parts(state: Any) -> bool:
    return (
        isinstance(state, list)
        and bool(state)
        and all(isinstance(part, dict) and part.get("type") in ("text", "image_url") for part in state)
    )


def _part_text(part: dict[str, Any]) -> str:
    if part["type"] != "text":
        raise ValueError("locate reads text; leave image parts out, or ask about pictures with type point.")
    if not isinstance(part.get("text"), str):
        raise ValueError("a text part needs its text as a string.")
    return part["text"]
