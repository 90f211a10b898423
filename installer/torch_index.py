"""Which index PyTorch should come from, besides the one that pip is set up with.

PyPI has one build a system: CUDA for Linux (several GB), CPU for Windows. PyTorch's own index has the others.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import urllib.request
from pathlib import Path

WHEELS = "https://download.pytorch.org/whl"
CUDA_BUILD = "cu130"


def has_nvidia_gpu() -> bool:
    """Whether an NVIDIA driver is loaded, told from files only: no library is loaded for it."""
    if sys.platform == "win32":
        system = Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32"
        return (system / "nvml.dll").exists() or shutil.which("nvidia-smi") is not None
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists()


def wanted_build() -> str | None:
    """The build that PyPI does not give on this machine: "cpu", a CUDA build, or None when PyPI's own will do."""
    if sys.platform == "win32":
        return CUDA_BUILD if has_nvidia_gpu() else None
    return None if has_nvidia_gpu() else "cpu"


def extra_index(timeout: float = 2.0) -> str | None:
    """Address of the index to offer pip as well, or None. ``IGNIS_TORCH_INDEX`` names another one; empty means none."""
    named = os.environ.get("IGNIS_TORCH_INDEX")
    if named is not None:
        return named or None
    build = wanted_build()
    if build is None or os.environ.get("PIP_NO_INDEX"):
        return None
    address = f"{WHEELS}/{build}"
    return address if answers(f"{address}/torch/", timeout) else None


def answers(url: str, timeout: float) -> bool:
    """Whether ``url`` answers within ``timeout`` seconds, the look-up of its name included."""
    answered: list[bool] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout):
                answered.append(True)
        except (OSError, ValueError):
            return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout)
    return bool(answered)
