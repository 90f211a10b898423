"""CUDA graphs of a forward and backward pass, one for each shape of batch.

A pass of this network is some three thousand small kernels; started one by one from Python they keep a fast GPU
waiting. A captured pass is started as a whole. All graphs share one memory pool, since they run one after the other.
Where capturing is not possible (CPUs, or a pass that fails to be captured) the pass runs as written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

import torch
from torch import Tensor

Batch = dict[str, Tensor]
Pass = Callable[[Batch], dict[str, Tensor]]
"""Forward and backward of one batch; gradients are added to the parameters', metrics returned."""


class Passes:
    """Runs passes of known shapes, from graphs where ``prepare`` could capture them."""

    def __init__(self, device: torch.device, *, capture: bool) -> None:
        self.device = device
        self.capture = capture and device.type == "cuda"
        self.graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, Batch, list[str], Tensor]] = {}
        self.pool = torch.cuda.graph_pool_handle() if self.capture else None

    def prepare(self, examples: dict[Hashable, tuple[Pass, Batch]], tell: Callable[[str], None] = print) -> None:
        """Run every example once (which compiles what is to be compiled and fills caches), then capture each. The
        gradients they leave behind are the caller's to clear."""
        if not self.capture:
            return
        begun, peaks = time.monotonic(), {}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for key, (step, batch) in examples.items():
                torch.cuda.reset_peak_memory_stats()
                step(self._moved(batch))
                peaks[key] = torch.cuda.max_memory_allocated()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        tell(f"every pass ran once: {time.monotonic() - begun:.0f} s")
        torch.cuda.reset_peak_memory_stats()
        for key in sorted(examples, key=lambda key: -peaks[key]):  # the others fit into the pool of the largest
            step, batch = examples[key]
            try:
                self.graphs[key] = self._captured(step, self._moved(batch))
            except RuntimeError as error:
                tell(f"{key} is not captured and runs as written: {error}")
                torch.cuda.synchronize()
        used = torch.cuda.max_memory_reserved() / 1e9
        tell(f"{len(self.graphs)} of {len(examples)} captured: {time.monotonic() - begun:.0f} s, {used:.0f} GB")

    def _moved(self, batch: Batch) -> Batch:
        return {name: t.to(self.device) for name, t in batch.items()}

    def _captured(self, step: Pass, inputs: Batch) -> tuple[torch.cuda.CUDAGraph, Batch, list[str], Tensor]:
        graph = torch.cuda.CUDAGraph()
        # Other threads (the one that pins batches, the watchdog of collectives) go on calling CUDA meanwhile.
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            metrics = step(inputs)
            values = torch.stack([value.detach().float() for value in metrics.values()])
        return graph, inputs, list(metrics), values

    def run(self, key: Hashable, step: Pass, batch: Batch) -> dict[str, Tensor]:
        """The metrics of one pass over a batch of the shapes of ``key``'s example."""
        if key not in self.graphs:
            return step({name: t.to(self.device, non_blocking=True) for name, t in batch.items()})
        graph, inputs, names, values = self.graphs[key]
        for name, t in batch.items():
            inputs[name].copy_(t, non_blocking=True)
        graph.replay()
        return dict(zip(names, values.clone().unbind(), strict=True))
