"""The short depthwise causal convolution in front of a Gated DeltaNet, followed by SiLU; sums are float32."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 128
"""Tokens convolved at a time, more than the width of any kernel."""


def causal_conv_chunk(x: Tensor, weight: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Convolve a run of consecutive tokens of one sequence.

    Args:
        x: [T, C], the inputs.
        weight: [W, C], tap 0 on the oldest token.
        state: [W - 1, C], the inputs just before the run (zeros at a sequence's start).

    Returns:
        (SiLU of the convolution [T, C], the new state [W - 1, C]).
    """
    history, length = state.shape[0], x.shape[0]
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    weight = weight.float()
    # A block at a time, so that the taps and SiLU find it in the processor's cache.
    for start in range(0, length, BLOCK):
        stop = min(start + BLOCK, length)
        inputs = x[start - history : stop] if start else torch.cat([state, x[:stop]])
        inputs = inputs.float()
        y = inputs[: stop - start] * weight[0]
        for tap in range(1, history + 1):
            y.addcmul_(inputs[tap : tap + stop - start], weight[tap])
        out[start:stop] = F.silu(y, inplace=True)
    return out, torch.cat([state, x[-history:]])[-history:]


def causal_conv_step(x: Tensor, weight: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """One token for each of B sequences.

    Args:
        x: [B, C].
        weight: [W, C].
        state: [B, W - 1, C].

    Returns:
        (SiLU of the convolution [B, C], the new state [B, W - 1, C]).
    """
    window = torch.cat([state, x[:, None]], dim=1)
    inputs, weight = window.float(), weight.float()
    y = inputs[:, 0] * weight[0]
    for tap in range(1, weight.shape[0]):
        y.addcmul_(inputs[:, tap], weight[tap])
    return F.silu(y, inplace=True).to(x.dtype), window[:, 1:]
