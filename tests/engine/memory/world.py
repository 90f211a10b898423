"""A pool, lanes and a keeper of the smallest geometry, and what must be in them: every lane's content is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from engine.config import RopeConfig, TextConfig
from engine.memory.disk_tier import DiskTier
from engine.memory.keeper import Keeper
from engine.memory.kept import Kept, Parked
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.memory.pages import PagePool
from engine.memory.prefix_hash import Pictures, prefix_chain, tail_hash

SIZE = 4
"""Tokens of a page."""
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
"""Where the pool and the lanes are; what is kept and spilled is in host memory always."""
TEXT = TextConfig(
    vocab_size=8,
    hidden_size=3,
    intermediate_size=4,
    layer_types=("linear_attention", "full_attention", "linear_attention", "full_attention"),
    num_heads=2,
    num_kv_heads=2,
    head_dim=2,
    gdn_key_heads=1,
    gdn_value_heads=1,
    gdn_key_dim=2,
    gdn_value_dim=3,
    conv_width=3,
    rms_eps=1e-6,
    tied_embedding=True,
    max_context=64,
    rope=RopeConfig(),
)


@dataclass(frozen=True)
class Content:
    """A sequence's state: keys and values [layers, 2, tokens, Hkv, D], convolution, recurrence."""

    kv: Tensor
    conv: Tensor
    recurrent: Tensor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content):
            return NotImplemented
        pairs = ((self.kv, other.kv), (self.conv, other.conv), (self.recurrent, other.recurrent))
        return all(torch.equal(mine, theirs) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]


@dataclass
class Lane:
    """What a running sequence holds, and what it must find there."""

    ids: list[int]
    pages: list[int]
    content: Content
    pictures: Pictures = ()
    last: Tensor | None = None


