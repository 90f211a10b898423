"""Short chunks as CUDA graphs: captured at load, checked against the kernels launched one by one, then replayed.

A chunk is recorded in *pieces*, one up to each attention layer, for requests that read the first layers only: pieces
are replayed in order up to the layer that is wanted. What a piece leaves for the next lies in memory that the graphs
share, so pieces are never replayed on their own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.config import TextConfig
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.memory.sizes import PADDED
from engine.model.decoder import Run
from engine.model.fused_padding import PaddedInputs

_log = logging.getLogger(__name__)
Work = Callable[[], None]


class Recorder(Protocol):
    def record(self, work: Work) -> Work:
        """What does again all that ``work`` launches, on the same addresses; nothing is run now. Raises what goes
        wrong, which does not harm the next recording."""


class Chunks(Protocol):
    """What reads chunks (``engine.model.fused_decoder.FusedDecoder``)."""

    @property
    def config(self) -> TextConfig: ...
    @property
    def inputs(self) -> PaddedInputs: ...
    def embed(self, ids: Tensor) -> Tensor: ...
    def pieces(self, size: int, ends: Sequence[int]) -> list[Work]:
        """The work of the staged chunk, padded to ``size``: up to each of ``ends`` layers, to be done in order."""


class CudaRecorder:
    """Records graphs that share one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._mark = torch.zeros(1, dtype=torch.int32, device=device)
        self._mark.add_(1)  # loaded before anything is captured
        self._renew()

    def record(self, work: Work) -> Work:
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream(self._device)
        torch.cuda.synchronize(self._device)
        self._stream.wait_stream(current)
        try:
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=self._pool)
                try:
                    # The first kernel of a piece may be one that starts while the kernel before it still runs: here is
                    # one, so that it need not be known what that means at a graph's root.
                    self._mark.add_(1)
                    work()
                finally:
                    graph.capture_end()
        except BaseException:
            self._renew()
            raise
        current.wait_stream(self._stream)
        return graph.replay

    def _renew(self) -> None:
        """A stream and memory that no broken capture has touched."""
        self._stream = torch.cuda.Stream(self._device)
        self._pool = torch.cuda.graph_pool_handle()


class ChunkGraphs:
    """Sizes of chunks that are replayed."""

    def __init__(self, ends: Sequence[int]) -> None:
        """``ends``: layers after which a piece ends; the last is how many there are."""
        self._ends = tuple(ends)
        self._graphs: dict[int, list[Work]] = {}

    @property
    def captured(self) -> tuple[int, ...]:
        return tuple(sorted(self._graphs))

    def replay(self, size: int, layers: int) -> bool:
        """Run the staged chunk through its first ``layers`` layers. False where that was not captured."""
        graphs = self._graphs.get(size)
        if graphs is None or layers not in self._ends:
            return False
        for graph in graphs[: self._ends.index(layers) + 1]:
            graph()
        return True

    def capture(self, chunks: Chunks, kv: PagedKV, state: LaneState, recorder: Recorder, most: int) -> None:
        """Capture every size of up to ``most`` columns, the largest first so that the others find room in what it
        reserved. To be called while slots and pages are nobody's: slot 0 and the first pages are written over.

        A size that cannot be captured, or that does not do what the kernels launched one by one do, is left out, and
        the log says so.
        """
        for size in sorted((size for size in PADDED if size <= most and 2 * size <= kv.rows_in_all), reverse=True):
            trial = _Trial(chunks, kv, state, size)
            # Kernel by kernel first, outside of the attempt: it compiles, and fills what kernels reserve for good.
            expected = trial.run(chunks.pieces(size, self._ends[-1:]))
            try:
                graphs = [recorder.record(piece) for piece in chunks.pieces(size, self._ends)]
                # Columns that are nobody's now hold what would spoil everything it touched.
                found = trial.run(graphs, padding=float("nan"))
                same = all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
                fault = None if same else "they give something else"
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            if fault is None:
                self._graphs[size] = graphs
            else:
                _log.warning("Chunks of %d tokens run kernel by kernel, which is slower: as graphs, %s", size, fault)
        state.clear(0)


class _Trial:
    """The same chunks of a scratch lane, run in different ways: a chunk at a prompt's start and one behind it, of the
    size and of the shortest length that is padded to it."""

    def __init__(self, chunks: Chunks, kv: PagedKV, state: LaneState, size: int) -> None:
        self._chunks, self._kv, self._state = chunks, kv, state
        shorter = max((smaller for smaller in PADDED if smaller < size), default=0)
        self._lengths = sorted({size, shorter + 1})
        self._pages = range(-(-2 * size // kv.page_size))
        generator = torch.Generator().manual_seed(size)
        ids = torch.randint(0, chunks.config.vocab_size, (2 * size,), generator=generator)
        self._x = chunks.embed(ids.to(state.buffers[0].device))

    def run(self, pieces: Sequence[Work], *, padding: float = 0.0) -> list[Tensor]:
        """The bytes of all that the chunks leave behind."""
        return [_bytes(left) for length in self._lengths for left in self._two(length, pieces, padding)]

    def _two(self, length: int, pieces: Sequence[Work], padding: float) -> Iterator[Tensor]:
        inputs = self._chunks.inputs
        self._state.clear(0)
        for past in (0, length):
            own = slice(past, past + length)
            positions = torch.arange(past, past + length, device=self._x.device).expand(3, -1)
            inputs.stage(self._x[own], positions, Run(0, 0, length, past, self._pages), padding=padding)
            for piece in pieces:
                piece()
            yield inputs.x(length)
            yield from (inputs.queries(layer) for layer in self._chunks.config.full_layers)
        yield from self._state.slot(0)
        if self._kv.page_bytes:
            kept = torch.cat([self._kv.page(page) for page in self._pages], dim=2)
            yield kept[:, :, : 2 * length]


def _bytes(values: Tensor) -> Tensor:
    """A copy, bit for bit: NaN is equal to itself in it."""
    return values.clone(memory_format=torch.contiguous_format).view(torch.uint8)
