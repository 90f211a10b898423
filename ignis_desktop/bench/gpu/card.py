"""What a card can do at most: the ceilings that kernels and rounds are held against."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

GB = 1e9


@dataclass(frozen=True)
class Card:
    name: str
    capability: str
    processors: int
    memory_gib: float
    driver: str
    read_bytes: float
    """Bytes a second that the card reads when it does nothing else."""
    copy_bytes: float
    """Bytes a second, read and written, of a copy."""
    matrix_flops: float
    """Operations a second of a BF16 matrix product through cuBLAS, on random data."""

    def json(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        return (
            f"{self.name} (SM{self.capability}, {self.processors} multiprocessors, {self.memory_gib:.0f} GiB, driver "
            f"{self.driver}): reads {self.read_bytes / 1e12:.2f} TB/s, copies {self.copy_bytes / 1e12:.2f} TB/s, BF16 "
            f"products {self.matrix_flops / 1e12:.0f} TFLOP/s"
        )


def measure_card() -> Card:
    """Measure the ceilings of the current CUDA device; a second or two."""
    properties = torch.cuda.get_device_properties(0)
    size = min(4 << 30, properties.total_memory // 8)
    source = torch.empty(size // 4, dtype=torch.int32, device="cuda").random_()
    target = torch.empty_like(source)
    side = 8192
    a, b = (torch.randn(side, side, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    return Card(
        name=properties.name,
        capability=f"{properties.major}{properties.minor}",
        processors=properties.multi_processor_count,
        memory_gib=properties.total_memory / 2**30,
        driver=_driver(),
        read_bytes=size / seconds(_reader(source)),
        copy_bytes=2 * size / seconds(lambda: target.copy_(source)),
        matrix_flops=2 * side**3 / seconds(lambda: torch.mm(a, b)),
    )


def seconds(launch: Callable[[], object], repeats: int = 9) -> float:
    """Median time of one launch on the device, by events, after warming up."""
    for _ in range(3):
        launch()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        launch()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)


def _reader(source: torch.Tensor) -> Callable[[], object]:
    from kernels.fused.read import read_all

    out = torch.empty(1, dtype=torch.int32, device=source.device)
    return lambda: read_all(source, out)


def _driver() -> str:
    try:
        import pynvml

        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
    except Exception:  # without NVML the figure is missing, nothing else
        return "unknown"
    return version if isinstance(version, str) else version.decode()
