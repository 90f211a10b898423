"""Vision attention, both forms, over head dimensions that are no powers of two."""

from __future__ import annotations

import pytest
import torch

from kernels.fused.vision_attention import vision_attention
from kernels.rotary import rotate
from tests.kernels.compare import DTYPES, assert_close, randn


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "heads", "dim"), [(1, 1, 72), (37, 1, 72), (32, 2, 64), (33, 1, 20)])
def test_every_patch_sees_every_patch(
    count: int, heads: int, dim: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = randn(count, 3 * heads * dim, seed=1, dtype=dtype)
    angles = randn(count, dim // 2, seed=2)
    q, k, v = product.double().view(count, 3, heads, dim).unbind(1)
    q, k = (rotate(x, angles.cos().double(), angles.sin().double()) for x in (q, k))
    weights = (torch.einsum("mhd,nhd->hmn", q, k) / dim**0.5).softmax(-1)
    exact = torch.einsum("hmn,nhd->mhd", weights, v).flatten(1)
    for choice in ("reference", "triton"):
        monkeypatch.setenv("IGNIS_KERNELS", choice)
        found = vision_attention(product.clone(), angles.cos(), angles.sin(), heads)
        # Weights near 2⁹⁰ have exponents of that size to be rounded: a few float32 steps more.
        assert_close(found, exact, dtype, steps=64 if dtype == torch.float32 else 8)


def test_long_queries_keep_the_running_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores too far apart for a fixed scale, in one tile of queries; in the others they are not."""
    monkeypatch.setenv("IGNIS_KERNELS", "triton")
    product = randn(48, 3 * 72, seed=1)
    product[:16, :72] *= 100.0
    product[3, :72] = -1e3 * product[5, 72:144]
    angles = torch.zeros(48, 36)
    q, k, v = product.double().view(48, 3, 72).unbind(1)
    exact = (q @ k.T / 72**0.5).softmax(-1) @ v
    found = vision_attention(product.clone(), angles.cos(), angles.sin(), 1)
    assert_close(found, exact, torch.float32, steps=64)


def test_sizes_that_do_not_fit_are_refused() -> None:
    angles = randn(4, 36, seed=1)
    with pytest.raises(ValueError, match="no contiguous product"):
        vision_attention(randn(4, 3 * 72 + 1, seed=1), angles, angles, 1)
    with pytest.raises(ValueError, match="Angles"):
        vision_attention(randn(4, 3 * 64, seed=1), angles, angles, 1)
