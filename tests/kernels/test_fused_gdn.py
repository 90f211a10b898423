"""The card's Gated DeltaNet kernels, in Triton's interpreter, against a loop over tokens in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ignis_desktop.bench.gpu.deltanet import (
    exact,
    one_by_one_and_at_once,
    random_inputs,
    random_layer,
    random_state,
)
from kernels.fused.gdn import GdnLayer, GdnRecord, GdnState
from kernels.fused.gdn_chunk import gdn_chunk
from kernels.fused.gdn_fold import gdn_fold
from kernels.fused.gdn_inputs import gdn_inputs
from kernels.fused.gdn_step import gdn_step
from kernels.fused.gdn_verify import gdn_verify
from kernels.fused.partial import Partial
from tests.kernels.compare import DTYPES

SHAPES = [(1, 1, 64), (2, 6, 16)]


@pytest.fixture(params=["reference", "triton"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("IGNIS_KERNELS", request.param)
    return str(request.param)


def layer_of(shape: tuple[int, int, int], seed: int = 1) -> GdnLayer:
    key_heads, heads, dim = shape
    return random_layer("cpu", seed, key_heads=key_heads, heads=heads, dim=dim)


def products(layer: GdnLayer, count: int, split: bool, seed: int = 3) -> tuple[Partial, Tensor]:
    inputs, ba = random_inputs(layer, count, seed)
    if not split:
        return Partial.of(inputs), ba
    return Partial.split(inputs.float(), torch.Generator().manual_seed(seed)), ba.float()


def copy(state: GdnState) -> GdnState:
    return GdnState(state.conv.clone(), state.recurrent.clone())


def error(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    value = ((found.double() - expected.double()).norm() / expected.double().norm()).item()
    return value if value == value else float("inf")


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_round_of_one_column(form: str, shape: tuple[int, int, int], split: bool) -> None:
    layer = layer_of(shape)
    product, ba = products(layer, 3, split)
    state = random_state(layer, 5, 2, dtype=torch.float32)
    slots = torch.tensor([4, 0, 3], dtype=torch.int32)
    y, after = exact(product.sum(), ba, layer, state, slots.tolist(), range(4))
    mixed = gdn_inputs(product, layer, state, slots)
    assert mixed.dtype == torch.float32
    out = gdn_step(mixed, product, ba, layer, state, slots, dtype=torch.float32)
    assert out.dtype == torch.float32
    assert error(out, y) < 2e-6
    assert torch.equal(state.conv, after.conv)
    assert error(state.recurrent, after.recurrent) < 1e-6


def test_a_column_that_leaves_nothing_behind(form: str) -> None:
    """One whose row is negative gives what it would give, and its slot stays as it is."""
    layer = layer_of((2, 6, 16))
    product, ba = products(layer, 3, True)
    state = random_state(layer, 4, 2)
    slots, rows = torch.tensor([2, 0, 3], dtype=torch.int32), torch.tensor([70, -1, 0], dtype=torch.int32)
    before, plain = copy(state), copy(state)
    expected = gdn_step(gdn_inputs(product, layer, plain, slots), product, ba, layer, plain, slots)
    mixed = gdn_inputs(product, layer, state, slots, rows=rows)
    assert torch.equal(gdn_step(mixed, product, ba, layer, state, slots, rows=rows), expected)
    for slot, after in enumerate([before, before, plain, plain]):
        assert torch.equal(state.conv[slot], after.conv[slot])
        assert torch.equal(state.recurrent[slot], after.recurrent[slot])


@pytest.mark.parametrize(("columns", "accepted"), [(2, [2, 1]), (4, [3, 0]), (8, [5, 8])])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_round_of_columns_that_may_not_stand(
    form: str, shape: tuple[int, int, int], columns: int, accepted: list[int]
) -> None:
    layer = layer_of(shape)
    lanes = len(accepted)
    product, ba = products(layer, lanes * columns, True)
    layers = random_state(layer, 3, 2, layers=2, dtype=torch.float32)
    slots = torch.tensor([2, 0], dtype=torch.int32)
    record = GdnRecord.reserve(layer, 2, lanes * columns + 1, torch.float32)
    before = GdnState(layers.conv.clone(), layers.recurrent.clone())
    expected = []
    for index in range(2):
        state = layers.layer(index)
        y, _ = exact(product.sum(), ba, layer, state, slots.tolist(), range(0, lanes * columns + 1, columns))
        mixed = gdn_inputs(product, layer, state, slots, record=record.layer(index))
        out = gdn_verify(mixed, product, ba, layer, state, slots, record.layer(index), dtype=torch.float32)
        assert error(out, y) < 2e-6
        one = copy(state)
        for lane, count in enumerate(accepted):
            first = lane * columns
            _, one = exact(product.sum()[first : first + count], ba[first:], layer, one, [int(slots[lane])], [0, count])
        expected.append(one)
    assert torch.equal(layers.conv, before.conv)
    assert torch.equal(layers.recurrent, before.recurrent)
    gdn_fold(record, layers, slots, torch.tensor(accepted, dtype=torch.int32), columns)
    for index, one in enumerate(expected):
        assert torch.equal(layers.conv[index], one.conv)
        assert error(layers.recurrent[index], one.recurrent) < 1e-6
        assert torch.equal(layers.recurrent[index, 1], before.recurrent[index, 1])


def test_columns_at_once_are_columns_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts change nothing but the time an answer takes."""
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    layer = layer_of((1, 3, 16))
    out, after = one_by_one_and_at_once(layer, lanes=2, columns=5)
    for one, together in (out, after):
        assert error(together, one) < 1e-6


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [((1, 1, 64), [1]), ((1, 3, 16), [130]), ((2, 4, 32), [63, 0, 2, 64, 65]), ((1, 1, 16), [0, 200])],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_packed_runs(form: str, shape: tuple[int, int, int], lengths: list[int], dtype: torch.dtype) -> None:
    layer = layer_of(shape)
    bounds = [sum(lengths[:run]) for run in range(len(lengths) + 1)]
    product, ba = products(layer, bounds[-1] + 3, False)
    state = random_state(layer, len(lengths) + 1, 2, dtype=dtype)
    slots = torch.arange(len(lengths), 0, -1, dtype=torch.int32)
    y, after = exact(product.sum(), ba, layer, state, slots.tolist(), bounds, rounded=dtype)
    untouched = state.recurrent[0].clone()
    out = gdn_chunk(product, ba, layer, state, slots, torch.tensor(bounds, dtype=torch.int32), dtype=torch.float32)
    count = bounds[-1]
    # The interpreter cuts bits off where a card rounds to BF16.
    limit = 2e-6 if dtype == torch.float32 else 1.5e-2 if form == "triton" else 3e-4
    assert error(out[:count], y[:count]) < limit
    assert torch.equal(state.conv, after.conv)
    assert error(state.recurrent, after.recurrent) < limit
    assert torch.equal(state.recurrent[0], untouched)


