"""Products of a few columns with weights that are not NVFP4: BF16, or FP8 with a scale by rows or by 128 × 128 blocks.

Bound by the bytes of the weights; each is read once. Many columns are cuBLAS's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.dot import dot
from kernels.fused.launch import ceil_div, overlap, power_of_two
from kernels.registry import interpreted, use_triton

MOST_COLUMNS = 64
"""Columns up to which weights are read by the kernels here."""
BLOCK = 128
"""Side of the blocks of FP8 that share a scale."""
_FEW_ROWS = 1024
"""Rows of a matrix too small to fill a card with tiles."""


def dense_linear(x: Tensor, weight: Tensor, dtype: torch.dtype = torch.bfloat16, *, dependent: bool = False) -> Tensor:
    """x [N, in] · weightᵀ → [N, out] in ``dtype``, for bfloat16 weight [out, in] with ``in`` a multiple of 8."""
    _check(x, weight, torch.bfloat16)
    if not use_triton(x):
        return dense_linear_reference(x, weight, dtype)
    if x.shape[0] > MOST_COLUMNS:
        return F.linear(x, weight).to(dtype)
    out = torch.empty(x.shape[0], weight.shape[0], dtype=dtype, device=x.device)
    if weight.shape[0] <= _FEW_ROWS and weight.shape[1] <= 8192:
        _launch_rows(x, weight, out, dependent)
    else:
        _launch_tiles(x, weight, None, out, dependent)
    return out


def fp8_linear(
    x: Tensor, codes: Tensor, scale: Tensor, dtype: torch.dtype = torch.bfloat16, *, dependent: bool = False
) -> Tensor:
    """x [N, in] · (codes · scale)ᵀ → [N, out] in ``dtype``.

    Args:
        codes: float8_e4m3fn [out, in], ``in`` a multiple of 16.
        scale: float32 [out], or [⌈out / 128⌉, ⌈in / 128⌉] for blocks.

    More than 64 columns are multiplied 64 at a time: a prompt's should be unpacked (:func:`unpack_fp8`).
    """
    _check(x, codes, torch.float8_e4m3fn)
    if scale.shape not in ((codes.shape[0],), tuple(-(-side // BLOCK) for side in codes.shape)):
        raise ValueError(f"Scales {list(scale.shape)} are neither by row nor by block of a matrix {list(codes.shape)}.")
    if not use_triton(x):
        return fp8_linear_reference(x, codes, scale, dtype)
    out = torch.empty(x.shape[0], codes.shape[0], dtype=dtype, device=x.device)
    for start in range(0, x.shape[0], MOST_COLUMNS):
        part = slice(start, start + MOST_COLUMNS)
        _launch_tiles(x[part], codes, scale, out[part], dependent)
    return out


def dense_linear_reference(x: Tensor, weight: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """:func:`dense_linear` in plain torch, summed in float32."""
    return F.linear(x.float(), weight.float()).to(dtype)


def fp8_linear_reference(x: Tensor, codes: Tensor, scale: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """:func:`fp8_linear` in plain torch."""
    return F.linear(x.float(), unpack_fp8_reference(codes, scale)).to(dtype)


def unpack_fp8(codes: Tensor, scale: Tensor, out: Tensor | None = None) -> Tensor:
    """codes · scale in bfloat16, written to ``out`` [out, in] or to a new matrix."""
    out = torch.empty(codes.shape, dtype=torch.bfloat16, device=codes.device) if out is None else out
    if not use_triton(codes):
        return out.copy_(unpack_fp8_reference(codes, scale))
    rows, columns = codes.shape
    _unpack_kernel[(ceil_div(rows, 4), ceil_div(columns, 1024))](
        codes.view(torch.uint8), scale, out, rows, columns, BY_ROW=scale.dim() == 1, INTERPRET=interpreted()
    )
    return out


def unpack_fp8_reference(codes: Tensor, scale: Tensor) -> Tensor:
    """codes · scale in float32, in plain torch."""
    if scale.dim() == 1:
        return codes.float() * scale[:, None]
    rows, columns = codes.shape
    whole = scale.repeat_interleave(BLOCK, 0)[:rows].repeat_interleave(BLOCK, 1)[:, :columns]
    return codes.float() * whole


def _check(x: Tensor, weight: Tensor, dtype: torch.dtype) -> None:
    if x.dim() != 2 or weight.dim() != 2 or x.shape[1] != weight.shape[1] or weight.dtype != dtype:
        raise ValueError(
            f"{x.dtype} {list(x.shape)} cannot be multiplied with {weight.dtype} {list(weight.shape)}: "
            f"[N, in] and {dtype} [out, in] are needed."
        )
    if x.stride(1) != 1 or not weight.is_contiguous() or weight.shape[1] % 8:
        raise ValueError(f"Products need contiguous rows of a multiple of 8 columns, not {list(weight.shape)}.")


def _launch_rows(x: Tensor, weight: Tensor, out: Tensor, dependent: bool) -> None:
    n, k = weight.shape
    # A round's columns one by one: how many there are must not change the order in which one is summed.
    columns = 1 if x.shape[0] <= 8 else 8
    _rows_kernel[(ceil_div(n, 2), ceil_div(x.shape[0], columns))](
        x, weight, out, x.shape[0], x.stride(0), out.stride(0), n, k,
        COLUMNS=columns, K=power_of_two(k), num_warps=8 if columns == 1 else 16,
        **overlap(dependent, x),
    )  # fmt: skip


@dataclass(frozen=True)
class Tiling:
    """How :func:`_tiles_kernel` is launched."""

    rows: int
    warps: int
    stages: int
    k: int = 128
    turned: bool = False
    """Columns of x take the part of rows in the matrix instruction: weights then go through shared memory."""


def tiling(rows: int, columns: int, quantized: bool) -> Tiling:
    """The fastest for a matrix of so many rows. Codes are widened in registers, which goes well with ``mma.sync``: two
    warps keep Triton from taking ``wgmma``."""
    if columns <= 16:
        return Tiling(32, 2 if quantized else 4, 4)
    return Tiling(128, 4, 3, k=64, turned=quantized)


def _launch_tiles(x: Tensor, weight: Tensor, scale: Tensor | None, out: Tensor, dependent: bool) -> None:
    n, k = weight.shape
    how = tiling(n, x.shape[0], scale is not None)
    _tiles_kernel[(ceil_div(n, how.rows),)](
        x, weight if scale is None else weight.view(torch.uint8), scale, out,
        x.shape[0], x.stride(0), out.stride(0), n, k,
        SCALE="none" if scale is None else "row" if scale.dim() == 1 else "block",
        ROWS=how.rows, COLUMNS=max(16, power_of_two(x.shape[0])), K=how.k,
        TURNED=how.turned, EVEN=n % how.rows == 0 and k % how.k == 0, INTERPRET=interpreted(),
        num_warps=how.warps, num_stages=how.stages, **overlap(dependent, x),
    )  # fmt: skip


@triton.jit(do_not_specialize=["count"])
def _rows_kernel(  # type: ignore[no-untyped-def]
    x, weight, out, count, x_stride, out_stride, n, k, COLUMNS: tl.constexpr, K: tl.constexpr, DEPENDENT: tl.constexpr
):
    """Two whole rows of the matrix with some columns of x, everything in registers: all loads are on their way at
    once, those of the matrix before the kernel that makes x has ended."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0) * 2
    i = tl.arange(0, K)
    upper = tl.load(weight + row * k + i, mask=i < k, other=0.0)
    lower = tl.load(weight + (row + 1) * k + i, mask=(i < k) & (row + 1 < n), other=0.0)
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (column < count)[:, None] & (i < k)[None, :]
    values = tl.load(x + column[:, None] * x_stride + i[None, :], mask=inside, other=0.0).to(tl.float32)
    at = out + column * out_stride + row
    tl.store(at, tl.sum(values * upper.to(tl.float32)[None, :], axis=1).to(out.dtype.element_ty), mask=column < count)
    total = tl.sum(values * lower.to(tl.float32)[None, :], axis=1).to(out.dtype.element_ty)
    tl.store(at + 1, total, mask=(column < count) & (row + 1 < n))


