"""What the kernels of a Gated DeltaNet layer share: its parameters, its state in slots, and what a round records.

The layer's input product is q ‖ k ‖ v ‖ z per column: Hk heads of q, Hk of k, Hv of v and Hv gates z; the first three
(C *channels*) pass a causal convolution. Value head h goes with key head h · Hk // Hv.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.served import GDN_DIMS, TAPS

MAX_COLUMNS = 16
"""Columns of one lane that a round may have."""


@dataclass(frozen=True)
class GdnLayer:
    """Parameters of one layer that are not matrices."""

    conv: Tensor
    """[4, C], tap 0 on the oldest token."""
    decay: Tensor
    """float32 [Hv]: −exp(A_log)."""
    dt_bias: Tensor
    """float32 [Hv]."""
    norm: Tensor
    """float32 [Dv]."""
    key_heads: int
    eps: float

    def __post_init__(self) -> None:
        keys = self.channels - self.value_heads * self.value_dim
        if self.conv.shape[0] != TAPS:
            raise ValueError(f"The kernels convolve {TAPS} tokens, not {self.conv.shape[0]}.")
        if keys <= 0 or keys % (2 * self.key_heads) or self.value_heads % self.key_heads:
            raise ValueError(
                f"{self.channels} channels are not {self.key_heads} heads of q and of k and {self.value_heads} of "
                f"{self.value_dim} values."
            )
        for name, dim in (("key", self.key_dim), ("value", self.value_dim)):
            if dim not in GDN_DIMS:
                raise ValueError(f"The kernels serve {name} dimensions {GDN_DIMS}, not {dim}.")

    @property
    def channels(self) -> int:
        return self.conv.shape[1]

    @property
    def value_heads(self) -> int:
        return self.decay.shape[0]

    @property
    def value_dim(self) -> int:
        return self.norm.shape[0]

    @property
    def key_dim(self) -> int:
        return (self.channels - self.value_heads * self.value_dim) // (2 * self.key_heads)

    @property
    def out_features(self) -> int:
        """Of the product of the inputs: q ‖ k ‖ v ‖ z."""
        return self.channels + self.value_heads * self.value_dim

    def check(self, product_out: int, state: GdnState) -> None:
        """Raises ``ValueError`` for sizes that do not fit the layer's."""
        if product_out != self.out_features:
            raise ValueError(f"The layer's inputs are {self.out_features} values a column, not {product_out}.")
        expected = (self.value_heads, self.key_dim, self.value_dim)
        if state.conv.shape[1:] != (TAPS - 1, self.channels) or state.recurrent.shape[1:] != expected:
            raise ValueError(
                f"A slot holds {[TAPS - 1, self.channels]} and {list(expected)} values, not "
                f"{list(state.conv.shape[1:])} and {list(state.recurrent.shape[1:])}."
            )
        if not state.conv[0].is_contiguous() or not state.recurrent[0].is_contiguous():
            raise ValueError("A slot's state must be contiguous.")


@dataclass(frozen=True)
class GdnState:
    """State of one layer, or of all where a leading dimension L counts them."""

    conv: Tensor
    """[slots, 3, C] in the compute type: the last inputs of the convolution, oldest first."""
    recurrent: Tensor
    """float32 [slots, Hv, Dk, Dv]."""

    def layer(self, index: int) -> GdnState:
        return GdnState(self.conv[index], self.recurrent[index])


@dataclass(frozen=True)
class GdnRecord:
    """What a round with drafts leaves behind in place of its state, for one layer or all of them.

    The state after column t is decay_t · (that before it) + k_t ⊗ u_t.
    """

    inputs: Tensor
    """[N, C] in the compute type, before the convolution."""
    keys: Tensor
    """float32 [N, Hk, Dk], normalised."""
    written: Tensor
    """float32 [N, Hv, Dv]: u = β(v − Sᵀk)."""
    decay: Tensor
    """float32 [N, Hv]: e^g."""

    @staticmethod
    def reserve(layer: GdnLayer, layers: int, columns: int, dtype: torch.dtype) -> GdnRecord:
        """Buffers for ``layers`` layers like ``layer`` and rounds of up to ``columns`` columns of all lanes."""

        def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.empty(layers, columns, *shape, dtype=dtype, device=layer.conv.device)

        return GdnRecord(
            empty(layer.channels, dtype=dtype),
            empty(layer.key_heads, layer.key_dim),
            empty(layer.value_heads, layer.value_dim),
            empty(layer.value_heads),
        )

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self.inputs, self.keys, self.written, self.decay))

    def layer(self, index: int) -> GdnRecord:
        return GdnRecord(self.inputs[index], self.keys[index], self.written[index], self.decay[index])


def gates_reference(ba: Tensor, layer: GdnLayer) -> tuple[Tensor, Tensor]:
    """(β, g) float32 [N, Hv] of the products b ‖ a [N, 2 Hv]."""
    b, a = ba.float().chunk(2, dim=-1)
    return b.sigmoid(), layer.decay * torch.nn.functional.softplus(a + layer.dt_bias)


@triton.jit
def load_gates(ba, decay, dt_bias, column, head, mask, HEADS: tl.constexpr):  # type: ignore[no-untyped-def]
    """(β, g) in float32 of ``head`` at ``column``; both 0 where ``mask`` is false, so that nothing changes there."""
    at = ba + column * (2 * HEADS) + head
    b = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(at + HEADS, mask=mask, other=0.0).to(tl.float32) + tl.load(dt_bias + head)
    # log(1 + e^x) without losing small values: log(1 + e) · e / ((1 + e) − 1) has no rounding of 1 + e in it.
    e = tl.exp(tl.minimum(x, 20.0))
    one = 1.0 + e
    soft = tl.where(x > 20.0, x, tl.where(one == 1.0, e, tl.log(one) * (e / tl.where(one == 1.0, 1.0, one - 1.0))))
    return tl.where(mask, 1.0 / (1.0 + tl.exp(-b)), 0.0), tl.where(mask, tl.load(decay + head) * soft, 0.0)


@triton.jit
def silu(x):  # type: ignore[no-untyped-def]
    return x / (1.0 + tl.exp(-x))


@triton.jit
def two_parts(x):  # type: ignore[no-untyped-def]
    """float32 → two BF16 whose sum has 16 bits of it: its upper half, cut off (one bitwise operation), and the rest."""
    high = (x.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)
    return high.to(tl.bfloat16), (x - high).to(tl.bfloat16)


@triton.jit
def precise_dot(a, b, acc, INTERPRET: tl.constexpr):  # type: ignore[no-untyped-def]
    """acc + a b of float32 matrices, each in two BF16 parts: 16 bits of them, for a third of what TF32 would cost."""
    if INTERPRET:
        acc = tl.dot(a, b, acc)
    else:
        a_high, a_low = two_parts(a)
        b_high, b_low = two_parts(b)
        acc = tl.dot(a_low, b_high, acc)
        acc = tl.dot(a_high, b_low, acc)
        acc = tl.dot(a_high, b_high, acc)
    return acc
