"""The page pool against a plain model of it, under any sequence of calls."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.memory.pages import PagePool


class PoolMachine(RuleBasedStateMachine):
    """``held`` lists every reference given out: one entry a holder."""

    @initialize(total=st.integers(1, 24))
    def start(self, total: int) -> None:
        self.pool = PagePool(total)
        self.held: list[list[int]] = []

    def counts(self) -> list[int]:
        return [sum(pages.count(page) for pages in self.held) for page in range(self.pool.total)]

    @rule(count=st.integers(0, 12))
    def take(self, count: int) -> None:
        free = [page for page, n in enumerate(self.counts()) if n == 0]
        if count > len(free):
            with pytest.raises(MemoryError, match=f"{count} pages wanted, {len(free)} free"):
                self.pool.take(count)
            return
        taken = self.pool.take(count)
        assert len(set(taken)) == count
        assert set(taken) <= set(free)
        starts = [page for page in free if all(page + i in free for i in range(count))]
        if starts:
            # Side by side, as low as possible; else the lowest free ones.
            assert taken == list(range(starts[0], starts[0] + count))
        else:
            assert taken == free[:count]
        self.held.append(taken)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def share(self, data: st.DataObject) -> None:
        pages = data.draw(st.sampled_from(self.held))
        part = pages[: data.draw(st.integers(0, len(pages)))]
        self.pool.share(part)
        self.held.append(list(part))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.pool.release(self.held.pop(data.draw(st.integers(0, len(self.held) - 1))))

    @precondition(lambda self: self.pool.free > 0)
    @rule()
    def misuse(self) -> None:
        free = self.counts().index(0)
        with pytest.raises(ValueError, match=f"page {free} was released twice"):
            self.pool.release([free])
        with pytest.raises(ValueError, match=f"page {free} is free"):
            self.pool.share([free])

    @invariant()
    def books_agree(self) -> None:
        assert list(self.pool.references()) == self.counts()
        assert self.pool.free == self.counts().count(0)


TestPagePool = PoolMachine.TestCase
TestPagePool.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)


def test_a_shared_page_is_free_only_after_its_last_holder() -> None:
    pool = PagePool(3)
    pages = pool.take(2)
    pool.share(pages)
    pool.release(pages)
    assert pool.free == 1
    pool.release(pages)
    assert pool.free == 3
