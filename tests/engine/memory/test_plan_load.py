"""What this machine has free, and the plan that the loader makes of it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import psutil
import pynvml
import pytest
import torch

from engine.checkpoint.random_model import RandomWeights
from engine.config import EngineConfig, ModelConfig
from engine.memory.arena import Arena
from engine.memory.plan import Memory, PlanError, card_memory, host_memory, load, plan_load
from engine.memory.plan.machine import cuda_context
from engine.memory.plan.vram import KERNELS
from engine.memory.plan.weights import on_card, plain_on_card
from engine.memory.segments import STEP
from engine.model.fused_weights import read_fused
from engine.model.weights import read_text, read_vision

GIB = 1 << 30
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_what_this_process_holds_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = psutil.virtual_memory()._replace(total=16 * GIB, available=4 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(
        psutil, "Process", lambda: SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=3 * GIB, shared=GIB))
    )
    assert host_memory() == Memory(16 * GIB, 6 * GIB)
    assert host_memory().other == 10 * GIB


class Driver:
    """One card of 32 GiB on which this process and another one hold memory, as NVML tells of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, own: int | None = 5 * GIB) -> None:
        self.asked: list[object] = []
        self.open = 0
        processes = [SimpleNamespace(pid=os.getpid(), usedGpuMemory=own), SimpleNamespace(pid=1, usedGpuMemory=GIB)]
        for name, value in {
            "nvmlInit": lambda: self._count(1),
            "nvmlShutdown": lambda: self._count(-1),
            "nvmlDeviceGetHandleByIndex": self._handle,
            "nvmlDeviceGetHandleByUUID": self._handle,
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=32 * GIB, free=20 * GIB),
            "nvmlDeviceGetName": lambda _: "Card",
            "nvmlDeviceGetComputeRunningProcesses": lambda _: processes,
        }.items():
            monkeypatch.setattr(pynvml, name, value)

    def _count(self, by: int) -> None:
        self.open += by

    def _handle(self, which: object) -> object:
        self.asked.append(which)
        return which


def test_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = card_memory()
    assert found == Memory(32 * GIB, 25 * GIB, "Card")
    assert found.other == 7 * GIB
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    card_memory()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-abc")
    card_memory()
    card_memory("GPU-def")
    assert driver.asked == [0, 2, "GPU-abc", "GPU-def"]
    assert driver.open == 0


def test_a_driver_that_does_not_tell_what_we_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    Driver(monkeypatch, own=None)
    found = card_memory()
    assert found is not None
    assert found.free == 20 * GIB
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 3 * GIB)
    found = card_memory()
    assert found is not None
    assert found.free == 23 * GIB


def test_the_context_is_what_is_held_beside_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 3 * GIB)
    driver = Driver(monkeypatch)
    assert cuda_context() == 2 * GIB
    assert driver.open == 0
    Driver(monkeypatch, own=None)
    assert cuda_context() is None


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    assert card_memory() is None
    assert cuda_context() is None


def on_a_card(monkeypatch: pytest.MonkeyPatch, context: int | None = 700 << 20) -> None:
    """A card of 32 GiB, of which others hold 7, and on which CUDA's context takes ``context`` bytes."""
    monkeypatch.setattr(load, "_touch", lambda _: None)
    monkeypatch.setattr(load, "_uuid", lambda _: "")
    monkeypatch.setattr(load, "_card", lambda _: Memory(32 * GIB, 25 * GIB))
    monkeypatch.setattr(load, "cuda_context", lambda _: context)


def test_loading_on_a_card_plans_what_is_held_there(model: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_card(monkeypatch)
    monkeypatch.setattr(load, "host_memory", lambda: Memory(64 * GIB, 60 * GIB))
    checkpoint = RandomWeights(model, device=CPU)
    layout = plan_load(model, EngineConfig(), CUDA, torch.bfloat16, checkpoint)
    found = {line.name: line for line in layout.plan.lines}
    assert layout.plan.kind == "vram"
    assert found["context"].bytes == (700 << 20) + KERNELS
    assert (layout.plan.budget, layout.plan.other) == (24 * GIB, 7 * GIB)
    assert found["weights"].bytes == on_card(model, checkpoint).bytes == layout.weights
    assert found["retained"].tier == found["host_tier"].tier == "host"
    assert layout.host_tier == found["host_tier"].bytes == 2 * GIB


def test_without_the_kernels_weights_are_unpacked(model: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_card(monkeypatch)
    monkeypatch.setattr(load, "host_memory", lambda: Memory(64 * GIB, 60 * GIB))
    monkeypatch.setenv("IGNIS_KERNELS", "reference")
    checkpoint = RandomWeights(model, device=CPU)
    layout = plan_load(model, EngineConfig(), CUDA, torch.bfloat16, checkpoint)
    assert layout.weights == plain_on_card(model, 2, "bfloat16").bytes
    arena = Arena(layout.weights, CPU)
    read_text(model, checkpoint, arena.take, torch.bfloat16)
    read_vision(model, checkpoint, arena.take, torch.bfloat16)
    assert 0 <= arena.left < STEP
    with pytest.raises(PlanError, match="not yet in fp8"):
        plan_load(model, EngineConfig(kv_format="fp8"), CUDA, torch.bfloat16, checkpoint)


def test_the_card_holds_the_bytes_that_are_planned(model: ModelConfig) -> None:
    """Every buffer of the fused decoder and of the vision tower, held against the plan's line."""
    source = RandomWeights(model, device=CPU)
    arena = Arena(on_card(model, source).bytes, CPU)
    weights = read_fused(model, source, CPU, arena.take)
    assert weights.embedding.untyped_storage().nbytes() == on_card(model, source).bytes
    read_vision(model, source, arena.take, torch.bfloat16)
    assert 0 <= arena.left < STEP


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (EngineConfig(kv_format="q2"), "keeps keys and values in bfloat16, not yet in q2: leave out --kv-format"),
        (EngineConfig(draft_tokens=7), "does not draft yet: leave out --draft-tokens"),
    ],
)
def test_what_does_not_run_yet_is_refused_by_name(model: ModelConfig, config: EngineConfig, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        plan_load(model, config, CUDA, torch.bfloat16, RandomWeights(model, device=CPU))


def test_loading_on_the_cpu_plans_the_host(model: ModelConfig) -> None:
    assert plan_load(model, EngineConfig(), CPU, torch.float32, RandomWeights(model, device=CPU)).plan.kind == "host"
