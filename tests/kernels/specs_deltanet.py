"""Gated DeltaNet as the 27B launches it."""

from __future__ import annotations

from collections.abc import Iterator

from kernels.fused.gdn_chunk import (
    CHUNK,
    VALUES,
    _conv_kernel,
    _norm_kernel,
    _solve_kernel,
    _walk_kernel,
)
from kernels.fused.gdn_fold import ROWS, _fold_kernel
from kernels.fused.gdn_inputs import _columns_kernel, _one_kernel
from kernels.fused.gdn_step import _step_kernel
from kernels.fused.gdn_verify import _verify_kernel
from tests.kernels.specialisation import Specialisation

HEADS = {"KEY_HEADS": 16, "HEADS": 48, "DK": 128, "DV": 128}
CHANNELS = {"C": 10240}
PRODUCT = {"OUT": 16384, "LAYOUT": (4, 64, 10, 528)}
PLAIN = {"OUT": 16384, "LAYOUT": (0, 0, 0, 0)}
RUNS = {"RUNS": 1, "RUNS_UP": 1, "CHUNK": CHUNK}
DEPENDENT = {"DEPENDENT": True}

TYPES = {
    "values": "*fp32",
    "slot_stride": "i32",
    "column_stride": "i32",
    "mixed": "*fp32",
    "ba": "*bf16",
    "decay": "*fp32",
    "dt_bias": "*fp32",
    "norm": "*fp32",
    "weight": "*bf16",
    "conv_state": "*bf16",
    "conv_stride": "i32",
    "state": "*fp32",
    "state_stride": "i32",
    "slots": "*i32",
    "rows": "*i32",
    "starts": "*i32",
    "out": "*bf16",
    "eps": "fp32",
}
RECORD = {
    "record": "*bf16",
    "scratch": "*fp32",
    "record_keys": "*fp32",
    "record_written": "*fp32",
    "record_decay": "*fp32",
}
FOLD = {
    "inputs": "*bf16",
    "keys": "*fp32",
    "written": "*fp32",
    "accepted": "*i32",
    "room": "i32",
    "conv_layer_stride": "i32",
    "conv_slot_stride": "i32",
    "layer_stride": "i64",
}
BETWEEN = {"solved": "*fp32", "scores": "*fp32", "factors": "*fp32", "between": "*fp32", "rows": "i32"}


def specialisations() -> Iterator[Specialisation]:
    of_inputs = PRODUCT | CHANNELS | DEPENDENT | {"KEY_HEADS": 16, "DK": 128, "DV": 128, "D": 128}
    yield Specialisation(_one_kernel, TYPES, of_inputs, warps=1)
    yield Specialisation(_columns_kernel, TYPES | RECORD, of_inputs | {"T": 8, "T_UP": 8})
    of_round = PRODUCT | CHANNELS | HEADS | DEPENDENT
    yield Specialisation(_step_kernel, TYPES, of_round)
    several = of_round | {"T": 8, "T_UP": 8, "INTERPRET": False}
    # A few bytes, with the whole state in registers.
    yield Specialisation(_verify_kernel, TYPES | RECORD, several, hot=False)
    types = TYPES | FOLD | {"slot_stride": "i32"}
    yield Specialisation(_fold_kernel, types, CHANNELS | HEADS | DEPENDENT | {"T": 8, "ROWS": ROWS})
    chunk = TYPES | BETWEEN | {"values": "*bf16", "mixed": "*bf16"}
    of_runs = RUNS | CHANNELS | DEPENDENT
    yield Specialisation(_conv_kernel, chunk, of_runs | PLAIN | {"BLOCK": 64}, warps=8)
    compiled = {"INTERPRET": False}
    for target in (90, 120):
        yield Specialisation(
            _solve_kernel,
            chunk,
            of_runs | HEADS | compiled,
            targets=[target],
            hot=target == 90,
        )
    for stages, target in ((2, 90), (1, 120)):
        yield Specialisation(
            _walk_kernel,
            chunk | {"out": "*fp32"},
            of_runs | PLAIN | HEADS | compiled | {"BV": VALUES},
            stages=stages,
            targets=[target],
            hot=False,
        )
    of_norm = PLAIN | CHANNELS | DEPENDENT | {"RUNS": 1, "HEADS": 48, "DV": 128, "ROWS": 16}
    yield Specialisation(_norm_kernel, chunk, of_norm)