@triton.jit(do_not_specialize=["count"])
def _tiles_kernel(  # type: ignore[no-untyped-def]
    x, weight, scale, out, count, x_stride, out_stride, n, k,
    SCALE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr,
    EVEN: tl.constexpr, INTERPRET: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """ROWS rows of the matrix with all columns of x. ``EVEN``: both sides of the matrix are whole tiles."""
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    tile = tl.program_id(0)
    row = tile * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    i = tl.arange(0, K)
    weight_at = weight + row.to(tl.int64)[:, None] * k + i[None, :]
    x_at = x + column[:, None] * x_stride + i[None, :]
    if SCALE == "row":
        by_row = tl.load(scale + row, mask=row < n, other=0.0)
    if TURNED:
        total = tl.zeros([COLUMNS, ROWS], tl.float32)
    else:
        total = tl.zeros([ROWS, COLUMNS], tl.float32)
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    for start in range(0, k, K):
        if EVEN:
            w = tl.load(weight_at + start)
            b = tl.load(x_at + start, mask=(column < count)[:, None], other=0.0)
        else:
            w = tl.load(weight_at + start, mask=(row < n)[:, None] & (start + i < k)[None, :], other=0)
            b = tl.load(x_at + start, mask=(column < count)[:, None] & (start + i < k)[None, :], other=0.0)
        if SCALE != "none":
            w = _values(w, INTERPRET)
        if TURNED:
            left, right = b, w.T
        else:
            left, right = w, b.T
        if SCALE == "block":
            tl.static_assert(128 % K == 0 and 128 % ROWS == 0)
            by_block = tl.load(scale + tile * ROWS // 128 * tl.cdiv(k, 128) + start // 128)
            total += by_block * dot(left, right, tl.zeros(total.shape, tl.float32), INTERPRET)
        else:
            total = dot(left, right, total, INTERPRET)
    if not TURNED:
        total = total.T
    if SCALE == "row":
        total *= by_row[None, :]
    at = out + column[:, None].to(tl.int64) * out_stride + row[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=(column < count)[:, None] & (row < n)[None, :])


@triton.jit
def _unpack_kernel(  # type: ignore[no-untyped-def]
    codes, scale, out, rows, columns, BY_ROW: tl.constexpr, INTERPRET: tl.constexpr
):
    row = tl.program_id(0) * 4 + tl.arange(0, 4)
    column = tl.program_id(1) * 1024 + tl.arange(0, 1024)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    at = row.to(tl.int64)[:, None] * columns + column[None, :]
    values = _values(tl.load(codes + at, mask=inside, other=0), INTERPRET).to(tl.float32)
    if BY_ROW:
        factor = tl.load(scale + row, mask=row < rows, other=0.0)[:, None]
    else:
        block = (row // 128 * tl.cdiv(columns, 128))[:, None] + (column // 128)[None, :]
        factor = tl.load(scale + block, mask=inside, other=0.0)
    tl.store(out + at, (values * factor).to(tl.bfloat16), mask=inside)


@triton.jit
def _values(codes, INTERPRET: tl.constexpr):  # type: ignore[no-untyped-def]
    """FP8 codes (uint8) → BF16, exactly."""
    if INTERPRET:  # no inline assembly there
        values = codes.to(tl.float8e4nv, bitcast=True).to(tl.float32)
    else:
        values = _decode(codes)
    return values


@triton.jit
def _decode(codes):  # type: ignore[no-untyped-def]
    """FP8 e4m3 codes (uint8, a multiple of four in each thread) → their values in BF16, exactly.

    A code's bits s eeee mmm become the BF16 s 0000eeee mmm0000, which is the value · 2⁻¹²⁰ (subnormals included, as the
    code's are the BF16's); one multiplication brings it back. Five integer operations for two codes, where the
    conversions of the hardware (to FP16, to FP32, to BF16) have a quarter of the rate of arithmetic.
    """
    return tl.inline_asm_elementwise(
        """
        {
            .reg .b32 low, high, mag, two120;
            prmt.b32 low, $2, 0, 0x1404;
            prmt.b32 high, $2, 0, 0x3424;
            mov.b32 two120, 0x7B807B80;
            shr.u32 mag, low, 4;
            and.b32 mag, mag, 0x07F007F0;
            and.b32 low, low, 0x80008000;
            or.b32 low, low, mag;
            shr.u32 mag, high, 4;
            and.b32 mag, mag, 0x07F007F0;
            and.b32 high, high, 0x80008000;
            or.b32 high, high, mag;
            mul.rn.bf16x2 $0, low, two120;
            mul.rn.bf16x2 $1, high, two120;
        }
        """,
        "=r,=r,r",
        [codes],
        dtype=tl.bfloat16,
        is_pure=True,
        pack=4,
    )
