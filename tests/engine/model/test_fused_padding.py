"""Chunks of one run that are padded, and replayed: what a card captures, with a recorder that repeats the work."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from engine.memory.sizes import PADDED
from engine.messages import HeadSpan
from engine.model import fused_decoder
from engine.model.decoder import Readout, Run
from engine.model.fused_decoder import FusedDecoder
from engine.model.fused_padding import PaddedInputs, padded_size
from tests.engine.model.test_fused_decoder import PAGE, PAGES, three, tokens

Work = Callable[[], None]
SPAN = HeadSpan(start=2, end=20, heads=((3, 0), (3, 3)), extra=(1,), peaks=((3, 2),), columns=6)


SMALL = {"layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 16, "gdn_key_heads": 1, "gdn_value_heads": 2}
"""For Triton's interpreter: a recurrent layer and an attention layer."""


def decoder(**shape: Any) -> FusedDecoder:
    return three(**{"layers": 5, **shape}).fused


def read(
    fused: FusedDecoder, ids: Tensor, run: Run, layers: int | None = None, spans: tuple[HeadSpan, ...] = ()
) -> tuple[Tensor, list[Readout]]:
    positions = torch.arange(run.past, run.past + run.length).expand(3, -1)
    readouts = [Readout(0, span) for span in spans]
    return fused.forward(fused.embed(ids), positions, [run], layers=layers, readouts=readouts), readouts


def state(fused: FusedDecoder) -> list[Tensor]:
    """Everything that outlives a chunk, bit for bit."""
    kept = torch.cat([fused._kv.page(page) for page in range(PAGES)], 2)
    return [x.clone().view(torch.uint8) for x in (*fused._state.buffers, kept)]


def blank(fused: FusedDecoder) -> FusedDecoder:
    for page in range(PAGES):
        fused._kv.page(page).zero_()
    return fused


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


class Repeats:
    """Records by keeping the work itself."""

    def __init__(self) -> None:
        self.recorded = 0
        self.replayed = 0

    def record(self, work: Work) -> Work:
        self.recorded += 1

        def again() -> None:
            self.replayed += 1
            work()

        return again


def test_sizes() -> None:
    assert [padded_size(columns) for columns in (1, 16, 17, 128, 129, 512, 513)] == [16, 16, 32, 128, 256, 512, None]


