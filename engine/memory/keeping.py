"""Kept states: how they come to be kept, are found, and give way."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.memory.disk_tier import DiskTier
from engine.memory.held import HeldPage, HeldPages
from engine.memory.host_tier import HostTier
from engine.memory.kept import Kept, KeptStore
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.memory.pages import PagePool
from engine.memory.prefix_hash import Pictures
from engine.memory.room import Room
from engine.memory.stored import StoredState
from engine.messages import BusyError, RequestClass


class Keeping:
    """The part of :class:`engine.memory.keeper.Keeper` that knows kept states only; lanes it reads, no more."""

    def __init__(
        self,
        kv: PagedKV,
        state: LaneState,
        pages: PagePool,
        *,
        slots: int,
        others: int,
        host_bytes: int,
        disk: DiskTier | None,
    ) -> None:
        """``others``: slots of the shelf that are not for kept states."""
        self._kv = kv
        self._state = state
        self._pages = pages
        self._size = kv.page_size
        self._host = HostTier(kv, host_bytes)
        self._shelf = state.shelf(slots + others)
        self._last = torch.empty(slots, 1, state.config.hidden_size, dtype=state.dtype, pin_memory=kv.is_cuda)
        self._held = HeldPages(kv, pages, self._host)
        self._store = KeptStore(slots, self._size)
        self._room = Room(pages, self._host, self._held, self._store, self._evict)
        self._disk = disk
        self._evictions = 0

    @property
    def nbytes(self) -> int:
        """What is reserved in host memory: shelf and host tier."""
        return self._shelf.nbytes + self._last.nbytes + self._host.nbytes

    def keep(
        self,
        lane: int,
        pages: Sequence[int],
        tokens: int,
        *,
        key: bytes | None,
        id: str,  # noqa: A002
        rope_delta: int,
        request_class: RequestClass,
        layers: int | None = None,
        explicit: bool = False,
        last: Tensor | None = None,
        ending: bool = False,
    ) -> Kept | None:
        """Keep the state of a lane that has read exactly ``tokens`` tokens.

        A state of the same key is there already: it counts as used, and nothing is copied. An explicit one of the same
        id is replaced.

        Args:
            pages: the lane's pages in order; more than the tokens fill may be given.
            key: name of the prefix; None when it must not be found by others. Always so with ``layers``.
            last: [1, hidden], the residual of the last token's column.
            ending: the lane writes nothing more, so its last page is shared and needs no copy.

        Returns:
            None where an automatic one finds neither slot nor page without touching live work or explicit states.

        Raises:
            BusyError: an explicit one finds no page: all are held by running requests.
        """
        if not 0 < tokens <= len(pages) * self._size:
            raise ValueError(f"{len(pages)} pages of {self._size} tokens cannot hold {tokens}")
        if key is None and not explicit:
            raise ValueError("a state without key or id could never be found")
        key = key if layers is None else None
        known = self._known(key, id, explicit)
        if known is not None:
            if explicit:
                known.explicit, known.id = True, id
            if request_class == "interactive":
                known.request_class = request_class
            self._store.touch(known)
            self._keep_last(known, last)
            return known
        kept = Kept(id, tokens, rope_delta, layers, request_class, explicit, None, key, -1, [])
        self._store.touch(kept)
        part = tokens % self._size if not ending else 0
        copy = self._room_for_copy(kept) if part else None
        if part and copy is None:
            if explicit:
                raise BusyError("Running requests hold every KV page; retain the prefix again when one is done.")
            return None
        if not self._room.slot(explicit=explicit):
            if copy is not None:
                self._held.release(copy)
            return None
        whole = pages[: tokens // self._size if part else -(-tokens // self._size)]
        kept.held = [self._held.keep(page) for page in whole]
        if copy is not None:
            self._held.fill(copy, pages[len(whole)])
            kept.held.append(copy)
        kept.slot = self._store.take_slot()
        self._state.copy_to(lane, self._shelf, kept.slot)
        self._keep_last(kept, last)
        self._store.add(kept)
        return kept

    def _room_for_copy(self, kept: Kept) -> HeldPage | None:
        """Where a copy of a partly filled page can stand: a free page; else a unit of the host tier, since running
        requests tend to have all of the pool reserved; else a page that other kept states give up."""
        if not self._pages.free and self._room.units(1, below=kept, explicit=kept.explicit):
            return self._held.adopt_unit(*self._host.units.take(1))
        if self._room.pages(1, explicit=kept.explicit):
            return self._held.adopt(*self._pages.take(1))
        return None

    def _known(self, key: bytes | None, name: str, explicit: bool) -> Kept | None:
        """The state that already is what shall be kept. An explicit one of the same name that is not, is dropped."""
        same = self._store.by_key(key) if key is not None else None
        if not explicit:
            return same
        named = self._store.by_id(name)
        if named is not None and (key is None or named.key != key):
            self._remove(named)
            named = None
        return named or (same if same is not None and not same.explicit else None)

    def _keep_last(self, kept: Kept, last: Tensor | None) -> None:
        if last is not None and kept.last is None:
            row = self._last[kept.slot]
            row.copy_(last, non_blocking=True)
            kept.last = row

    # --- finding -----------------------------------------------------------------------------------------------

    def find(self, ids: Sequence[int], chain: Sequence[bytes], pictures: Pictures = (), *, limit: int) -> Kept | None:
        """The longest kept prefix of a prompt, without side effects.

        May be called from any thread; what it found may be gone when the engine's thread comes to it.

        Args:
            chain: ``prefix_chain(ids, page size, pictures)``.
            limit: most tokens it may have. All of the prompt is found only where ``last`` is there.
        """
        return self._store.find(ids, chain, pictures, limit)

    def get(self, name: str) -> Kept | None:
        """The explicit state of that name; it counts as used."""
        kept = self._store.by_id(name)
        if kept is not None:
            self._store.touch(kept)
        return kept

    # --- making room -------------------------------------------------------------------------------------------

    @property
    def reclaimable(self) -> int:
        """Pages that would be free if all that is kept were spilled or dropped."""
        return self._held.only_kept()

    def idle_pages(self, kept: Kept) -> int:
        """Pages of ``kept`` that :attr:`reclaimable` counts."""
        return sum(self._held.idle(held) and not held.parked for held in kept.held)

    @property
    def explicit(self) -> int:
        """Explicit states."""
        return sum(kept.explicit for kept in self._store)

    def reclaim(self, pages: int, *, spare: Kept | None = None) -> bool:
        """Spill or drop kept states, in the order of eviction, until ``pages`` pages are free.

        Returns:
            Whether so many are free. If they cannot be, nothing was touched.
        """
        return self._room.pages(pages, spare=spare)

    def drop(self, name: str) -> None:
        """Forget the explicit state of that name, if it is still there."""
        kept = self._store.by_id(name)
        if kept is not None:
            self._remove(kept)

    def clear(self) -> None:
        """Forget everything kept; parked requests stay."""
        for kept in list(self._store):
            self._remove(kept)

    def _evict(self, kept: Kept) -> None:
        self._evictions += 1
        self._write(kept)
        self._remove(kept)

    def _remove(self, kept: Kept) -> None:
        self._store.remove(kept)
        for held in kept.held:
            self._held.release(held)

    # --- the disk tier -----------------------------------------------------------------------------------------

    def save(self) -> None:
        """Hand everything kept to the disk tier, the last to go first, as far as its queue takes it: before the end of
        the process."""
        for kept in reversed(self._store.in_order()):
            self._write(kept)

    def adopt(self, stored: StoredState) -> Kept | None:
        """Keep a state that the disk tier read: in the host tier, or in the pool where that has no room.

        Returns:
            None when neither has, without explicit states giving way, or when it is not of this network's shape.
        """
        known = self._store.by_key(stored.key)
        if known is not None or not self._fits(stored):
            return known
        kept = Kept("", stored.tokens, stored.rope_delta, None, stored.request_class, False, None, stored.key, -1, [])
        self._store.touch(kept)
        if not self._room.slot(explicit=False):
            return None
        count = -(-stored.tokens // self._size)
        if self._room.units(count, below=kept, explicit=False):
            kept.held = [self._held.adopt_unit(unit) for unit in self._host.units.take(count)]
        elif self._room.pages(count, explicit=False):
            kept.held = [self._held.adopt(page) for page in self._pages.take(count)]
        else:
            return None
        self._host.settle()
        for held, tokens in zip(kept.held, stored.kv.split(self._size, dim=2), strict=True):
            self._held.write(held, tokens)
        kept.slot = self._store.take_slot()
        conv, recurrent = self._shelf.slot(kept.slot)
        conv.copy_(stored.conv)
        recurrent.copy_(stored.recurrent)
        self._keep_last(kept, stored.last)
        self._store.add(kept)
        return kept

    def _write(self, kept: Kept) -> None:
        """Hand a copy to the disk tier, if there is one and it wants it."""
        if self._disk is None or kept.key is None:
            return
        nbytes = kept.tokens * self._kv.page_bytes // self._size + self._shelf.slot_bytes
        if self._disk.wants(kept.key, nbytes):
            self._disk.offer(self._stored(kept, kept.key))

    def _stored(self, kept: Kept, key: bytes) -> StoredState:
        """A copy of all of a state."""
        layers, two, _, *rest = self._kv.page(0).shape
        kv = torch.empty(layers, two, kept.tokens, *rest, dtype=self._kv.dtype)
        self._host.settle()
        for held, tokens in zip(kept.held, kv.split(self._size, dim=2), strict=True):
            self._held.read(held, tokens)
        conv, recurrent = (part.clone() for part in self._shelf.slot(kept.slot))
        last = kept.last.clone() if kept.last is not None else None
        self._host.settle()
        return StoredState(key, kept.tokens, kept.rope_delta, kept.request_class, kv, conv, recurrent, last)

    def _fits(self, stored: StoredState) -> bool:
        layers, two, _, *rest = self._kv.page(0).shape
        conv, recurrent = self._shelf.slot(0)
        wanted = {
            "kv": ((layers, two, stored.tokens, *rest), self._kv.dtype),
            "conv": (conv.shape, conv.dtype),
            "recurrent": (recurrent.shape, recurrent.dtype),
            "last": (self._last.shape[1:], self._last.dtype),
        }
        return all((tensor.shape, tensor.dtype) == wanted[name] for name, tensor in stored.tensors.items())
