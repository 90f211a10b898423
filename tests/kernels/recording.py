"""Specialisations as the launching code itself asks for them: it runs on empty tensors, what it would launch is kept.

For the process that compiles (``tests.kernels.compiled``), where Triton's interpreter is off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from tests.kernels.specialisation import Specialisation

TYPES = {
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.uint8: "*u8",
    torch.int16: "*i16",
    torch.int32: "*i32",
    torch.int64: "*i64",
}
OPTIONS = ("num_warps", "num_stages", "maxnreg", "launch_pdl")


def recorded(
    launch: Callable[[], Any], targets: Sequence[int] = (90, 120), cold: Sequence[str] = ()
) -> list[Specialisation]:
    """What ``launch`` launches, with dependent launch where a kernel knows it; kernels named in ``cold`` may spill."""
    with _keeping() as kept:
        launch()
    return [
        _specialisation(kernel, args, options, targets, kernel.fn.__name__ not in cold)
        for kernel, args, options in kept
    ]


@contextmanager
def _keeping() -> Iterator[list[tuple[Any, Sequence[Any], Mapping[str, Any]]]]:
    from triton.runtime.jit import JITFunction

    kept: list[tuple[Any, Sequence[Any], Mapping[str, Any]]] = []

    def keep(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
        kept.append((self, args, options))

    run, before = JITFunction.run, os.environ.get("IGNIS_KERNELS")
    JITFunction.run = keep
    os.environ["IGNIS_KERNELS"] = "triton"
    try:
        yield kept
    finally:
        JITFunction.run = run
        os.environ.pop("IGNIS_KERNELS")
        if before is not None:
            os.environ["IGNIS_KERNELS"] = before


def _specialisation(
    kernel: Any, args: Sequence[Any], options: Mapping[str, Any], targets: Sequence[int], hot: bool
) -> Specialisation:
    values = dict(zip(kernel.arg_names, args, strict=False)) | {k: v for k, v in options.items() if k not in OPTIONS}
    types: dict[str, str] = {}
    constants: dict[str, Any] = {}
    unaligned: list[str] = []
    for parameter in kernel.params:
        value = values[parameter.name]
        if parameter.is_constexpr or value is None or (isinstance(value, int) and value == 1):
            constants[parameter.name] = True if parameter.name == "DEPENDENT" else value
        elif isinstance(value, Tensor):
            types[parameter.name] = TYPES[value.dtype]
        else:
            types[parameter.name] = "fp32" if isinstance(value, float) else "i32"
            if not isinstance(value, int) or value % 16 or parameter.do_not_specialize:
                unaligned.append(parameter.name)
    return Specialisation(
        kernel,
        types,
        constants,
        options.get("num_warps", 4),
        options.get("num_stages", 3),
        options.get("maxnreg"),
        unaligned,
        targets,
        hot,
    )
