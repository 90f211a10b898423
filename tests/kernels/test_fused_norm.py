"""The card's norms, gate and embedding, in Triton's interpreter, against float64."""

from __future__ import annotations

import pytest
import torch

from kernels.fused.embedding import embed_norm
from kernels.fused.norm import add_rms_norm
from kernels.fused.partial import Partial
from kernels.fused.silu_mul import silu_mul
from tests.kernels import naive
from tests.kernels.compare import DTYPES, assert_close, randn


@pytest.fixture(params=["reference", "triton"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_KERNELS", request.param)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


# The interpreter cuts bits off where a card rounds to BF16: twice the distance.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "hidden"), [(1, 16), (3, 192), (2, 576)])
def test_add_rms_norm(count: int, hidden: int, dtype: torch.dtype) -> None:
    residual, delta = randn(count, hidden, seed=1, dtype=dtype) * 3, randn(count, hidden, seed=2)
    scale = 1 + 0.3 * randn(hidden, seed=3)
    for product in (Partial.of(delta), Partial.split(delta, generator())):
        total = residual.double() + product.sum().double()
        stream, normed = add_rms_norm(residual.clone(), product, scale, 1e-6)
        assert stream.dtype == normed.dtype == dtype
        assert_close(stream, total, dtype)
        assert_close(normed, naive.rms_norm(total, scale, 1e-6), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_norm_alone_leaves_the_stream(dtype: torch.dtype) -> None:
    residual, scale = randn(2, 48, seed=1, dtype=dtype) * 1e-3, randn(48, seed=3)
    stream, normed = add_rms_norm(residual.clone(), None, scale, 1e-6)
    assert torch.equal(stream, residual)
    assert_close(normed, naive.rms_norm(residual, scale, 1e-6), dtype)


def test_the_stream_is_the_callers_tensor_whatever_its_stride() -> None:
    wide, scale = randn(3, 40, seed=1), randn(24, seed=3)
    before = wide.clone()
    stream, _ = add_rms_norm(wide[:, 8:32], Partial.of(torch.ones(3, 24)), scale, 1e-6)
    assert stream.data_ptr() == wide[:, 8:32].data_ptr()
    assert torch.equal(wide[:, 8:32], before[:, 8:32] + 1)
    assert torch.equal(wide[:, :8], before[:, :8])
    assert torch.equal(wide[:, 32:], before[:, 32:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "width"), [(1, 16), (3, 300), (5, 72)])
def test_silu_mul(count: int, width: int, dtype: torch.dtype) -> None:
    whole = 3 * randn(count, 2 * width, seed=1)
    for product in (Partial.of(whole.to(dtype)), Partial.split(whole, generator())):
        gate, up = product.sum().double().chunk(2, dim=-1)
        out = silu_mul(product, dtype=dtype)
        assert out.dtype == dtype
        assert_close(out, gate * gate.sigmoid() * up, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_embed_norm(dtype: torch.dtype) -> None:
    embedding, scale = randn(50, 36, seed=1, dtype=dtype), randn(36, seed=2)
    ids = torch.tensor([7, 0, 49, 7])
    x, normed = embed_norm(ids, embedding, scale, 1e-6)
    assert torch.equal(x, embedding[ids])
    assert_close(normed, naive.rms_norm(x, scale, 1e-6), dtype)


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"\[2, 16\] cannot take \[2, 8\]"):
        add_rms_norm(torch.zeros(2, 16), Partial.of(torch.zeros(2, 8)), torch.ones(16), 1e-6)
    with pytest.raises(ValueError, match="at most 16384"):
        add_rms_norm(torch.zeros(1, 20000), None, torch.ones(20000), 1e-6)
    with pytest.raises(ValueError, match="has 7 values"):
        silu_mul(Partial.of(torch.zeros(1, 7)))
