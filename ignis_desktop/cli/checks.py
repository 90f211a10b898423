"""What ``ignis doctor`` looks at: each check says what it found and, if that is not well, what to do."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ignis_desktop.cli.display import display_server
from ignis_desktop.system_libraries import FONT, has_font, install_line, missing_libraries

Status = Literal["ok", "note", "fault"]
GIB = 1024**3
DEFAULT_PORT = 8000
EMBER_MEMORY = 1 * GIB
OLDEST_DRIVER = 580
"""CUDA 13, which the pinned PyTorch is built with, needs it."""
CAPABILITIES = {(9, 0), (12, 0)}
"""Compute capabilities that the kernels are made for: Hopper (SM90) and RTX 50 (SM120)."""
REINSTALL = "delete the .venv folder and start installer/run.py again"


@dataclass(frozen=True)
class Check:
    """``note`` is something to know that stops nothing; ``fault`` comes with ``advice``."""

    name: str
    status: Status
    found: str
    advice: str = ""


def run_checks() -> Iterator[Check]:
    """All checks, each as soon as it is done."""
    gpus = _gpus()
    groups: tuple[Callable[[], Iterator[Check]], ...] = (
        _system,
        lambda: _graphics(gpus),
        lambda: _compute(gpus),
        _window,
        _server,
        _ember,
    )
    for group in groups:
        yield from group()


def _system() -> Iterator[Check]:
    import psutil

    yield Check("system", "ok", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield Check("python", "ok", f"{platform.python_version()} in {sys.prefix}")
    memory = psutil.virtual_memory()
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count()
    found = f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB free, {cores} cores"
    if memory.available < EMBER_MEMORY:
        yield Check("memory", "fault", found, "Ember needs 1 GiB: close other programs")
    else:
        yield Check("memory", "ok", found)


@dataclass(frozen=True)
class _Gpu:
    name: str
    driver: str
    capability: tuple[int, int]
    free: int
    total: int


def _gpus() -> list[_Gpu] | str:
    """NVIDIA GPUs as the driver sees them, or why it shows none."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as fault:
        return str(fault)
    try:
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            capability = tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle))
            found.append(_Gpu(str(pynvml.nvmlDeviceGetName(handle)), driver, capability, memory.free, memory.total))
        return found
    except pynvml.NVMLError as fault:
        return str(fault)
    finally:
        pynvml.nvmlShutdown()


def _graphics(gpus: list[_Gpu] | str) -> Iterator[Check]:
    if isinstance(gpus, str) or not gpus:
        reason = f" ({gpus})" if isinstance(gpus, str) else ""
        yield Check("gpu", "note", f"no NVIDIA GPU{reason}; models run on the CPU")
        return
    for number, gpu in enumerate(gpus):
        name = f"gpu {number}" if len(gpus) > 1 else "gpu"
        version = f"SM{gpu.capability[0]}{gpu.capability[1]}"
        found = f"{gpu.name}, {version}, {gpu.free / GIB:.1f} of {gpu.total / GIB:.1f} GiB free"
        if gpu.capability in CAPABILITIES:
            yield Check(name, "ok", found)
        else:
            yield Check(name, "fault", found, "the kernels are made for SM120 and SM90; use --device cpu")
    major = gpus[0].driver.partition(".")[0]
    if major.isdigit() and int(major) < OLDEST_DRIVER:
        yield Check("driver", "fault", gpus[0].driver, f"install NVIDIA driver {OLDEST_DRIVER} or newer")
    else:
        yield Check("driver", "ok", gpus[0].driver)


def _compute(gpus: list[_Gpu] | str) -> Iterator[Check]:
    has_gpu = isinstance(gpus, list) and bool(gpus)
    torch = _version("torch")
    if torch is None:
        yield Check("torch", "fault", "not installed", REINSTALL)
    elif has_gpu:
        yield _cuda_check(torch)
    else:
        yield Check("torch", "ok", torch)
    triton = _version("triton-windows" if sys.platform == "win32" else "triton")
    if triton is not None:
        yield Check("triton", "ok", triton)
    else:
        yield Check("triton", "fault" if has_gpu else "note", "not installed", REINSTALL if has_gpu else "")
    if sys.platform != "win32":  # there triton-windows brings its own
        yield _compiler_check(needed=has_gpu)


def _cuda_check(version: str) -> Check:
    import torch

    if torch.version.cuda is None:
        return Check("torch", "fault", f"{version}, built without CUDA", f"for the GPU, {REINSTALL}")
    if not torch.cuda.is_available():
        return Check("torch", "fault", f"{version}, CUDA cannot be used", "update the NVIDIA driver, then restart")
    return Check("torch", "ok", f"{version}, CUDA {torch.version.cuda}")


def _compiler_check(*, needed: bool) -> Check:
    named = os.environ.get("CC")
    compiler = shutil.which(named) if named else next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))), None)
    if compiler:
        return Check("c compiler", "ok", compiler)
    if needed:
        return Check("c compiler", "fault", "none", "Triton builds its launcher with one: install gcc or clang")
    return Check("c compiler", "note", "none; Triton needs one on a GPU only")


def _window() -> Iterator[Check]:
    if sys.platform.startswith("linux"):
        wayland, x11 = display_server()
        servers = " and ".join(name for name, answers in (("Wayland", wayland), ("X11", x11)) if answers)
        yield Check("display", "ok", servers) if servers else Check("display", "note", "none; ignis serves headless")
        missing = missing_libraries(x11=x11 or not wayland, wayland=wayland)
        if missing:
            yield Check("qt libraries", "fault", f"missing: {', '.join(missing)}", install_line(missing.values()))
        else:
            yield Check("qt libraries", "ok", "all there")
        if not has_font():
            yield Check("fonts", "fault", "none", install_line([FONT]))
    qt = _version("PySide6-Essentials")
    yield Check("qt", "ok", qt) if qt else Check("qt", "fault", "not installed", REINSTALL)


def _server() -> Iterator[Check]:
    from ignis_desktop.server import runtime_file
    from ignis_desktop.server.settings import ServerError
    from ignis_desktop.server.thread import bind

    instance = runtime_file.read()
    if instance is not None:
        yield Check("server", "ok", f"running at {instance.url} (process {instance.pid})")
        return
    yield Check("server", "note", "not running; ignis serve starts it")
    try:
        bind("127.0.0.1", DEFAULT_PORT).close()
    except ServerError as fault:
        yield Check("port", "fault", str(fault), f"or start with: ignis serve --port {DEFAULT_PORT + 1}")
    else:
        yield Check("port", "ok", f"{DEFAULT_PORT} is free")


def _ember() -> Iterator[Check]:
    from engine.checkpoint import CheckpointError, open_checkpoint
    from engine.checkpoint.catalogue import resolve_model

    try:
        model = resolve_model(None)
        with open_checkpoint(model.path) as checkpoint:
            formats = ", ".join(f"{count} {name}" for name, count in checkpoint.formats().items())
            found = f"{model.name}, {checkpoint.nbytes / 1e6:.0f} MB ({formats})"
    except CheckpointError as fault:
        yield Check("ember", "fault", fault.message, "its files are damaged or missing: install again")
    else:
        yield Check("ember", "ok", found)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
