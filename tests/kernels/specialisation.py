"""What a kernel is compiled for, without a card: its types, constants and launch options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Specialisation:
    """One way in which a kernel is launched where speed matters."""

    kernel: Any
    """The function under ``triton.jit`` or ``gluon.jit``."""
    types: Mapping[str, str]
    """Of every parameter that is no constant: ``*bf16``, ``i32``, …"""
    constants: Mapping[str, Any]
    warps: int = 4
    stages: int = 3
    registers: int | None = None
    unaligned: Sequence[str] = ()
    """Parameters that are no multiples of 16; all others are."""
    targets: Sequence[int] = (90, 120)
    hot: bool = True
    """Must not spill registers."""
    note: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        constants = ", ".join(f"{key}={value}" for key, value in self.constants.items() if len(str(value)) < 24)
        return (
            f"{self.kernel.fn.__module__}.{self.kernel.fn.__name__}({constants}){' ' + self.note if self.note else ''}"
        )
