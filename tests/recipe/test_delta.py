"""The Triton form of the gated delta rule, in Triton's interpreter, against the reference in float64; and compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from assets.ember.recipe import gdn

delta = pytest.importorskip("assets.ember.recipe.delta", reason="Triton is not everywhere.")


class Tf32(TorchDispatchMode):
    """Products of float32 matrices as the card's TF32 units take them: inputs rounded to 10 bits behind the point."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function in (torch.ops.aten.bmm.default, torch.ops.aten.baddbmm_.default):
            args = (
                *args[:-2],
                *((x.contiguous().view(torch.int32) + 0x1000 & ~0x1FFF).view(x.dtype) for x in args[-2:]),
            )
        return function(*args, **(kwargs or {}))


def inputs(lead, heads, dim, decay, padded=0):
    """qkv, g and beta; keys lean towards each other, as after a convolution, so that deltas really interact."""
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(*lead, 3, heads, dim, generator=generator)
    qkv[..., 1, :, :] += 2 * torch.randn(heads, dim, generator=generator)
    g = -decay * torch.randn(*lead, heads, generator=generator).exp()
    beta = torch.randn(*lead, heads, generator=generator).sigmoid()
    if padded:
        g[:, -padded:] = beta[:, -padded:] = 0
    return [qkv.bfloat16(), g, beta]


def results(form, given, dtype=None):
    """Results and gradients under a fixed weighting of the results."""
    given = [x.to(dtype or x.dtype).requires_grad_() for x in given]
    found = form(*given)
    found = found if isinstance(found, tuple) else (found,)
    weights = [torch.ones_like(x).flatten().cumsum(0).sin().view(x.shape) for x in found]
    return *found, *torch.autograd.grad(found, given, weights)


def errors(found, exact):
    for x in found:
        assert x.isfinite().all()
    return [((x.double() - y).norm() / y.norm()).item() for x, y in zip(found, exact, strict=True)]


def check(form, reference, given, monkeypatch):
    """Nearer to float64 than the reference in TF32 is. The gradient of qkv is bfloat16: it is rounded once on a card,
    to 1.2e-3 or so, but cut off in the interpreter."""
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "float", lambda x: x)
        exact = results(reference, given, torch.float64)
    with Tf32():
        present = errors(results(reference, given), exact)
    found = errors(results(form, given), exact)
    gradient = len(found) - len(given)
    assert present[gradient] < 3e-3
    assert found[gradient] < 4e-3
    for index, (error, limit) in enumerate(zip(found, present, strict=True)):
        assert index == gradient or error < limit


@pytest.mark.parametrize(
    ("lead", "heads", "dim", "decay", "padded"),
    [
        ((2, 150), 2, 64, 0.1, 0),
        ((1, 64), 1, 64, 3.0, 0),
        ((1, 5), 2, 32, 0.1, 0),
        ((2, 130), 1, 32, 0.01, 70),
    ],
)
def test_sequences(lead, heads, dim, decay, padded, monkeypatch):
    given = inputs(lead, heads, dim, decay, padded)
    check(delta.gated_delta_prefix, gdn.prefix_reference, given, monkeypatch)


@pytest.mark.parametrize(("lead", "dim"), [((2, 5, 24), 64), ((1, 9, 7), 32), ((1, 2, 40), 32)])
def test_branches(lead, dim, monkeypatch):
    given = inputs(lead, 2, dim, 0.1)
    given.append(torch.randn(lead[0], 2, dim, dim, generator=torch.Generator().manual_seed(1)))
    check(delta.gated_delta_branches, gdn.branches_reference, given, monkeypatch)


def test_a_head_that_forgets_all_keeps_the_small_gradient_of_its_decay(monkeypatch):
    """What a position reads of itself is then hundreds of times what it reads of others, and must not reach g."""
    given = inputs((1, 70), 1, 32, 0.1)
    given[1] = given[1] - 6
    check(delta.gated_delta_prefix, gdn.prefix_reference, given, monkeypatch)


def test_equal_keys_that_forget_nothing(monkeypatch):
    """The system's worst: every position undoes what the one before wrote."""
    qkv, g, beta = inputs((1, 64), 1, 32, 0.1)
    qkv[:, :, 1] = qkv[:, :1, 1]
    given = [qkv, torch.zeros_like(g), torch.full_like(beta, 0.999)]
    check(delta.gated_delta_prefix, gdn.prefix_reference, given, monkeypatch)


def test_the_choice(monkeypatch):
    """Kernels that agree are chosen; others, or none, leave the reference in place."""
    monkeypatch.setattr(gdn, "_kernels", [])
    cpu = torch.device("cpu")
    assert gdn.choose(cpu, 1, 32).startswith("Gated DeltaNet in Triton")
    assert gdn._kernels == [delta]
    with monkeypatch.context() as patch:
        branches = delta.gated_delta_branches
        patch.setattr(delta, "gated_delta_branches", lambda *given: branches(*given) * 1.05)
        assert gdn.choose(cpu, 1, 32).startswith("Gated DeltaNet in torch: the kernels' branches ")
        assert gdn._kernels == []
    monkeypatch.setitem(sys.modules, "assets.ember.recipe.delta", None)
    monkeypatch.delattr("assets.ember.recipe.delta")
    assert gdn.choose(cpu, 1, 32).startswith("Gated DeltaNet in torch: ")
    assert gdn._kernels == []


SPILLED = {"inputs_back_kernel": 256}
"""Bytes a thread may spill, of addresses and norms, once a program."""


@pytest.mark.skipif(sys.platform != "linux", reason="Triton's own wheels carry the compiler's tools.")
def test_compiled_for_the_card_that_trains():
    """Every kernel compiles for SM90, within the shared memory there is, two programs a multiprocessor or more."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.recipe.compiled"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert {kernel["kernel"] for kernel in found} >= set(SPILLED)
    for kernel in found:
        assert "fault" not in kernel, kernel
        assert kernel["shared"] <= 227 * 1024 // 2, kernel
        assert kernel["stack"] + kernel["local"] <= SPILLED.get(kernel["kernel"], 0), kernel
