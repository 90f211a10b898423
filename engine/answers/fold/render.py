"""Folded text as a model reads it: a line for each template, or for rows the values in which they differ.

    Failed password for <root|admin|pi> from 10.0.0.<4|7|9…32+> port <41664|52236|40112…32+> (×97)

Every line knows what it stands for, and every row that is not blank has its line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.answers.fold.cluster import Template
from engine.answers.fold.fold import Fold, Rows

Count = Callable[[Sequence[str]], Sequence[int]]
"""Tokens of each of some texts."""


@dataclass(frozen=True)
class Detail:
    """A slot with up to ``listed`` values, of ``room`` characters in all, lists them; of any other ``shown`` stand,
    each with up to ``room`` characters."""

    listed: int
    room: int
    shown: int


DETAILS = (Detail(8, 96, 3), Detail(4, 40, 2), Detail(2, 24, 1))
"""From the most to the least of it."""


@dataclass(frozen=True)
class TemplateLine:
    """``count``: rows of the template, or those of them that were asked for."""

    text: str
    template: int
    count: int


@dataclass(frozen=True)
class RowLine:
    """``rows``: all that read the same."""

    text: str
    rows: Rows


def render_templates(fold: Fold, rows: Rows | None = None, detail: Detail = DETAILS[0]) -> list[TemplateLine]:
    """A line for each template, in the order of their first rows: of the whole text, or of some of its rows."""
    if rows is None:
        counts = [template.count for template in fold.templates]
    else:
        counts = np.bincount(fold.template_of(rows), minlength=len(fold.templates)).tolist()
    return [
        TemplateLine(template_text(template, count, detail), template.number, count)
        for template, count in zip(fold.templates, counts, strict=True)
        if count and not template.blank
    ]


def fitted(fold: Fold, room: int, count: Count, rows: Rows | None = None) -> tuple[list[TemplateLine], int]:
    """Lines with as much detail as ``room`` tokens allow, and their tokens with newlines; more than ``room`` if even
    the least detail is."""
    lines, tokens = list[TemplateLine](), 0
    for detail in DETAILS:
        lines = render_templates(fold, rows, detail)
        tokens = sum(count([line.text + "\n" for line in lines]))
        if tokens <= room:
            break
    return lines, tokens


def render_rows(fold: Fold, rows: Rows) -> list[RowLine]:
    """Rows of one template as their values alone, in order; rows that read the same share a line.

    What all of them have in common is left out. If that is everything, the one line is the whole row.
    """
    tokens = [fold.tokens(row) for row in rows.tolist()]
    if not tokens:
        return []
    template = fold.templates[int(fold.template_of(rows[:1])[0])]
    columns: list[list[str]] = []
    for column in zip(*tokens, strict=True):
        if len(set(column)) > 1:
            texts = [token.decode("utf-8", "replace") for token in column]
            before, after = shared(texts)
            columns.append([text[len(before) : len(text) - len(after)] for text in texts])
    if columns:
        lines = [" ".join(filter(None, values)) for values in zip(*columns, strict=True)]
    else:
        lines = [_joined(template, [token.decode("utf-8", "replace") for token in tokens[0]])] * len(rows)
    places: dict[str, list[int]] = {}
    for row, line in zip(rows.tolist(), lines, strict=True):
        places.setdefault(line, []).append(row)
    return [RowLine(line, np.array(mine, np.int64)) for line, mine in places.items()]


def template_text(template: Template, count: int, detail: Detail = DETAILS[0]) -> str:
    """A slot stands in angle brackets with its values; a row that stands there ``count`` times ends with that."""
    parts: list[str] = []
    for place, token in enumerate(template.tokens):
        values = template.values.get(place)
        more = place in template.more
        parts.append(_slot(list(values), more, detail) if values else (token or b"").decode("utf-8", "replace"))
    indent = "  " if template.indented else ""
    return indent + _joined(template, parts) + (f" (×{count})" if count > 1 else "")


def shared(texts: Sequence[str]) -> tuple[str, str]:
    """What all texts begin and end with, without what would cut a word or number apart."""
    before = common_start(texts)
    while before and before[-1].isalnum() and any(text[len(before) : len(before) + 1].isalnum() for text in texts):
        before = before[:-1]
    rest = [text[len(before) :] for text in texts]
    after = common_start([text[::-1] for text in rest])[::-1]
    while after and after[0].isalnum() and any(text[: len(text) - len(after)][-1:].isalnum() for text in rest):
        after = after[1:]
    return before, after


def common_start(texts: Sequence[str]) -> str:
    """What all texts begin with."""
    low, high = min(texts), max(texts)
    end = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[:end]


def _slot(values: Sequence[bytes], more: bool, detail: Detail) -> str:
    texts = [value.decode("utf-8", "replace") for value in values]
    if len(texts) == 1 and not more:
        return texts[0]
    before, after = shared(texts)
    inner = [text[len(before) : len(text) - len(after)] for text in texts]
    if len(inner) <= detail.listed and sum(map(len, inner)) <= detail.room and not more:
        listed = "|".join(inner)
    else:
        shown = (text if len(text) <= detail.room else text[: detail.room] + "…" for text in inner[: detail.shown])
        listed = "|".join(shown) + f"…{len(inner)}{'+' * more}"
    return f"{before}<{listed}>{after}"


def _joined(template: Template, parts: Sequence[str]) -> str:
    spaced = (
        " " + part if space and place else part
        for place, (part, space) in enumerate(zip(parts, template.spaced, strict=True))
    )
    return "".join(spaced)
