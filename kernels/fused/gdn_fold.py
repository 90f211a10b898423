"""What a verified round leaves standing: its accepted columns, folded into the state of all layers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.fused.gdn import MAX_COLUMNS, GdnRecord, GdnState
from kernels.fused.launch import ceil_div, overlap
from kernels.registry import use_triton
from kernels.served import TAPS

ROWS = 64
"""Rows of a head's state (key dimensions) that a program folds: few enough for four programs on a multiprocessor."""


def gdn_fold_reference(
    record: GdnRecord, state: GdnState, slots: Tensor, accepted: Tensor, columns: int, *, dependent: bool = False
) -> None:
    """:func:`gdn_fold` in plain torch."""
    _check(record, state, slots, columns)
    for lane, (slot, count) in enumerate(zip(slots.tolist(), accepted.tolist(), strict=True)):
        if count == 0:
            continue
        own = slice(lane * columns, lane * columns + count)
        inputs = torch.cat([state.conv[:, slot], record.inputs[:, own]], dim=1)
        state.conv[:, slot] = inputs[:, -(TAPS - 1) :]
        share = state.recurrent.shape[2] // record.keys.shape[2]
        s = state.recurrent[:, slot]
        for column in range(own.start, own.stop):
            k = record.keys[:, column].repeat_interleave(share, dim=1)
            s = s * record.decay[:, column, :, None, None] + k[..., None] * record.written[:, column, :, None]
        state.recurrent[:, slot] = s


def gdn_fold(
    record: GdnRecord, state: GdnState, slots: Tensor, accepted: Tensor, columns: int, *, dependent: bool = False
) -> None:
    """Bring the state of B lanes in all L layers up to the last accepted of the round's columns: one launch.

    Args:
        record: of the round, all layers.
        state: of all layers, updated in place.
        slots: int32 [B], those of the round.
        accepted: int32 [B], how many columns of each lane stand (0 leaves its state as it is).
        columns: T, columns a lane that the round had.
        dependent: launched while the kernel before may still run (programmatic dependent launch).
    """
    if not use_triton(state.recurrent):
        gdn_fold_reference(record, state, slots, accepted, columns)
        return
    _check(record, state, slots, columns)
    layers, _, heads, dk, dv = state.recurrent.shape
    channels = state.conv.shape[-1]
    rows = min(ROWS, dk)
    _fold_kernel[(heads * (dk // rows) + ceil_div(channels, 1024), len(slots), layers)](
        record.inputs,
        record.keys,
        record.written,
        record.decay,
        state.conv,
        state.conv.stride(0),
        state.conv.stride(1),
        state.recurrent,
        state.recurrent.stride(0),
        state.recurrent.stride(1),
        slots,
        accepted,
        record.inputs.shape[1],
        C=channels,
        KEY_HEADS=record.keys.shape[2],
        HEADS=heads,
        DK=dk,
        DV=dv,
        T=columns,
        ROWS=rows,
        num_warps=4,
        **overlap(dependent, slots),
    )


def _check(record: GdnRecord, state: GdnState, slots: Tensor, columns: int) -> None:
    if not 1 <= columns <= MAX_COLUMNS or record.keys.shape[1] < columns * len(slots):
        raise ValueError(
            f"A record of {record.keys.shape[1]} columns cannot hold {columns} (at most {MAX_COLUMNS}) of each of "
            f"{len(slots)} lanes."
        )
    if state.recurrent.dim() != 5 or record.keys.shape[0] != state.recurrent.shape[0]:
        raise ValueError("Record and state must be those of all layers.")


@triton.jit
def _fold_kernel(  # type: ignore[no-untyped-def]
    inputs,
    keys,
    written,
    decay,
    conv_state,
    conv_layer_stride,
    conv_slot_stride,
    state,
    layer_stride,
    slot_stride,
    slots,
    accepted,
    room,
    C: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    HEADS: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    T: tl.constexpr,
    ROWS: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Some rows of one value head of one lane in one layer; after the heads, 1,024 channels of the convolution's."""
    PARTS: tl.constexpr = DK // ROWS
    job, lane, layer = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    if DEPENDENT:
        # Those that follow start when this is done: some read the state before they wait.
        tl.extra.cuda.gdc_wait()
    count = tl.load(accepted + lane)
    if count > 0:
        slot = tl.load(slots + lane).to(tl.int64)
        first = layer * room + lane * T
        if job < HEADS * PARTS:
            head, i, j = job // PARTS, job % PARTS * ROWS + tl.arange(0, ROWS), tl.arange(0, DV)
            where = state + layer * layer_stride + slot * slot_stride + head * (DK * DV) + i[:, None] * DV + j[None, :]
            s = tl.load(where)
            for column in range(first, first + count):
                k = tl.load(keys + (column * KEY_HEADS + head // (HEADS // KEY_HEADS)) * DK + i)
                u = tl.load(written + (column * HEADS + head) * DV + j)
                s = tl.fma(k[:, None], u[None, :], s * tl.load(decay + column * HEADS + head))
            tl.store(where, s)
        else:
            c = (job - HEADS * PARTS) * 1024 + tl.arange(0, 1024)
            mask = c < C
            row = conv_state + layer * conv_layer_stride + slot * conv_slot_stride + c
            x = inputs + first * C + c
            # Row r afterwards is row r + count of (the three old rows ‖ the round's inputs).
            new0 = tl.load(row + C, mask=mask & (count == 1), other=0.0)
            new0 += tl.load(row + 2 * C, mask=mask & (count == 2), other=0.0)
            new0 += tl.load(x + (count - 3) * C, mask=mask & (count >= 3), other=0.0)
            new1 = tl.load(row + 2 * C, mask=mask & (count == 1), other=0.0)
            new1 += tl.load(x + (count - 2) * C, mask=mask & (count >= 2), other=0.0)
            new2 = tl.load(x + (count - 1) * C, mask=mask, other=0.0)
            tl.store(row, new0, mask=mask)
            tl.store(row + C, new1, mask=mask)
            tl.store(row + 2 * C, new2, mask=mask)
