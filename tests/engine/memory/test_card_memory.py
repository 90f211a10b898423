"""What torch takes of a card when a model is loaded, against the plan: the real load on ``meta``, with an allocator
that rounds as torch's does."""

from __future__ import annotations

import math
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.checkpoint.geometries import EMBER, QWEN, geometry
from engine.checkpoint.layout import HEAD, expected_tensors, matrix_names
from engine.checkpoint.quantize import Fragments, PackedFP8, PackedNVFP4
from engine.config import EngineConfig, ModelConfig
from engine.memory.arena import Arena
from engine.memory.plan import Layout, on_card, plan_vram
from engine.memory.plan.vram import CUBLAS, SMALL_FREE, SMALL_KEPT
from engine.memory.reserve import reserve
from engine.memory.segments import STEP, taken
from engine.memory.sizes import scratch_bytes
from engine.model import fused_weights, network, vision
from engine.model.network import Network, build_network
from engine.sample.sampler import Sampler
from tests.engine.memory.caching import CachingAllocator, OnMeta

MIB, GIB = 1 << 20, 1 << 30
META = torch.device("meta")
CONTEXT = 676 * MIB
MIXED = "fp8 and bf16"
LANES = 8


class Shapes:
    """A checkpoint without data. ``packed`` is the format of the text's matrices; in a mixed one they are FP8, and BF16
    where a matrix is the second of several that are joined."""

    def __init__(self, model: ModelConfig, packed: str) -> None:
        self._shapes = expected_tensors(model)
        self._formats = {HEAD: "fp8"}
        for names in matrix_names(model.text):
            for place, name in enumerate(names):
                self._formats[name] = packed if packed != MIXED else "bf16" if place == 1 else "fp8"

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def format_of(self, name: str) -> str:
        return self._formats.get(name, "bf16")

    def packed(self, name: str) -> PackedNVFP4 | PackedFP8:
        rows, columns = self._shapes[name]
        if self.format_of(name) == "nvfp4":
            scales = torch.empty(rows, columns // 16, dtype=torch.float8_e4m3fn, device=META)
            return PackedNVFP4(torch.empty(rows, columns // 2, dtype=torch.uint8, device=META), scales, torch.ones(()))
        codes = torch.empty(rows, columns, dtype=torch.float8_e4m3fn, device=META)
        # The largest scales there are for a matrix of this shape.
        blocks = -(-rows // 128), -(-columns // 128)
        if blocks[0] * blocks[1] > rows:
            return PackedFP8(codes, torch.empty(blocks, device=META), "block")
        return PackedFP8(codes, torch.empty(rows, device=META), "row")

    def fragments(self, name: str) -> Fragments:
        rows, columns = self._shapes[name]
        tiles = -(-rows // 64) * 4, -(-columns // 512)
        words, scales = (torch.empty(*tiles, each, dtype=torch.int32, device=META) for each in (1024, 128))
        return Fragments(words, scales, torch.ones(()), rows, columns)

    def copy_into(self, name: str, out: Tensor) -> None:
        assert out.shape == self._shapes[name]


class Card:
    """A card on which nothing is computed, with what torch holds of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.torch = CachingAllocator()
        self.live = OnMeta(self.torch)
        self.arenas: list[Arena] = []
        monkeypatch.setenv("IGNIS_KERNELS", "triton")
        for name, value in {
            "empty_cache": self._empty_cache,
            "memory_reserved": lambda _: self.torch.reserved,
            "get_device_properties": lambda _: SimpleNamespace(total_memory=141 * GIB),
            "current_device": lambda: 0,
            "set_per_process_memory_fraction": lambda *_: None,
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)
        monkeypatch.setattr(network, "Arena", self._arena)
        monkeypatch.setattr(fused_weights, "pack_rows", lambda _w, start, codes, *_: start + codes.shape[0])

    def _empty_cache(self) -> None:
        self.live.sweep()
        self.torch.empty_cache()

    def _arena(self, size: int, device: torch.device) -> Arena:
        self.arenas.append(Arena(size, device))
        return self.arenas[-1]

    def load(self, model: ModelConfig, source: Shapes, layout: Layout, weights: int | None) -> tuple[Network, Sampler]:
        """As the loader and the scheduler do, behind the first product."""
        self.torch.take(CUBLAS)
        built = build_network(
            model,
            source,  # type: ignore[arg-type]
            slots=LANES,
            pages=layout.pages,
            page_size=64,
            device=META,
            dtype=torch.bfloat16,
            kv_format=layout.kv_format,
            weights=weights,
        )
        return built, Sampler(LANES, model.text.vocab_size, META, on_card=False)


def planned(name: str, packed: str, **options: object) -> tuple[ModelConfig, Shapes, Layout]:
    shape = geometry(name)
    source = Shapes(shape.config, packed)
    config = EngineConfig(lanes=LANES, **options)  # type: ignore[arg-type]
    layout = plan_vram(
        shape.config,
        config,
        on_card(shape.config, source),
        total=141 * GIB,
        free=140 * GIB,
        pixels=shape.max_pixels,
        context_bytes=CONTEXT,
    )
    return shape.config, source, layout


CASES = [
    (QWEN, "nvfp4", {"memory_budget": 40 * GIB, "max_context": 131072}),
    (QWEN, "fragments", {"memory_budget": 31 * GIB, "max_context": 65536, "kv_format": "fp8"}),
    (QWEN, MIXED, {"memory_budget": 80 * GIB, "max_context": 65536}),
    (EMBER, "nvfp4", {"memory_budget": 6 * GIB}),
]


@pytest.mark.parametrize(("name", "packed", "options"), CASES)
def test_torch_takes_what_is_planned(
    name: str, packed: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source, layout = planned(name, packed, **options)
    card = Card(monkeypatch)
    lines = {line.name: line.bytes for line in layout.plan.lines if line.tier == "main"}
    with card.live:
        held = card.load(model, source, layout, layout.weights)
        (arena,) = card.arenas
        assert 0 <= arena.left < STEP, "the block is as large as what lies in it"
        card.torch.take(lines["graphs"])
        fixed = card.torch.reserved
        reserve(layout.plan, META)
        card.live.sweep()
    share = layout.plan.total - lines["context"]
    assert card.torch.reserved == pytest.approx(share, abs=STEP)
    assert layout.plan.total <= layout.plan.budget
    # By construction, not because what was left over was taken: that is room for small tensors, and a step or two.
    unused = scratch_bytes(model.text) if packed == MIXED else 0
    rest = share - fixed - lines["workspace"] - lines["vision_cache"] - unused
    assert SMALL_FREE <= rest <= SMALL_FREE + SMALL_KEPT + 4 * MIB
    del held


def test_what_graphs_leave_is_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    model, source, layout = planned(EMBER, "nvfp4", memory_budget=6 * GIB)
    card = Card(monkeypatch)
    lines = {line.name: line.bytes for line in layout.plan.lines if line.tier == "main"}
    with card.live:
        held = card.load(model, source, layout, layout.weights)
        reserve(layout.plan, META)
        card.live.sweep()
    free = [segment.total for segment in card.torch.segments if not segment.allocated and not segment.small]
    assert max(free) >= lines["workspace"] + lines["graphs"]
    assert card.torch.reserved == pytest.approx(layout.plan.total - lines["context"], abs=STEP)
    del held


def attend(product: Tensor, *_: object) -> Tensor:
    """What ``kernels.fused.vision_attention`` allocates."""
    out = torch.empty(len(product), product.shape[1] // 3, dtype=product.dtype, device=META)
    torch.empty(2 * 16, len(product), dtype=torch.float32, device=META)
    return out


@pytest.mark.parametrize("case", [CASES[0], CASES[3]], ids=[QWEN, EMBER])
def test_the_largest_pictures_take_nothing_more(
    case: tuple[str, str, dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, two of them kept: their work is cut from the same blocks every time."""
    monkeypatch.setattr(vision, "_attend", attend)
    model, source, layout = planned(*case[:2], **case[2])
    assert model.vision is not None
    card = Card(monkeypatch)
    side = math.isqrt(geometry(case[0]).max_pixels) // model.vision.cell * model.vision.cell
    picture = np.zeros((side, side, 3), np.uint8)
    with card.live:
        held = card.load(model, source, layout, layout.weights)
        tower = held[0].vision
        assert tower is not None
        card.torch.take(next(line.bytes for line in layout.plan.lines if line.name == "graphs"))
        reserve(layout.plan, META)
        card.live.sweep()
        before, kept = card.torch.reserved, deque[Tensor](maxlen=2)
        for _ in range(8):
            kept.append(tower.encode(picture))
    assert kept[0].nbytes * 2 <= layout.vision_cache
    assert card.torch.reserved == before


def test_the_block_goes_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model, source, layout = planned(EMBER, "nvfp4", memory_budget=6 * GIB)
    card = Card(monkeypatch)
    with card.live:
        held = card.load(model, source, layout, layout.weights)
        card.arenas.clear()
        assert card.torch.reserved > CUBLAS + 2 * (layout.weights or 0)
        del held
        card._empty_cache()
    assert card.torch.reserved == CUBLAS


def test_weights_one_by_one_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the block is for: some hundred matrices of the 27B, each rounded up."""
    model, source, layout = planned(QWEN, "nvfp4", memory_budget=40 * GIB, max_context=131072)
    reserved: list[int] = []
    for weights in (layout.weights, None):
        card = Card(monkeypatch)
        with card.live:
            held = card.load(model, source, layout, weights)
            card._empty_cache()
            reserved.append(card.torch.reserved)
            del held
    assert reserved[1] - reserved[0] > 300 * MIB


@pytest.mark.parametrize("seed", range(20))
def test_segments_are_counted_as_torch_takes_them(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    exponents = torch.rand(12, generator=generator) * 7
    sizes = [int(MIB * 2**exponent) + 1 for exponent in exponents.tolist()]
    allocator = CachingAllocator()
    for size in sizes:
        allocator.take(size)
    assert allocator.reserved == taken(sizes)


def test_blocks_are_cut_and_joined_as_torch_does() -> None:
    allocator = CachingAllocator()
    first, second = allocator.take(4 * MIB), allocator.take(4 * MIB)
    assert (allocator.reserved, len(allocator.segments)) == (20 * MIB, 1)
    large, small = allocator.take(11 * MIB), allocator.take(100)
    assert allocator.reserved == (20 + 2) * MIB
    assert (large.size, small.size) == (11 * MIB + MIB, 512)
    for block in (first, large, second):
        allocator.give(block)
    assert len(allocator.segments[0].blocks) == 1
    allocator.empty_cache()
    assert allocator.reserved == 2 * MIB
