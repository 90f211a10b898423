"""What a device's allocators and compilers have done so far: two looks tell what happened in between."""

from __future__ import annotations

import os
import threading
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import Any

import psutil
import torch


@dataclass(frozen=True)
class Look:
    """Counters of this process; those of a card are 0 without one."""

    device_allocations: int = 0
    """Times torch took memory from the driver."""
    device_frees: int = 0
    retries: int = 0
    """Times it had to give memory back to the driver before it got some."""
    refusals: int = 0
    """Times it got none."""
    segments: int = 0
    reserved: int = 0
    """Bytes it holds of the driver."""
    most_allocated: int = 0
    """Bytes in use at the fullest moment since the last reset."""
    pinned: int = 0
    """Times it took pinned host memory."""
    resident: int = 0
    """Bytes of this process in the host's memory."""

    def since(self, before: Look) -> dict[str, int]:
        """How much each grew."""
        return {f.name: getattr(self, f.name) - getattr(before, f.name) for f in fields(self)}

    def json(self) -> dict[str, int]:
        return asdict(self)


def look() -> Look:
    resident = psutil.Process().memory_info().rss
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return Look(resident=resident)
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    host = torch.cuda.host_memory_stats() if hasattr(torch.cuda, "host_memory_stats") else {}
    return Look(
        device_allocations=stats.get("num_device_alloc", stats.get("segment.all.allocated", 0)),
        device_frees=stats.get("num_device_free", stats.get("segment.all.freed", 0)),
        retries=stats.get("num_alloc_retries", 0),
        refusals=stats.get("num_ooms", 0),
        segments=stats.get("segment.all.current", 0),
        reserved=torch.cuda.memory_reserved(),
        most_allocated=torch.cuda.max_memory_allocated(),
        pinned=host.get("num_host_alloc", 0),
        resident=resident,
    )


def reset_peak() -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def driver_used() -> int | None:
    """Bytes of the card that are in use, by whomever, as the driver counts them; None without a driver that tells. CUDA
    is not touched, so that the first look may come before it."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # the package or the driver is not there
        return None
    try:
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
        if first.startswith(("GPU-", "MIG-")):
            handle = pynvml.nvmlDeviceGetHandleByUUID(first)
        else:
            handle = pynvml.nvmlDeviceGetHandleByIndex(int(first) if first.isdecimal() else 0)
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


class Compilations:
    """Kernels that Triton makes ready while installed (``with``): compiled, or read from its cache on disk. Either
    makes a request wait."""

    def __init__(self) -> None:
        self.compiled: Counter[str] = Counter()
        self.read: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._before: Any = None

    @property
    def count(self) -> int:
        return self.compiled.total() + self.read.total()

    def names(self) -> dict[str, int]:
        """Kernel → how many variants of it."""
        return dict((self.compiled + self.read).most_common())

    def since(self, before: dict[str, int]) -> dict[str, int]:
        """Those that came after :meth:`names` gave ``before``."""
        return dict(Counter(self.names()) - Counter(before))

    def __enter__(self) -> Compilations:
        place = _compiler_knobs()
        if place is not None:
            self._before = place.listener
            place.listener = self._heard
        return self

    def __exit__(self, *_: object) -> None:
        place = _compiler_knobs()
        if place is not None:
            place.listener = self._before

    def _heard(self, **about: Any) -> None:
        source = about.get("src")
        name = getattr(source, "name", None) or str((about.get("metadata") or {}).get("name", "a kernel"))
        with self._lock:
            (self.read if about.get("cache_hit") else self.compiled)[name] += 1
        if self._before is not None:
            self._before(**about)


def _compiler_knobs() -> Any:
    """Where Triton takes a listener; None without Triton, or with one that takes none."""
    try:
        from triton import knobs
    except ImportError:
        return None
    return knobs.compilation if hasattr(knobs.compilation, "listener") else None
