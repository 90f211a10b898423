"""Where the tensors live and in what type they are multiplied."""

from __future__ import annotations

import os

import psutil
import torch

from engine.compute import compute_type
from engine.config import ConfigError, EngineConfig

_FIRST = 9
"""Compute capability of the first cards that the kernels were made for, its first number."""


def choose_device(config: EngineConfig) -> torch.device:
    """The device asked for. "auto" is a card that the kernels were made for (SM90 and later), and the CPU where there
    is none and for Ember, which needs no card. Raises ``ConfigError`` when what is asked for is not there."""
    if config.device == "cpu":
        return torch.device("cpu")
    if config.device == "auto":
        made_for = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= _FIRST
        return torch.device("cuda" if made_for and config.model is not None else "cpu")
    if config.device == "cuda":
        if not torch.cuda.is_available():
            raise ConfigError("No CUDA device can be used; run `ignis doctor` to see why, or start with --device cpu.")
        return torch.device("cuda")
    raise ConfigError(f"device must be auto, cpu or cuda, not {config.device!r}.")


def choose_dtype(config: EngineConfig, device: torch.device) -> torch.dtype:
    """What ``engine.compute`` says, as torch names it."""
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[compute_type(config, device.type)]


def choose_threads(config: EngineConfig) -> int:
    """CPU threads for the matrix products: the physical cores this process may use."""
    if config.threads is not None:
        if config.threads < 1:
            raise ConfigError(f"threads must be at least 1, not {config.threads}.")
        return config.threads
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))


def describe(device: torch.device, dtype: torch.dtype, threads: int) -> str:
    """For people: "CPU, bfloat16, 2 threads"."""
    name = str(dtype).removeprefix("torch.")
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, {name}"
    return f"CPU, {name}, {threads} thread{'s' if threads != 1 else ''}"
