"""Products with NVFP4 weights: which kernel, how many programs, and where their sums go.

A round is bound by the bytes of its weights, so they are read once and decoded in registers: for ``mma.sync`` up to
eight columns, and up to 64 for ``wgmma`` on SM90, for ``mma.sync`` beside shared memory elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from kernels.fused.activations import arrange, natural
from kernels.fused.launch import overlap
from kernels.fused.nvfp4_layout import NVFP4Weight, dequantize
from kernels.fused.partial import Partial, slot_count
from kernels.registry import interpreted, use_triton

MOST_COLUMNS = 64
"""Columns that one launch multiplies."""


@dataclass(frozen=True)
class Plan:
    """How one launch goes."""

    kernel: Literal["registers", "shared", "stream", "persistent"]
    columns: int
    """That a program multiplies with: a power of two, at least as many as there are."""
    programs: int
    unit: int = 512
    """Columns of the matrix in a unit of work."""
    warps: int = 4
    stages: int = 0
    """Copies of activations on their way at once."""
    registers: int | None = None
    """A cap, so that as many programs as planned run at once."""

    @property
    def tile(self) -> int:
        """Rows of a unit."""
        return 16 * self.warps


@lru_cache(maxsize=4096)
def plan(rows: int, k: int, columns: int, processors: int, capability: int) -> Plan:
    """The way that was fastest for a matrix [rows, k] (padded) and so many columns on a card of its kind.

    Args:
        processors: streaming multiprocessors of the card.
        capability: 90 for SM90.
    """
    if columns <= 8:
        how = Plan("registers", 8, 4 * processors, unit=256, registers=120)
    elif capability != 90:
        wide, resident, cap = (16, 4, 128) if columns <= 16 else (32, 3, 168) if columns <= 32 else (64, 2, 255)
        how = Plan("shared", wide, resident * processors, stages=4 if wide == 16 else 3, registers=cap)
    elif columns <= 16:
        how = Plan("stream", 16, 4 * processors, stages=4, registers=128)
    elif columns <= 32:
        how = Plan("persistent", 32, 4 * processors, warps=4, stages=4, registers=128)
    elif rows % 128 == 0:
        how = Plan("persistent", 64, 2 * processors, unit=256, warps=8, stages=4, registers=128)
    else:
        how = Plan("persistent", 64, 3 * processors, warps=4, stages=4, registers=168)
    return replace(how, programs=min(how.programs, rows // how.tile * (k // how.unit)))


def nvfp4_linear(
    x: Tensor,
    weight: NVFP4Weight,
    workspace: Tensor | None = None,
    *,
    in_fragments: bool = False,
    dependent: bool = False,
    chosen: Plan | None = None,
) -> Partial:
    """x [N, in] · weightᵀ for up to 64 columns a launch.

    Args:
        x: bfloat16, contiguous.
        workspace: float32, at least :func:`workspace_size`, for the sums; None allocates it.
        in_fragments: x already stands as :func:`wants_fragments` and :mod:`kernels.fused.activations` have it.
        dependent: launched while the kernel before it still runs.
        chosen: instead of :func:`plan`.

    Raises ``ValueError`` for shapes and types that do not fit.
    """
    if x.dim() != 2 or x.shape[1] != weight.in_features or x.dtype != torch.bfloat16 or not x.is_contiguous():
        raise ValueError(
            f"An NVFP4 product with {weight.in_features} columns takes contiguous bfloat16 [N, {weight.in_features}], "
            f"not {x.dtype} {list(x.shape)}."
        )
    if not use_triton(x) or interpreted():  # the interpreter knows no Gluon
        return nvfp4_linear_reference(x, weight, in_fragments=in_fragments)
    count, rows, k = x.shape[0], weight.rows, weight.columns
    how = chosen or _plan_for(weight, count, x.device)
    fragments = how.kernel != "registers"
    if in_fragments and not fragments:
        raise ValueError(f"Activations of {count} columns are multiplied as they are, not in the fragments' order.")
    if k != x.shape[1] or fragments > in_fragments:
        x = arrange(x, k, fragments=fragments and not in_fragments, dependent=dependent)
    blocks = k // how.unit
    layout = (slot_count(rows // how.tile, blocks, how.programs), how.tile, blocks, how.programs)
    size = layout[0] * count * rows
    if workspace is None:
        workspace = torch.empty(size, dtype=torch.float32, device=x.device)
    values = workspace[:size].view(layout[0], count, rows)
    for start in range(0, count, how.columns):
        _launch(how, x[start : start + how.columns], weight, values[:, start:], count * rows, dependent)
    return Partial(values[..., : weight.out_features], layout)


def nvfp4_linear_reference(x: Tensor, weight: NVFP4Weight, *, in_fragments: bool = False) -> Partial:
    """The product as float32 [N, out], plain."""
    if in_fragments:
        x = natural(x)
    return Partial.of(x.float() @ dequantize(weight).T)


def wants_fragments(weight: NVFP4Weight, columns: int, device: torch.device) -> bool:
    """Whether :func:`nvfp4_linear` takes so many columns in the fragments' order, so that their writer may store them
    so (where ``in_features`` needs no padding)."""
    if device.type != "cuda" or weight.columns != weight.in_features:
        return False
    return _plan_for(weight, columns, device).kernel != "registers"


def workspace_size(weight: NVFP4Weight, columns: int, device: torch.device) -> int:
    """float32 numbers that a product with so many columns writes at most."""
    how = _plan_for(weight, columns, device)
    return slot_count(weight.rows // how.tile, weight.columns // how.unit, how.programs) * columns * weight.rows


def _plan_for(weight: NVFP4Weight, columns: int, device: torch.device) -> Plan:
    return plan(weight.rows, weight.columns, min(columns, MOST_COLUMNS), *_card(device))


@lru_cache(maxsize=16)
def _card(device: torch.device) -> tuple[int, int]:
    """(streaming multiprocessors, capability)."""
    properties = torch.cuda.get_device_properties(device)
    return properties.multi_processor_count, 10 * properties.major + properties.minor


@cache
def _gluon() -> tuple[Any, Any, Any]:
    """The modules of its kernels: slow to import, and needed on a card only."""
    from kernels.fused import nvfp4_registers, nvfp4_shared, nvfp4_wgmma

    return nvfp4_registers, nvfp4_shared, nvfp4_wgmma


def _launch(how: Plan, x: Tensor, weight: NVFP4Weight, values: Tensor, slot_stride: int, dependent: bool) -> None:
    nvfp4_registers, nvfp4_shared, nvfp4_wgmma = _gluon()
    flags = overlap(dependent, x) | {"WARPS": how.warps, "num_warps": how.warps}
    if how.registers:
        flags["maxnreg"] = how.registers
    operands = weight.words, weight.scales, weight.factors, values, x.shape[0], slot_stride, weight.rows, weight.columns
    grid = (how.programs,)
    if how.kernel == "registers":
        layout = nvfp4_registers.activation_layout(how.warps)
        nvfp4_registers.registers_kernel[grid](x, *operands, X=layout, **flags)
    elif how.kernel == "shared":
        nvfp4_shared.shared_kernel[grid](x, *operands, COLUMNS=how.columns, STAGES=how.stages, **flags)
    elif how.kernel == "stream":
        nvfp4_wgmma.stream_kernel[grid](x, *operands, COLUMNS=how.columns, STAGES=how.stages, **flags)
    else:
        nvfp4_wgmma.persistent_kernel[grid](
            nvfp4_wgmma.describe(x, how.columns), *operands,
            COLUMNS=how.columns, STAGES=how.stages, HALVES=how.unit // 256, **flags,
        )  # fmt: skip
