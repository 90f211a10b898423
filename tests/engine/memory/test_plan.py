"""The host memory plan: adds up, matches the buffers, refuses with figures."""

from __future__ import annotations

import re

import pytest
import torch

from engine.config import EngineConfig, ModelConfig
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.memory.plan import PlanError, plan_host
from engine.sample.sampler import Sampler
from tests.engine.model.oracle import make_pair

PLENTY = 64 << 30


def lines(model: ModelConfig, config: EngineConfig, dtype: torch.dtype = torch.float32) -> dict[str, int]:
    return {line.name: line.bytes for line in plan_host(model, config, dtype, PLENTY).plan.lines}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lines_are_the_buffers(model: ModelConfig, dtype: torch.dtype) -> None:
    config = EngineConfig(lanes=3, retained_limit=2)
    layout = plan_host(model, config, dtype, PLENTY)
    found = {line.name: line.bytes for line in layout.plan.lines}
    cpu = torch.device("cpu")
    assert found["kv_pool"] == PagedKV(model.text, layout.pages, config.page_size, cpu, dtype).nbytes
    assert found["lane_state"] == LaneState(model.text, 3, cpu, dtype).nbytes
    assert found["retained"] == LaneState(model.text, 2, cpu, dtype).nbytes
    assert found["sampling"] == Sampler(3, model.text.vocab_size, cpu).nbytes
    assert layout.plan.total == sum(found.values())
    assert layout.plan.budget == PLENTY


@pytest.mark.parametrize("shape", ["plain", "untied"])
def test_parameters_are_counted(shape: str) -> None:
    pair = make_pair(shape)
    layout = plan_host(pair.config, EngineConfig(), torch.bfloat16, PLENTY)
    assert layout.parameters == sum(parameter.numel() for parameter in pair.hf.parameters())
    assert lines(pair.config, EngineConfig(), torch.bfloat16)["weights"] == 2 * layout.parameters


def test_pool_holds_every_lane_when_memory_allows(model: ModelConfig) -> None:
    layout = plan_host(model, EngineConfig(lanes=3), torch.float32, PLENTY)
    assert layout.max_context == model.text.max_context
    assert layout.pages == 3 * model.text.max_context // 64


def test_pool_takes_what_is_left(model: ModelConfig) -> None:
    config = EngineConfig(lanes=4)
    others = sum(size for name, size in lines(model, config).items() if name != "kv_pool")
    page = 64 * PagedKV.bytes_per_token(model.text, torch.float32)
    each = model.text.max_context // 64
    layout = plan_host(model, config, torch.float32, others + (each + 3) * page + page // 2)
    assert layout.pages == each + 3
    assert layout.plan.total <= layout.plan.budget


def test_shortfall_is_named(model: ModelConfig) -> None:
    config = EngineConfig(lanes=4)
    others = sum(size for name, size in lines(model, config).items() if name != "kv_pool")
    least = others + model.text.max_context * PagedKV.bytes_per_token(model.text, torch.float32)
    assert plan_host(model, config, torch.float32, least).pages == model.text.max_context // 64
    with pytest.raises(PlanError, match=re.escape(f"needs 1,000 bytes more than the {least - 1000:,} that are free")):
        plan_host(model, config, torch.float32, least - 1000)


def test_context_can_be_limited_but_not_stretched(model: ModelConfig) -> None:
    assert plan_host(model, EngineConfig(max_context=256), torch.float32, PLENTY).max_context == 256
    assert (
        plan_host(model, EngineConfig(max_context=10**6), torch.float32, PLENTY).max_context == model.text.max_context
    )


def test_pool_of_a_given_size(model: ModelConfig) -> None:
    assert plan_host(model, EngineConfig(kv_tokens=700), torch.float32, PLENTY).pages == 11
    with pytest.raises(PlanError, match="kv_tokens is 100, one context needs 512"):
        plan_host(model, EngineConfig(kv_tokens=100), torch.float32, PLENTY)
