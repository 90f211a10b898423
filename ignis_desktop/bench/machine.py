"""What a result was measured on."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from pathlib import Path
from typing import Any

import psutil

from ignis_desktop import __version__

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "uvicorn", "httpx")
GIB = 1024**3


def machine() -> dict[str, Any]:
    """Date, machine and versions, for a result's head."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / GIB, 1),
        "versions": {"ignis": __version__, "python": platform.python_version(), **_versions()},
        "busy_before": busy_share(),
    }


def machine_line(found: dict[str, Any]) -> str:
    """The head in words."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        f"{found['date']}, {found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB, {found['system']}; "
        f"processor {found['busy_before']:.0%} busy before; {versions}"
    )


def busy_share(seconds: float = 0.5) -> float:
    """What the whole machine is doing already, 0–1: figures of a busy one are not worth keeping."""
    return round(psutil.cpu_percent(interval=seconds) / 100, 3)


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
