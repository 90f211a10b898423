"""Which page of the KV pool belongs to whom: pure bookkeeping, no tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class PagePool:
    """Reference-counted pages 0 … total − 1.

    Freed pages go back in order and runs are handed out from the lowest free numbers, so a lane's pages usually stand
    side by side, and a reader without page-table support can view them without a copy.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._references = [0] * total
        self._free = total

    @property
    def free(self) -> int:
        return self._free

    def take(self, count: int) -> list[int]:
        """``count`` pages with one reference each. Raises ``MemoryError`` when fewer are free (ask first)."""
        if count > self._free:
            raise MemoryError(f"{count} pages wanted, {self._free} free")
        found = self._run(count) or [page for page, n in enumerate(self._references) if n == 0][:count]
        for page in found:
            self._references[page] = 1
        self._free -= count
        return found

    def share(self, pages: Iterable[int]) -> None:
        """One more reference on each page."""
        for page in pages:
            if self._references[page] == 0:
                raise ValueError(f"page {page} is free and cannot be shared")
            self._references[page] += 1

    def release(self, pages: Iterable[int]) -> None:
        """One reference less on each page; a page without any is free."""
        for page in pages:
            if self._references[page] == 0:
                raise ValueError(f"page {page} was released twice")
            self._references[page] -= 1
            self._free += self._references[page] == 0

    def count(self, page: int) -> int:
        """References of one page."""
        return self._references[page]

    def references(self) -> Sequence[int]:
        """References of every page, for the page map."""
        return tuple(self._references)

    def _run(self, count: int) -> list[int] | None:
        """The first run of ``count`` free pages side by side, if there is one."""
        length = 0
        for page, references in enumerate(self._references):
            length = 0 if references else length + 1
            if length == count:
                return list(range(page - count + 1, page + 1))
        return None
