"""What is free now: of the host's memory and of the GPU's, with what this process holds itself counted as free.

A restart of the engine gives back what the old one holds, so a plan may count on it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import psutil
import pynvml


@dataclass(frozen=True)
class Memory:
    total: int
    free: int
    """What other processes have left."""
    name: str = ""
    """Of the card."""

    @property
    def other(self) -> int:
        """What other processes and the driver hold."""
        return self.total - self.free


def host_memory() -> Memory:
    """The host's memory."""
    memory = psutil.virtual_memory()
    own = psutil.Process().memory_info()
    # Shared pages are mostly files in the page cache, which is available already.
    private = own.rss - getattr(own, "shared", 0)
    return Memory(memory.total, min(memory.available + private, memory.total))


def card_memory(uuid: str = "") -> Memory | None:
    """A GPU's memory as the driver sees it; None without an NVIDIA GPU or driver.

    Args:
        uuid: the card's ("GPU-…"); "" is the one that CUDA would number 0.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handle = _handle(uuid or os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip())
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        free = min(int(memory.free) + _own(handle), int(memory.total))
        return Memory(int(memory.total), free, str(pynvml.nvmlDeviceGetName(handle)))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _handle(wanted: str) -> object:
    if wanted.startswith(("GPU-", "MIG-")):
        return pynvml.nvmlDeviceGetHandleByUUID(wanted)
    return pynvml.nvmlDeviceGetHandleByIndex(int(wanted) if wanted.isdecimal() else 0)


def cuda_context(uuid: str = "") -> int | None:
    """Bytes of the card that this process holds beside what torch has reserved: the driver's context, libraries and
    kernels that are loaded. None where the driver does not tell; then a plan assumes. CUDA must be in use already."""
    import torch

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handle = _handle(uuid or os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip())
        held = sum(_told(handle)) - torch.cuda.memory_reserved()
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
    return held if held > 0 else None


def _told(handle: object) -> list[int]:
    """What the driver says this process holds: nothing, or one figure."""
    return [
        process.usedGpuMemory or 0
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        if process.pid == os.getpid()
    ]


def _own(handle: object) -> int:
    """Bytes that this process holds on the card. Windows' driver does not tell; then what torch has reserved."""
    held = _told(handle)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        held.append(torch.cuda.memory_reserved())
    return max(held, default=0)
