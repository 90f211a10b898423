"""What is really held of each line of the memory plan, found by following the engine's objects to their tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.messages import MemoryPlan
from engine.schedule.scheduler import Scheduler

Blocks = dict[int, int]
"""Address → bytes of a tensor's memory."""
_OWN = ("engine.", "kernels.")


@dataclass(frozen=True)
class Line:
    """A line of the plan, or several that can only be told together, beside what is there."""

    name: str
    planned: int
    held: int | None
    """None: cannot be told on this machine."""
    how: str = ""
    buffer: bool = False
    """It is reserved once and must be as planned."""

    @property
    def off(self) -> float | None:
        """How much more is held than planned, as a share of the plan."""
        if self.held is None or not self.planned:
            return None
        return (self.held - self.planned) / self.planned


def tensors(*roots: Any, device: str) -> Blocks:
    """Memory of every tensor on ``device`` ("cpu" or "cuda") that hangs on ``roots`` by attributes and containers of
    the engine's own objects."""
    found: Blocks = {}
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, Tensor):
            if thing.device.type == device:
                storage = thing.untyped_storage()
                if storage.nbytes():
                    found[storage.data_ptr()] = storage.nbytes()
        else:
            waiting += _parts(thing)
    return found


def _parts(thing: Any) -> Iterable[Any]:
    if isinstance(thing, dict):
        return thing.values()
    if isinstance(thing, list | tuple | set | frozenset):
        return thing
    if type(thing).__module__.startswith(_OWN):
        slots = (getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ()))
        return [*getattr(thing, "__dict__", {}).values(), *slots]
    return ()


def lines_held(scheduler: Scheduler, plan: MemoryPlan, context: int | None) -> list[Line]:
    """The plan line by line. To be called on the engine's thread, between two steps, while nothing is asked.

    Args:
        context: bytes that the driver counts for this process beside what torch holds; None where it does not tell.
    """
    device = "cuda" if plan.kind == "vram" else "cpu"
    planned = {line.name: line.bytes for line in plan.lines}
    network, keeper = scheduler._network, scheduler.lanes.keeper
    kv, state = tensors(network.kv, device=device), tensors(network.state, device=device)
    decoder = network.decoder
    beside = tensors(getattr(getattr(decoder, "_weights", None), "scratch", None), device=device)
    beside |= tensors(getattr(decoder, "inputs", None), device=device)
    weights = _without(tensors(decoder, network.vision, device=device), kv, state, beside)
    named = [
        ("weights", sum(weights.values())),
        ("kv_pool", sum(kv.values())),
        ("lane_state", sum(state.values())),
        ("sampling", scheduler._sampler.nbytes),
        ("retained", sum(tensors(keeper._shelf, keeper._last, device="cpu").values())),
        ("host_tier", sum(tensors(keeper._host._arena, device="cpu").values())),
    ]
    if device == "cuda":
        named.append(("round", scheduler._round_buffers.nbytes))
    lines = [Line(name, planned[name], held, "its tensors", buffer=True) for name, held in named if name in planned]
    if device == "cpu":
        return [*lines, *(Line(n, planned[n], None) for n in ("runtime", "workspace", "vision_cache") if n in planned)]
    torch_holds = _torch_segments()
    cache = sum(tensors(scheduler._prefill._cache, device=device).values())
    stays = sum(held for name, held in named if name not in ("retained", "host_tier"))
    later = planned["workspace"] + planned["vision_cache"]
    return [
        *lines,
        Line("graphs", planned["graphs"], torch_holds.private, "torch's pools of captured rounds and chunks"),
        Line("workspace, vision_cache", later, torch_holds.free + cache, "what torch holds free for requests"),
        Line(
            "runtime",
            planned["runtime"],
            torch_holds.common - torch_holds.free - cache - stays,
            "all else that torch holds",
        ),
        Line("(of it rounded up)", 0, torch_holds.rounding, "segments of tensors that stay, less those tensors"),
        Line("context", planned["context"], context, "the driver's count less torch's"),
    ]


def _without(blocks: Blocks, *others: Blocks) -> Blocks:
    taken = {address for other in others for address in other}
    return {address: size for address, size in blocks.items() if address not in taken}


@dataclass(frozen=True)
class _TorchHolds:
    """Bytes that torch holds of the driver."""

    private: int
    """In pools of graphs."""
    common: int
    """In the pool of everything else."""
    free: int
    """Of that, in large segments from which no tensor is cut."""
    rounding: int
    """Of that, in the other large segments, what no tensor asked for."""


def _torch_segments() -> _TorchHolds:
    private = common = free = rounding = 0
    for segment in torch.cuda.memory_snapshot():
        size = segment["total_size"]
        if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0):
            private += size
            continue
        common += size
        if segment["segment_type"] == "large":
            used = segment["allocated_size"] > 0
            free, rounding = free + size * (not used), rounding + (size - segment["requested_size"]) * used
    return _TorchHolds(private, common, free, rounding)
