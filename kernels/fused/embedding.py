"""Rows of the embedding, and the first norm with them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.launch import overlap, power_of_two
from kernels.norm import rms_norm
from kernels.registry import use_triton


def embed_norm_reference(
    ids: Tensor, embedding: Tensor, scale: Tensor, eps: float, *, dependent: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`embed_norm` in plain torch."""
    x = embedding[ids.long()]
    return x, rms_norm(x, scale, eps)


def embed_norm(
    ids: Tensor, embedding: Tensor, scale: Tensor, eps: float, *, dependent: bool = False
) -> tuple[Tensor, Tensor]:
    """The residual stream's start and the first sublayer's input: one launch.

    Args:
        ids: integer [N], each a row of ``embedding``.
        embedding: [V, H].
        scale: float32 [H] of the first norm.
        dependent: launched while the kernel before may still run (programmatic dependent launch).

    Returns:
        (rows [N, H], their norm [N, H]), both of the embedding's type.
    """
    if not use_triton(embedding):
        return embed_norm_reference(ids, embedding, scale, eps)
    hidden = embedding.shape[1]
    if embedding.stride(1) != 1 or scale.shape != (hidden,):
        raise ValueError(f"An embedding {list(embedding.shape)} does not go with a scale {list(scale.shape)}.")
    x = torch.empty(len(ids), hidden, dtype=embedding.dtype, device=embedding.device)
    normed = torch.empty_like(x)
    _embed_kernel[(len(ids),)](
        ids,
        embedding,
        embedding.stride(0),
        scale,
        x,
        normed,
        eps,
        H=hidden,
        BLOCK=power_of_two(hidden),
        num_warps=min(16, max(1, power_of_two(hidden) // 256)),
        **overlap(dependent, x),
    )
    return x, normed


@triton.jit
def _embed_kernel(  # type: ignore[no-untyped-def]
    ids, embedding, stride, scale, out, normed, eps, H: tl.constexpr, BLOCK: tl.constexpr, DEPENDENT: tl.constexpr
):
    """One column."""
    column, c = tl.program_id(0), tl.arange(0, BLOCK)
    mask = c < H
    w = tl.load(scale + c, mask=mask, other=0.0)
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row = tl.load(ids + column).to(tl.int64)
    x = tl.load(embedding + row * stride + c, mask=mask, other=0.0)
    to = column.to(tl.int64) * H + c
    tl.store(out + to, x, mask=mask)
    x = x.to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x) / H + eps) * w
    tl.store(normed + to, y.to(normed.dtype.element_ty), mask=mask)