@pytest.mark.parametrize(
    ("choice", "shape", "kv_format"),
    [("reference", {}, "auto"), ("reference", {}, "fp8"), ("triton", SMALL, "auto")],
    ids=["plain", "plain-fp8", "triton"],
)
def test_a_padded_chunk_does_what_the_run_alone_does(
    choice: str, shape: dict[str, Any], kv_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Residuals, readouts, and the state of the lane; other lanes and pages stay as they are."""
    fused, alone = (blank(decoder(**shape, kv_format=kv_format)) for _ in range(2))
    last = fused.config.full_layers[-1]
    span = HeadSpan(start=1, end=7, heads=((last, 0), (last, 1)), extra=(0,), peaks=((last, 1),), columns=3)
    monkeypatch.setenv("IGNIS_KERNELS", choice)
    for past, length in ((0, 14), (14, 5)):
        run = Run(2, 0, length, past, [7, 3])
        spans = (span,) if past else ()
        hidden, readouts = read(fused, tokens(length, past), run, spans=spans)
        with monkeypatch.context() as patch:
            patch.setattr(fused_decoder, "padded_size", lambda columns: None)
            expected, reads = read(alone, tokens(length, past), run, spans=spans)
        close(hidden, expected)
        for one, other in zip(readouts, reads, strict=True):
            close(one.scores, other.scores)
            close(one.peaks, other.peaks)
    for one, other in zip(fused._state.buffers, alone._state.buffers, strict=True):
        close(one, other)
        assert not one[:, [0, 1, 3]].any()
        assert one[:, 2].any()
    pages = [state(one)[2].unflatten(2, (PAGES, PAGE)).flatten(4) for one in (fused, alone)]
    assert torch.equal(*(written.any(-1) for written in pages))
    assert pages[0].any(-1).sum((0, 1, 3)).nonzero().flatten().tolist() == [3, 7]
    assert not pages[0][:, :, 3, 19 - PAGE :].any()


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.01, equal_nan=True)


def test_what_stands_in_columns_that_are_nobodys_does_not_matter() -> None:
    found = []
    for padding in (0.0, float("nan")):
        fused = blank(decoder())
        read(fused, tokens(9), Run(1, 0, 9, 0, [4, 5]))
        run = Run(1, 0, 3, 9, [4, 5])
        fused.inputs.stage(fused.embed(tokens(3, 1)), torch.arange(9, 12).expand(3, -1), run, padding=padding)
        for piece in fused.pieces(16, (4, 5)):
            piece()
        found.append([fused.inputs.x(3).clone(), fused.inputs.queries(3).clone(), *state(fused)])
        assert found[-1][0].isfinite().all()
    assert same(*found)


def test_what_is_launched_does_not_depend_on_what_was_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither kernels, grids and numbers nor torch's operations; and nothing waits for the device."""
    from triton.runtime.interpreter import GridExecutor

    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    fused = decoder(**SMALL)
    log: list[Any] = []

    def told(value: Any) -> Any:
        if isinstance(value, Tensor):
            return tuple(value.shape), value.stride(), value.dtype
        return [told(part) for part in value] if isinstance(value, (list, tuple)) else str(value)

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((str(function), told(args), told(list((kwargs or {}).items()))))
            return function(*args, **(kwargs or {}))

    def launched(self: Any, *args: Any, **options: Any) -> None:
        log.append((self.fn.__name__, told(self.grid), told(args), told(list(options.items()))))

    monkeypatch.setattr(GridExecutor, "__call__", launched)
    logs = []
    for run in (Run(0, 0, 17, 0, range(2)), Run(3, 0, 30, 400, range(28)), Run(1, 0, 32, 1, range(3))):
        positions = torch.arange(run.past, run.past + run.length).expand(3, -1)
        assert fused.inputs.stage(fused.embed(tokens(run.length)), positions, run) == 32
        log.clear()
        with Watch():
            for piece in fused.pieces(32, (1, 2)):
                piece()
        logs.append(list(log))
    assert logs[1] == logs[0]
    assert logs[2] == logs[0]
    names = [entry[0] for entry in logs[0]]
    assert {"_walk_kernel", "_prefill_kernel", "_split_qkv_kernel", "_norm_kernel"} <= set(names)
    assert not [name for name in names if "_local_scalar_dense" in name or "nonzero" in name]


def test_chunks_are_replayed_and_give_the_same(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Repeats()
    fused, eager = blank(decoder()), blank(decoder())
    with caplog.at_level(logging.WARNING):
        fused.prepare(64, recorder)
    assert not caplog.messages
    assert fused.graphs.captured == (16, 32, 64)
    assert recorder.recorded == 3 * 2  # up to the attention layer, and the rest
    assert not any(x.any() for x in fused._state.buffers)
    blank(fused)
    for past, length, layers in ((0, 40, None), (40, 3, 4), (40, 17, None), (57, 70, None), (127, 1, 3)):
        before = recorder.replayed
        run = Run(1, 0, length, past, range(2, 12))
        ours, asked = read(fused, tokens(length, past), run, layers, (SPAN,))
        theirs, expected = read(eager, tokens(length, past), run, layers, (SPAN,))
        assert torch.equal(ours, theirs)
        assert torch.equal(asked[0].scores.nan_to_num(7), expected[0].scores.nan_to_num(7))
        assert torch.equal(asked[0].peaks.nan_to_num(7), expected[0].peaks.nan_to_num(7))
        # 70 columns are padded to what was not captured; three layers end inside a piece.
        assert recorder.replayed - before == (0 if length == 70 or layers == 3 else 1 if layers == 4 else 2)
    assert same(state(fused), state(eager))


def test_sizes_beyond_a_chunk_or_the_pool_are_not_captured() -> None:
    fused = decoder()
    fused.prepare(4096, Repeats())
    assert fused.graphs.captured == tuple(size for size in PADDED if 2 * size <= PAGES * PAGE)


class Breaks(Repeats):
    """Fails at one recording."""

    def record(self, work: Work) -> Work:
        again = super().record(work)
        if self.recorded == 3:
            raise RuntimeError("out of memory")
        return again


class Forgets(Repeats):
    """What it records does nothing."""

    def record(self, work: Work) -> Work:
        super().record(work)
        return lambda: None


@pytest.mark.parametrize(("recorder", "left", "why"), [(Breaks(), (16, 64), "memory"), (Forgets(), (), "else")])
def test_a_size_that_cannot_be_captured_is_launched(
    recorder: Repeats, left: tuple[int, ...], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    fused, eager = blank(decoder()), blank(decoder())
    with caplog.at_level(logging.WARNING):
        fused.prepare(64, recorder)
    assert fused.graphs.captured == left
    assert len(caplog.messages) == 3 - len(left)
    assert all("kernel by kernel" in message and why in message for message in caplog.messages)
    run = Run(1, 0, 20, 0, range(2, 12))
    assert torch.equal(read(fused, tokens(20), run)[0], read(eager, tokens(20), run)[0])


class Leaks(Repeats):
    """Reads a lane's column beside those of the run, as a kernel without the right bounds would."""

    inputs: PaddedInputs | None = None

    def record(self, work: Work) -> Work:
        again = super().record(work)

        def leaking() -> None:
            again()
            assert self.inputs is not None
            self.inputs.x(2)[0] += 0 * self.inputs.x(16)[-1]

        return leaking


def test_a_graph_that_reads_columns_that_are_nobodys_is_found_out() -> None:
    fused, recorder = decoder(), Leaks()
    recorder.inputs = fused.inputs
    fused.prepare(16, recorder)
    assert fused.graphs.captured == ()


def test_inputs_of_another_length_are_refused() -> None:
    inputs = decoder().inputs
    run = Run(0, 0, 600, 0, range(8))
    with pytest.raises(ValueError, match="cannot be padded"):
        inputs.stage(torch.zeros(600, inputs.x(1).shape[1]), torch.zeros(3, 600), run)
    with pytest.raises(ValueError, match="cannot be padded"):
        inputs.stage(torch.zeros(4, inputs.x(1).shape[1]), torch.zeros(3, 4), replace(run, length=5))
