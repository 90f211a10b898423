"""The Triton form of the gated delta rule, in Triton's interpreter, against the reference in float64; and compiled."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from assets.ember.recipe import gdn
from assets.ember.recipe.forms import results

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


def errors(found, exact):
    for x in found:
        assert x.isfinite().all()
    return [((x.double() - y).norm() / y.norm()).item() for x, y in zip(found, exact, strict=True)]


def check(form, reference, given, monkeypatch):
    """Nearer to float64 than the reference in TF32 is. The gradient of qkv is bfloat16: it is rounded once on a card,
    to 1.2e-3 or so, but cut off in the interpreter."""
    given = [x.requires_grad_() for x in given]
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "float", lambda x: x)
        exact = results(reference, [x.detach().double().requires_grad_() for x in given])
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
        ((1, 150), 2, 64, 0.1, 0),
        ((1, 64), 1, 64, 3.0, 0),
        ((1, 5), 2, 32, 0.1, 0),
        ((2, 130), 1, 32, 0.01, 70),
    ],
)
def test_sequences(lead, heads, dim, decay, padded, monkeypatch):
    given = inputs(lead, heads, dim, decay, padded)
    check(delta.gated_delta_prefix, gdn.gated_delta_prefix, given, monkeypatch)


@pytest.mark.parametrize(("lead", "dim"), [((2, 3, 24), 64), ((1, 9, 7), 32), ((1, 2, 40), 32)])
def test_branches(lead, dim, monkeypatch):
    given = inputs(lead, 2, dim, 0.1)
    given.append(torch.randn(lead[0], 2, dim, dim, generator=torch.Generator().manual_seed(1)))
    check(delta.gated_delta_branches, gdn.gated_delta_branches, given, monkeypatch)


def test_a_head_that_forgets_all_keeps_the_small_gradient_of_its_decay(monkeypatch):
    """What a position reads of itself is then hundreds of times what it reads of others, and must not reach g."""
    given = inputs((1, 70), 1, 32, 0.1)
    given[1] = given[1] - 6
    check(delta.gated_delta_prefix, gdn.gated_delta_prefix, given, monkeypatch)


def test_equal_keys_that_forget_nothing(monkeypatch):
    """The system's worst: every position undoes what the one before wrote."""
    qkv, g, beta = inputs((1, 64), 1, 32, 0.1)
    qkv[:, :, 1] = qkv[:, :1, 1]
    given = [qkv, torch.zeros_like(g), torch.full_like(beta, 0.999)]
    check(delta.gated_delta_prefix, gdn.gated_delta_prefix, given, monkeypatch)
