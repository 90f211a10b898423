"""Writing grammars in llguidance's variant of Lark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

ONE_LINE = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
"""How JSON is written: on one line, as models were mostly shown it. Free white space leads weak ones astray."""


class Rules:
    """The rules of one grammar. Equal bodies make one rule."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def rule(self, body: str, *, lazy: bool = False) -> str:
        """The name of a rule. A lazy one is a terminal that ends as soon as it can."""
        return self._name(("[lazy]: " if lazy else ": ") + body, "r")

    def terminal(self, body: str) -> str:
        """The name of a regular expression."""
        return self._name(": " + body, "T")

    def text(self, start: str) -> str:
        """The whole grammar."""
        lines = [f"start: {start}", *(name + line for line, name in self._names.items())]
        return "\n".join(lines) + "\n"

    def _name(self, line: str, kind: str) -> str:
        return self._names.setdefault(line, f"{kind}{len(self._names)}")


def literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def json_value(schema: Mapping[str, Any]) -> str:
    """JSON that fits a schema."""
    return f"%json {json.dumps(on_one_line(schema))}"


def on_one_line(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with how its values are written; what a client says of that does not count."""
    return {**schema, "x-guidance": ONE_LINE}
