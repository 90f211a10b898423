"""Compile the recipe's kernels for SM90 as training launches them, in a process of its own (the tests' has Triton's
interpreter): ``python -m tests.recipe.compiled`` prints one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import torch

from assets.ember.recipe import convolution, delta, rotary
from tests.kernels.compiled import compile_one
from tests.kernels.recording import recorded

HEADS, DIM = 9, 64


def gated_delta(*lead: int) -> Callable[[], None]:
    """Forward and backward over empty tensors."""

    def run() -> None:
        qkv = torch.empty(*lead, 3, HEADS, DIM, dtype=torch.bfloat16, requires_grad=True)
        g, beta = (torch.empty(*lead, HEADS, requires_grad=True) for _ in range(2))
        if len(lead) == 2:
            results = delta.gated_delta_prefix(qkv, g, beta)
        else:
            state = torch.empty(lead[0], HEADS, DIM, DIM, requires_grad=True)
            results = (delta.gated_delta_branches(qkv, g, beta, state),)
        torch.autograd.backward(results, [torch.empty_like(x) for x in results])

    return run


def rotated() -> None:
    qkv = torch.empty(2, 3072, 3, 6, 64, dtype=torch.bfloat16, requires_grad=True)
    results = rotary.rotate_heads(qkv, torch.empty(3072, 1, 64), torch.empty(3072, 1, 64))
    torch.autograd.backward(results, [torch.empty_like(x) for x in results])


def convolved(*lead: int) -> Callable[[], None]:
    def run() -> None:
        channels = 3 * HEADS * DIM
        x, left = (torch.empty(lead[0], n, channels, dtype=torch.bfloat16, requires_grad=True) for n in (lead[1], 3))
        weight = torch.empty(channels, 1, 4, dtype=torch.bfloat16, requires_grad=True)
        whole = len(lead) == 2
        out = convolution.conv_silu(x, weight) if whole else convolution.conv_silu_after(x, left, weight)
        out.backward(torch.empty_like(out))

    return run


def launches() -> Iterator[tuple[str, Callable[[], None]]]:
    yield "sequence", gated_delta(2, 150)
    yield "branches", gated_delta(2, 32, 24)
    yield "heads", rotated
    yield "channels", convolved(2, 150)
    yield "channels of branches", convolved(2, 24, 3)


def main() -> None:
    for name, launch in launches():
        for what in recorded(launch, targets=(90,)):
            found = {"kernel": what.kernel.fn.__name__, "of": name}
            print(json.dumps(found | compile_one(what, 90)), flush=True)


if __name__ == "__main__":
    main()