@pytest.mark.parametrize("length", [1, 63, 70])
def test_columns_that_are_nobodys(length: int, form: str) -> None:
    """A run that is padded gives what it gives alone, the kernels bit for bit, and leaves the same state."""
    layer = layer_of((1, 2, 16))
    product, ba = products(layer, 128, False)
    product.values[length:], ba[length:] = float("nan"), float("nan")
    bounds, slots = torch.tensor([0, length], dtype=torch.int32), torch.tensor([1], dtype=torch.int32)
    state = random_state(layer, 3, 2, dtype=torch.bfloat16)
    alone = copy(state)
    padded = gdn_chunk(product, ba, layer, state, slots, bounds)
    expected = gdn_chunk(Partial.of(product.values[:length]), ba[:length], layer, alone, slots, bounds)
    limit = 0 if form == "triton" else 1e-6
    assert error(padded[:length], expected) <= limit
    assert torch.equal(state.conv, alone.conv)
    assert error(state.recurrent, alone.recurrent) <= limit


@pytest.mark.parametrize("decay", [0.0, 30.0])
def test_tokens_that_are_all_alike(form: str, decay: float) -> None:
    """Every key the same and nothing forgotten, or all: the hardest systems for a solution by blocks."""
    layer = layer_of((1, 1, 16))
    layer = GdnLayer(layer.conv, torch.full_like(layer.decay, -decay), layer.dt_bias, layer.norm, 1, layer.eps)
    inputs, ba = random_inputs(layer, 1, 3)
    product, ba = Partial.of(inputs.repeat(128, 1)), torch.full((128, 2), 4.0)
    state = random_state(layer, 1, 2, dtype=torch.float32)
    slots, starts = torch.zeros(1, dtype=torch.int32), torch.tensor([0, 128], dtype=torch.int32)
    y, after = exact(product.sum(), ba, layer, state, [0], [0, 128])
    out = gdn_chunk(product, ba, layer, state, slots, starts, dtype=torch.float32)
    assert error(out, y) < 1e-5
    assert error(state.recurrent, after.recurrent) < 1e-5


def test_sizes_that_do_not_fit() -> None:
    layer = layer_of((2, 6, 16))
    product, ba = products(layer, 4, False)
    state, slots = random_state(layer, 2, 2), torch.tensor([0, 1], dtype=torch.int32)
    with pytest.raises(ValueError, match="2 columns a lane must be recorded"):
        gdn_inputs(product, layer, state, slots)
    record = GdnRecord.reserve(layer, 1, 3, torch.bfloat16).layer(0)
    with pytest.raises(ValueError, match="holds 3 columns, not 4"):
        gdn_inputs(product, layer, state, slots, record=record)
    with pytest.raises(ValueError, match="256 values a column, not 255"):
        gdn_inputs(Partial.of(product.values[:, :255]), layer, state, slots)
    with pytest.raises(ValueError, match="4 columns are not 1 to 16 for each of 3 lanes"):
        gdn_inputs(product, layer, state, torch.zeros(3, dtype=torch.int32))
    with pytest.raises(ValueError, match="2 runs have 3 bounds"):
        gdn_chunk(product, ba, layer, state, slots, torch.zeros(2, dtype=torch.int32))
    with pytest.raises(ValueError, match="not 24"):
        random_layer("cpu", key_heads=1, heads=1, dim=24)
