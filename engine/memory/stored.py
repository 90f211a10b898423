"""A kept state as plain tensors in host memory: what travels to the disk tier and back."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from engine.messages import RequestClass


@dataclass(frozen=True)
class StoredState:
    key: bytes
    tokens: int
    rope_delta: int
    request_class: RequestClass
    kv: Tensor
    """[full-attention layers, 2, tokens, Hkv, D]."""
    conv: Tensor
    """[Gated DeltaNet layers, W − 1, C]."""
    recurrent: Tensor
    """float32 [Gated DeltaNet layers, H, Dk, Dv]."""
    last: Tensor | None
    """[1, hidden]."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        named = {"kv": self.kv, "conv": self.conv, "recurrent": self.recurrent}
        return named if self.last is None else {**named, "last": self.last}

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors.values())
