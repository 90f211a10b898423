"""Linear layers as the 27B launches them."""

from __future__ import annotations

from collections.abc import Iterator

from kernels.fused import (
    dense_linear,
    nvfp4_layout,
    nvfp4_registers,
    nvfp4_shared,
    nvfp4_unpack,
    nvfp4_w4a4,
    nvfp4_wgmma,
)
from kernels.fused.activations import _arrange_kernel
from kernels.fused.nvfp4_linear import plan
from tests.kernels.specialisation import Specialisation

WEIGHT = {"words": "*i32", "scales": "*i32", "factors": "*fp32"}
NVFP4 = {"x": "*bf16", **WEIGHT, "values": "*fp32", "columns": "i32", "slot_stride": "i32", "out": "i32", "k": "i32"}
DENSE = {"x": "*bf16", "weight": "*bf16", "out": "*fp32", "count": "i32", "x_stride": "i32", "out_stride": "i32"}
DENSE |= {"n": "i32", "k": "i32"}


def specialisations() -> Iterator[Specialisation]:
    layout, how = nvfp4_registers.activation_layout(4), plan(34816, 5120, 8, 132, 90)
    yield Specialisation(
        nvfp4_registers.registers_kernel,
        NVFP4,
        {"X": layout, "WARPS": 4, "DEPENDENT": True},
        registers=how.registers,
        unaligned=["columns"],
    )
    for columns in (16, 32, 64):
        how = plan(34816, 5120, columns, 170, 120)
        constants = {"COLUMNS": columns, "WARPS": 4, "STAGES": how.stages, "DEPENDENT": True}
        yield Specialisation(
            nvfp4_shared.shared_kernel, NVFP4, constants, registers=how.registers, unaligned=["columns"]
        )
    constants = {"COLUMNS": 16, "WARPS": 4, "STAGES": 4, "DEPENDENT": True}
    yield Specialisation(
        nvfp4_wgmma.stream_kernel, NVFP4, constants, registers=128, unaligned=["columns"], targets=[90]
    )
    for columns in (32, 64):
        how = plan(34816, 5120, columns, 132, 90)
        types = NVFP4 | {"x": f"tensordesc<bf16[{columns}, 128],{nvfp4_wgmma.SHARED!r}>"}
        constants = {
            "COLUMNS": columns,
            "WARPS": how.warps,
            "STAGES": how.stages,
            "HALVES": how.unit // 256,
        }
        yield Specialisation(
            nvfp4_wgmma.persistent_kernel,
            types,
            constants | {"DEPENDENT": True},
            warps=how.warps,
            registers=how.registers,
            unaligned=["columns"],
            targets=[90],
        )
    yield Specialisation(
        nvfp4_unpack._unpack_kernel,
        WEIGHT | {"out": "*bf16", "rows": "i32", "columns": "i32", "blocks": "i32"},
        {"DEPENDENT": True},
        unaligned=["blocks"],
    )
    yield Specialisation(
        nvfp4_layout._pack_kernel,
        {"codes": "*i32", "bits": "*u8", "words": "*i32", "scales": "*i32", "rows": "i32", "columns": "i32"}
        | {"blocks": "i32"},
        {},
        unaligned=["blocks"],
    )
    yield Specialisation(
        _arrange_kernel,
        {"x": "*bf16", "out": "*bf16", "stride": "i32", "width": "i32", "columns": "i32"},
        {"FRAGMENTS": True, "BLOCK": 1024, "DEPENDENT": True},
    )
    yield Specialisation(
        dense_linear._rows_kernel,
        DENSE | {"out": "*bf16"},
        {"COLUMNS": 8, "K": 8192, "DEPENDENT": True},
        warps=16,
        unaligned=["count"],
    )
    for columns in (8, 64):
        for quantized in (False, True):
            tiling = dense_linear.tiling(248320, columns, quantized)
            yield Specialisation(
                dense_linear._tiles_kernel,
                DENSE | ({"weight": "*u8", "scale": "*fp32"} if quantized else {}),
                ({"SCALE": "row"} if quantized else {"SCALE": "none", "scale": None})
                | {
                    "ROWS": tiling.rows,
                    "COLUMNS": max(16, columns),
                    "K": tiling.k,
                    "TURNED": tiling.turned,
                    "EVEN": True,
                }
                | {"INTERPRET": False, "DEPENDENT": True},
                warps=tiling.warps,
                stages=tiling.stages,
                unaligned=["count"],
            )
    yield Specialisation(
        dense_linear._unpack_kernel,
        {"codes": "*u8", "scale": "*fp32", "out": "*bf16", "rows": "i32", "columns": "i32"},
        {"BY_ROW": False, "INTERPRET": False},
    )
    yield Specialisation(
        nvfp4_w4a4._quantize_kernel,
        {"x": "*bf16", "codes": "*u8", "scales": "*fp8e4nv", "stride": "i32", "width": "i32", "columns": "i32"}
        | {"to_scale": "fp32", "to_unit": "fp32"},
        {},
        targets=[120],
    )
    yield Specialisation(
        nvfp4_w4a4._natural_kernel,
        {"words": "*i32", "scales": "*i32", "codes": "*i32", "natural": "*u8", "k": "i32"},
        {},
        targets=[120],
    )
    yield Specialisation(
        nvfp4_w4a4._product_kernel,
        {"codes": "*u8", "scales": "*fp8e4nv", "weight": "*u8", "weight_scales": "*fp8e4nv", "factors": "*fp32"}
        | {"out": "*bf16", "n": "i32", "rows": "i32", "k": "i32", "stride": "i32", "factor": "fp32"},
        {"N": 128, "ROWS": 128, "K": 128},
        warps=8,
        unaligned=["n"],
        targets=[120],
    )
