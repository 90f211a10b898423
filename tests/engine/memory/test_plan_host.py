"""The host memory plan: adds up, matches the buffers, refuses with figures and with options that really fit."""

from __future__ import annotations

import re
from pathlib import Path

import psutil
import pytest
import torch

from engine.checkpoint.geometries import geometry
from engine.config import EngineConfig, ModelConfig
from engine.memory.keeper import Keeper
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.memory.pages import PagePool
from engine.memory.plan import MAX_PIXELS, Layout, PlanError, plan_host
from engine.memory.plan.budget import encoded_picture
from engine.memory.sizes import kv_token_bytes
from engine.sample.sampler import Sampler
from tests.engine.model.oracle import make_pair

MIB = 1 << 20
PLENTY = 64 << 30
HEADROOM = 512 * MIB


def plan(model: ModelConfig, config: EngineConfig | None = None, free: int = PLENTY) -> Layout:
    return plan_host(model, config or EngineConfig(), torch.float32, free)


def lines(layout: Layout) -> dict[str, int]:
    return {line.name: line.bytes for line in layout.plan.lines}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lines_are_the_buffers(model: ModelConfig, dtype: torch.dtype) -> None:
    config = EngineConfig(lanes=3, retained_limit=2)
    layout = plan_host(model, config, dtype, PLENTY)
    found = lines(layout)
    cpu = torch.device("cpu")
    state, kv = (
        LaneState(model.text, 3, cpu, dtype),
        PagedKV(model.text, layout.pages, config.page_size, cpu, dtype),
    )
    keeper = Keeper(kv, state, PagePool(layout.pages), slots=2, lanes=3, host_bytes=layout.host_tier)
    assert found["kv_pool"] == kv.nbytes
    assert found["lane_state"] == state.nbytes
    assert found["retained"] + found["host_tier"] == keeper.nbytes
    assert found["sampling"] == Sampler(3, model.text.vocab_size, cpu).nbytes
    assert found["vision_cache"] == layout.vision_cache + encoded_picture(model, MAX_PIXELS, dtype.itemsize)
    assert layout.plan.total == sum(found.values())


def test_memory_adds_up(model: ModelConfig) -> None:
    found = plan(model).plan
    assert (found.budget, found.headroom) == (PLENTY - HEADROOM, HEADROOM)
    assert found.capacity == found.budget + found.headroom + found.other
    here = plan_host(model, EngineConfig(), torch.float32).plan
    assert here.capacity == here.budget + here.headroom + here.other == psutil.virtual_memory().total
    assert here.other > 0


@pytest.mark.parametrize("shape", ["plain", "untied"])
def test_parameters_are_counted(shape: str) -> None:
    pair = make_pair(shape)
    layout = plan_host(pair.config, EngineConfig(), torch.bfloat16, PLENTY)
    assert layout.parameters == sum(parameter.numel() for parameter in pair.hf.parameters())
    assert lines(layout)["weights"] == 2 * layout.parameters


