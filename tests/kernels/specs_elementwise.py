"""Norms, the feed-forward gate, the embedding and sampling as the 27B launches them."""

from __future__ import annotations

from collections.abc import Iterator

from kernels.fused.embedding import _embed_kernel
from kernels.fused.norm import _norm_kernel
from kernels.fused.sampling import BLOCK, WARPS, _choose_kernel, _pieces_kernel
from kernels.fused.silu_mul import _silu_mul_kernel
from tests.kernels.specialisation import Specialisation

PRODUCT = {"values": "*fp32", "slot_stride": "i32", "column_stride": "i32", "out": "*bf16"}
STREAM = PRODUCT | {"residual": "*bf16", "residual_stride": "i32", "scale": "*fp32", "normed": "*bf16", "eps": "fp32"}
EMBED = {"ids": "*i64", "embedding": "*bf16", "stride": "i32", "scale": "*fp32", "out": "*bf16", "normed": "*bf16"}
SAMPLE = {
    "logits": "*fp32",
    "row_stride": "i32",
    "numbers": "*fp64",
    "rows": "*i32",
    "flags": "*i32",
    "divisor": "*fp32",
    "reduction": "*fp32",
    "mask": "*i32",
    "mask_stride": "i32",
    "maxima": "*fp32",
    "sums": "*fp64",
    "best": "*i64",
    "scratch": "*i64",
    "ids": "*i64",
    "report": "*fp32",
}


def specialisations() -> Iterator[Specialisation]:
    on = {"DEPENDENT": True}
    stream = {"H": 5120, "ADD": True, "FRAGMENTS": False, "BLOCK": 8192}
    yield Specialisation(_norm_kernel, STREAM, on | stream | {"LAYOUT": (8, 64, 34, 528)}, warps=32)
    yield Specialisation(
        _silu_mul_kernel,
        PRODUCT,
        on | {"OUT": 34816, "LAYOUT": (3, 64, 10, 528), "FRAGMENTS": False, "BLOCK": 256},
        warps=2,
    )
    yield Specialisation(_embed_kernel, EMBED | {"eps": "fp32"}, on | {"H": 5120, "BLOCK": 8192}, warps=16)
    vocabulary = {"V": 248320, "BLOCK": BLOCK}
    unaligned = ["row_stride", "mask_stride"]
    yield Specialisation(_pieces_kernel, SAMPLE, on | vocabulary | {"PIECE": 4096}, unaligned=unaligned)
    pieces = {"PIECES": 61, "PIECES_UP": 64, "BLOCKS": 3904, "BLOCKS_UP": 4096}
    for candidates, warps in WARPS.items():
        constants = on | vocabulary | pieces | {"K": candidates}
        yield Specialisation(_choose_kernel, SAMPLE, constants, warps=warps, unaligned=unaligned, hot=candidates < 128)
