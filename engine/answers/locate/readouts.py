"""Which head list of a model reads a kind of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.answers.asking import find_readout
from engine.answers.readouts import Combine, Readout
from engine.answers.segments import Kind

if TYPE_CHECKING:
    from engine.engine import Engine

LINE = "line"
"""A list that was trained for lines reads every kind."""
_LISTS: dict[Kind, tuple[str, ...]] = {
    "log": ("end", "vote", "sum"),
    "records": ("end", "vote", "sum"),
    "prose": ("sum", "vote", "end"),
}
COMBINES: tuple[Combine, ...] = ("sum", "vote", "end")


def readout_for(engine: Engine, kind: Kind) -> tuple[Readout, str]:
    """The model's list for texts of a kind, and a note if it stands in for another.

    Raises:
        RequestError: the model has none.
    """
    lists = engine.loaded.heads
    known = lists.readouts if lists is not None else {}
    name = next((name for name in (LINE, *_LISTS[kind]) if name in known), LINE)
    readout = find_readout(engine, name, "lines", COMBINES)
    if readout.fallback is None:
        return readout, ""
    instead = find_readout(engine, readout.fallback, "lines", COMBINES)
    return instead, f"Read with the head list {instead.name!r}: of {readout.name!r} only some heads are known."
