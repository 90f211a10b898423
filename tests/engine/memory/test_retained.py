"""Which retained prefix goes first, and whose slot is free."""

from __future__ import annotations

import pytest

from engine.memory.retained import Retained, RetainedStore


def add(store: RetainedStore, name: str) -> Retained:
    entry = Retained(name, (1, 2), store.take_slot(), tokens=70, rope_delta=0, layers=None)
    store.add(entry)
    return entry


def test_least_recently_used_goes_first() -> None:
    store = RetainedStore(range(8, 11))
    entries = {name: add(store, name) for name in "abc"}
    assert {entry.slot for entry in entries.values()} == {8, 9, 10}
    assert (len(store), store.free_slots) == (3, 0)
    assert store.use("a") is entries["a"]
    assert [store.evict() for _ in range(3)] == [entries["b"], entries["c"], entries["a"]]
    assert store.evict() is None
    assert (len(store), store.free_slots) == (0, 3)


def test_a_dropped_slot_is_taken_again() -> None:
    store = RetainedStore(range(8, 9))
    first = add(store, "a")
    with pytest.raises(IndexError):
        store.take_slot()
    assert store.drop("a") is first
    assert store.drop("a") is None
    assert store.free_slots == 1, "dropping twice frees once"
    assert add(store, "b").slot == first.slot


def test_unknown_prefixes() -> None:
    store = RetainedStore(range(2))
    assert store.use("x") is None
