"""How urgent a request is: ``interactive``, where a person waits, or ``agent``, which lets those go first."""

from __future__ import annotations

from collections.abc import Collection

from engine.messages import RequestClass


def as_class(word: str) -> RequestClass:
    """The class that a client's word means; one that nobody knows is ``interactive``."""
    return "agent" if word.strip().casefold() == "agent" else "interactive"


def split_model(name: str, known: Collection[str]) -> tuple[str, RequestClass | None]:
    """A ``model`` as clients write it: ("ember", "agent") of "ember@agent"; the class is None without a suffix.

    ``known``: names that are whole although an @ stands in them, in ``str.casefold``.
    """
    base, at, suffix = name.rpartition("@")
    if not at or name.casefold() in known:
        return name, None
    return base, as_class(suffix) if suffix else None