@dataclass
class World:
    pages: int = 12
    lanes: int = 3
    slots: int = 3
    host: int = 6
    """Units of the host tier."""
    disk: DiskTier | None = None
    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    running: dict[int, Lane] = field(default_factory=dict)
    kept: dict[Kept, tuple[Content, tuple[int, ...], Pictures, Tensor | None]] = field(default_factory=dict)
    """Everything that was ever kept: content, token ids, pictures, last residual."""

    def __post_init__(self) -> None:
        self.random = torch.Generator().manual_seed(0)
        self.kv = PagedKV(TEXT, self.pages, SIZE, torch.device(self.device), self.dtype)
        for page in range(self.pages):
            self.kv.page(page).fill_(float("nan"))  # what was not written must not be taken for content
        self.state = LaneState(TEXT, self.lanes, torch.device(self.device), self.dtype)
        self.pool = PagePool(self.pages)
        self.keeper = Keeper(
            self.kv,
            self.state,
            self.pool,
            slots=self.slots,
            lanes=self.lanes,
            host_bytes=self.host * self.kv.page_bytes,
            disk=self.disk,
        )

    # --- lanes -------------------------------------------------------------------------------------------------

    def start(self, lane: int, ids: Sequence[int], *, total: int | None = None, pictures: Pictures = ()) -> Lane:
        """A cold run of a prompt, with pages for ``total`` tokens."""
        pages = self.pool.take(self.keeper.pages_for(None, max(total or 0, len(ids))))
        self.state.clear(lane)
        self.running[lane] = Lane([], pages, self.read(lane, pages, 0), pictures)
        return self.grow(lane, ids)

    def grow(self, lane: int, ids: Sequence[int]) -> Lane:
        """Read more tokens: their keys and values are new, and all recurrent state is."""
        running = self.running[lane]
        past = len(running.ids)
        running.ids.extend(ids)
        shape = (len(self.kv.page(0)), 2, len(ids), TEXT.num_kv_heads, TEXT.head_dim)
        new = self.noise(*shape)
        if ids:
            rows = self.kv.rows([_Run(len(ids), past, running.pages)])
            for layer, (keys, values) in enumerate(new.to(self.device)):
                self.kv.write(layer, rows, keys, values)
        for part in self.state.slot(lane):
            part.copy_(self.noise(*part.shape).to(part.dtype))
        conv, recurrent = self._state_of(lane)
        running.content = Content(torch.cat([running.content.kv, new], dim=2), conv, recurrent)
        running.last = self.noise(1, TEXT.hidden_size)
        return running

    def finish(self, lane: int) -> None:
        self.pool.release(self.running.pop(lane).pages)

    def noise(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.random).to(self.dtype)

    def read(self, lane: int, pages: Sequence[int], tokens: int) -> Content:
        """What stands in a lane's pages and state."""
        parts = [self.kv.page(page) for page in pages]
        kv = torch.cat(parts, dim=2)[:, :, :tokens] if parts else self.kv.page(0)[:, :, :0]
        return Content(kv.to("cpu", copy=True), *self._state_of(lane))

    def _state_of(self, lane: int) -> tuple[Tensor, Tensor]:
        conv, recurrent = self.state.slot(lane)
        return conv.to("cpu", copy=True), recurrent.to("cpu", copy=True)

    # --- what is kept ------------------------------------------------------------------------------------------

    def keep(self, lane: int, *, name: str = "", request_class: Any = "interactive", **options: Any) -> Kept | None:
        """Keep a lane's state as it is now, under its prompt's key (unless ``key`` is given)."""
        running = self.running[lane]
        tokens = len(running.ids)
        options.setdefault("key", self.key(running.ids, running.pictures))
        kept = self.keeper.keep(
            lane, running.pages, tokens, id=name, rope_delta=tokens, request_class=request_class, **options
        )
        if kept is not None:
            content, ids, pictures, last = self.kept.get(
                kept, (running.content, tuple(running.ids), running.pictures, None)
            )
            self.kept[kept] = (content, ids, pictures, options.get("last") if last is None else last)
        return kept

    def key(self, ids: Sequence[int], pictures: Pictures = ()) -> bytes:
        return tail_hash(prefix_chain(ids, SIZE, pictures), ids, len(ids), SIZE, pictures)

    def find(self, ids: Sequence[int], pictures: Pictures = (), *, limit: int | None = None) -> Kept | None:
        chain = prefix_chain(ids, SIZE, pictures)
        return self.keeper.find(ids, chain, pictures, limit=len(ids) if limit is None else limit)

    def fork(self, kept: Kept, lane: int, total: int) -> Lane:
        """Start a lane from a kept state, with pages for ``total`` tokens."""
        content, ids, pictures, last = self.kept[kept]
        own = -(-total // SIZE) - kept.tokens // SIZE
        pages = self.keeper.fork(kept, lane, own)
        assert len(pages) == -(-total // SIZE)
        self.running[lane] = Lane(list(ids), pages, content, pictures, last)
        return self.running[lane]

    def park(self, lane: int) -> tuple[Parked, Lane]:
        running = self.running.pop(lane)
        return self.keeper.park(lane, running.pages, len(running.ids), len(running.ids)), running

    def resume(self, parked: Parked, running: Lane, lane: int) -> None:
        count = len(running.pages)
        running.pages = self.keeper.resume(parked, lane)
        assert len(running.pages) == count
        self.running[lane] = running

    # --- what must hold at any time ----------------------------------------------------------------------------

    def alive(self) -> list[Kept]:
        return list(self.keeper._store)

    def check(self) -> None:
        """Every count agrees; every lane and every kept state holds what it must."""
        self.keeper.check([lane.pages for lane in self.running.values()])
        for lane, running in self.running.items():
            assert self.read(lane, running.pages, len(running.ids)) == running.content
        for kept in self.alive():
            self.check_kept(kept)

    def check_kept(self, kept: Kept) -> None:
        content, ids, _, last = self.kept[kept]
        stored = self.keeper._stored(kept, kept.key or b"")
        assert Content(stored.kv, stored.conv, stored.recurrent) == content
        assert kept.tokens == kept.rope_delta == len(ids)
        if last is None or kept.last is None:
            assert kept.last is last
        else:
            assert torch.equal(kept.last, last)


@dataclass(frozen=True)
class _Run:
    length: int
    past: int
    pages: Sequence[int]