def test_ember_by_hand() -> None:
    """Ember in float32 with the defaults, from assets/ember/config.json: 16 layers of 576, 4 of them full attention
    with 3 key heads × 64, 12 Gated DeltaNet with 9 heads × 64 × 64; 49,216 tokens; pictures of 8,192 patches."""
    ember = geometry("ember")
    layout = plan_host(ember.config, EngineConfig(), torch.float32, PLENTY, pixels=ember.max_pixels)
    channels = 3 * 9 * 64
    mlp = 3 * 1536 * 576
    attention = (2 * 9 + 2 * 3 + 9) * 64 * 576 + 2 * 64
    deltanet = (channels + 9 * 64 + 2 * 9) * 576 + channels * 4 + 576 * 576 + 2 * 9 + 64
    text = 49_216 * 576 + 12 * deltanet + 4 * attention + 16 * (mlp + 2 * 576) + 576
    block = 4 * 384 * 384 + 2 * 384 * 1536 + (3 + 1 + 1 + 4) * 384 + 1536
    vision = (1536 + 1 + 2304) * 384 + 10 * block + 2 * 384 + (1536 + 576) * 1536 + 1536 + 576
    hand = {
        "weights": (text + vision) * 4,
        "runtime": 320 * MIB,
        "kv_pool": 8 * 8192 * (4 * 2 * 3 * 64 * 4),
        "lane_state": 8 * 12 * (9 * 64 * 64 * 4 + 3 * channels * 4),
        "retained": (8 + 16) * 12 * (9 * 64 * 64 * 4 + 3 * channels * 4) + 16 * 576 * 4,
        "host_tier": 256 * MIB,
        "sampling": 8 * 49_216 * (2 * 4 + 1 / 8),
        # Residuals and norms, both sides of the MLP, angles of a head.
        "workspace": 8192 * (4 * 384 + 2 * 1536 + 64) * 4,
        "vision_cache": 32 * MIB + 2_097_152 / 32**2 * 576 * 4,
    }
    found = lines(layout)
    assert found.keys() == hand.keys()
    for name, size in hand.items():
        assert found[name] == pytest.approx(size, rel=0.01), name


def test_pool_holds_every_lane_when_memory_allows(model: ModelConfig) -> None:
    layout = plan(model, EngineConfig(lanes=3))
    assert layout.max_context == model.text.max_context
    assert layout.pages == 3 * model.text.max_context // 64


def fixed(model: ModelConfig, config: EngineConfig) -> int:
    """Bytes of all lines but the pool's and the host tier's."""
    return sum(size for name, size in lines(plan(model, config)).items() if name not in ("kv_pool", "host_tier"))


def test_pool_takes_what_is_left_and_the_tier_what_it_leaves(model: ModelConfig) -> None:
    config = EngineConfig(lanes=4)
    page = 64 * kv_token_bytes(model.text, "float32")
    each = model.text.max_context // 64
    least = HEADROOM + fixed(model, config) + page // 2
    layout = plan(model, config, least + (each + 3) * page)
    assert (layout.pages, layout.host_tier) == (each + 3, 0)
    layout = plan(model, config, least + (4 * each + 5) * page)
    assert (layout.pages, layout.host_tier) == (4 * each, 5 * page)
    assert layout.plan.total <= layout.plan.budget


