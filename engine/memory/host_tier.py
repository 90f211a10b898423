"""The host tier: an arena in host memory for pages that the KV pool has no room for."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.memory.paged_kv import PagedKV
from engine.memory.pages import PagePool


class HostTier:
    """Units of one page each, reserved once: page-locked beside a GPU's pool, plain memory beside the CPU's (where
    what was never written costs nothing).

    Beside a GPU, copies are queued on the current stream, in order with the passes before and after them; they overlap
    with nothing yet.
    """

    def __init__(self, kv: PagedKV, nbytes: int) -> None:
        self._kv = kv
        self.unit_bytes = kv.page_bytes
        self.units = PagePool(nbytes // self.unit_bytes if self.unit_bytes else 0)
        self._arena = kv.host_pages(self.units.total)

    @property
    def nbytes(self) -> int:
        return self._arena.nbytes

    @property
    def used_bytes(self) -> int:
        return (self.units.total - self.units.free) * self.unit_bytes

    def unit(self, unit: int) -> Tensor:
        """View of a unit, shaped like :meth:`PagedKV.page`."""
        return self._arena[unit]

    def store(self, page: int, unit: int) -> None:
        """Copy a page into a unit that was taken for it."""
        self._kv.copy_out(page, self._arena[unit])

    def load(self, unit: int, page: int) -> None:
        """Copy a unit into a page; the unit stays taken."""
        self._kv.copy_in(self._arena[unit], page)

    def free(self, unit: int) -> None:
        self.units.release([unit])

    def settle(self) -> None:
        """Wait for copies under way: before the processor itself reads or writes what a GPU copies."""
        if self._kv.is_cuda:
            torch.cuda.current_stream().synchronize()