def test_host_tier_as_asked_for(model: ModelConfig) -> None:
    assert plan(model, EngineConfig(host_tier=7 * MIB)).host_tier == 7 * MIB
    assert plan(model, EngineConfig(host_tier=0)).host_tier == 0
    with pytest.raises(PlanError, match=r"more than a quarter of the memory .*: lower --host-tier"):
        plan(model, EngineConfig(host_tier=PLENTY // 4 + 1))


def test_disk_tier_is_named_and_counts_for_nothing(model: ModelConfig, tmp_path: Path) -> None:
    without, layout = plan(model), plan(model, EngineConfig(disk_tier=tmp_path))
    assert layout.plan.total == without.plan.total
    assert [(line.name, line.bytes) for line in layout.plan.lines if line.tier == "disk"] == [("disk_tier", 8 << 30)]


def test_shortfall_is_named_with_what_mends_it(model: ModelConfig) -> None:
    config = EngineConfig(lanes=4)
    least = HEADROOM + fixed(model, config) + model.text.max_context * kv_token_bytes(model.text, "float32")
    assert plan(model, config, least).pages == model.text.max_context // 64
    with pytest.raises(PlanError) as caught:
        plan(model, config, least - 1000)
    said = caught.value.message
    assert caught.value.short == 1000
    assert f"need 1,000 bytes more than the {least - 1000 - HEADROOM:,} that may be taken" in said
    context = int(re.search(r"--max-context (\d+) fits", said)[1])  # type: ignore[index]
    lanes = int(re.search(r"--lanes (\d+)", said)[1])  # type: ignore[index]
    assert plan(model, EngineConfig(lanes=4, max_context=context), least - 1000).max_context == context
    with pytest.raises(PlanError):
        plan(model, EngineConfig(lanes=4, max_context=context + 64), least - 1000)
    assert plan(model, EngineConfig(lanes=lanes), least - 1000).max_context == model.text.max_context
    with pytest.raises(PlanError):
        plan(model, EngineConfig(lanes=lanes + 1), least - 1000)
    smaller = int(re.search(r"--headroom (\d+)MiB", said)[1])  # type: ignore[index]
    assert plan(model, EngineConfig(lanes=4, headroom=smaller * MIB), least - 1000).pages


def test_nothing_mends_a_model_that_is_too_large(model: ModelConfig) -> None:
    with pytest.raises(PlanError, match="only more memory or a smaller model helps"):
        plan(model, EngineConfig(), HEADROOM // 2)


def test_headroom_and_budget(model: ModelConfig) -> None:
    assert plan(model, EngineConfig(headroom=MIB)).plan.budget == PLENTY - MIB
    given = plan(model, EngineConfig(memory_budget=8 << 30)).plan
    assert (given.budget, given.headroom) == (8 << 30, PLENTY - (8 << 30))
    with pytest.raises(PlanError) as caught:
        plan(model, EngineConfig(memory_budget=1 << 30))
    enough = int(re.search(r"--memory-budget (\d+)MiB fits", caught.value.message)[1])  # type: ignore[index]
    assert plan(model, EngineConfig(memory_budget=enough * MIB)).pages
    with pytest.raises(PlanError, match=re.escape(f"The budget is {PLENTY + 1:,} bytes, but only {PLENTY:,} are free")):
        plan(model, EngineConfig(memory_budget=PLENTY + 1))


def test_a_longer_context_needs_yarn(model: ModelConfig) -> None:
    native = model.text.max_context
    assert plan(model, EngineConfig(max_context=256)).max_context == 256
    with pytest.raises(PlanError, match=f"--yarn 2 stretches it, or --max-context {native} fits"):
        plan(model, EngineConfig(max_context=native + 1))
    with pytest.raises(PlanError, match=f"that the model reads: --max-context {native} fits"):
        plan(model, EngineConfig(max_context=9 * native))
    layout = plan(model, EngineConfig(yarn=2))
    assert layout.max_context == 2 * native
    assert lines(layout)["kv_pool"] == 2 * lines(plan(model))["kv_pool"]


def test_stretching_twice_is_stretching_once(model: ModelConfig) -> None:
    assert model.stretched(2).stretched(2) == model.stretched(2)
    assert model.stretched(2).stretched(1).text.max_context == model.text.max_context


def test_pool_of_a_given_size(model: ModelConfig) -> None:
    assert plan(model, EngineConfig(kv_tokens=700)).pages == 11
    with pytest.raises(PlanError, match="kv_tokens is 100, one context needs 512"):
        plan(model, EngineConfig(kv_tokens=100))
    with pytest.raises(PlanError, match="leaving out --kv-tokens fits"):
        plan(model, EngineConfig(kv_tokens=1 << 40))


def test_what_the_cpu_does_not_do_is_refused_by_name(model: ModelConfig) -> None:
    assert plan_host(model, EngineConfig(kv_format="bf16"), torch.bfloat16, PLENTY).kv_format == "bf16"
    with pytest.raises(PlanError, match="compute type, float32; bf16 needs a GPU: leave out --kv-format"):
        plan(model, EngineConfig(kv_format="bf16"))
    with pytest.raises(PlanError, match="q2 needs a GPU"):
        plan_host(model, EngineConfig(kv_format="q2"), torch.bfloat16, PLENTY)
    with pytest.raises(PlanError, match="leave out --draft-tokens"):
        plan(model, EngineConfig(draft_tokens=7))
