"""Gated DeltaNet over whole sequences as matrix products, with gradients.

Within a chunk of 64 positions the delta rule is a unit lower-triangular solve; between chunks the state obeys
S' = A·S + B, one batched product a chunk. (A log-depth scan needs fewer steps, but four times the products and many
copies; on an H200, started from a CUDA graph, it cost more than everything else here.) Everything is float32 (TF32
products on the GPU).

This is the reference and what runs on a CPU. On a CUDA card ``delta.py`` takes its place, once ``choose`` has seen both
agree there.

Chunked form: Yang et al., "Gated Delta Networks" (arXiv:2412.06464), section 3.
"""

from __future__ import annotations

from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor

from .fuse import fused

CHUNK = 64
LARGEST = 1e-2
"""Largest difference between kernels and reference, relative: bfloat16 gradients alone are 2e-3 apart."""


class _UnitLowerInverse(torch.autograd.Function):
    """(I + N)⁻¹ for strictly lower-triangular N [..., n, n]; its gradient needs only the inverse."""

    @staticmethod
    def forward(ctx, lower: Tensor) -> Tensor:
        eye = torch.eye(lower.shape[-1], device=lower.device, dtype=lower.dtype)
        inverse = torch.linalg.solve_triangular(lower + eye, eye.expand_as(lower), upper=False, unitriangular=True)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (inverse,) = ctx.saved_tensors
        return -(inverse.mT @ grad @ inverse.mT).tril(-1)


@fused
def _within(q: Tensor, k: Tensor, g: Tensor, beta: Tensor):
    """Normalised q and k, their decays and the strictly lower system of each chunk. q, k [M, C, D]; g, beta [M, C]."""
    q = q * (torch.rsqrt(q.square().sum(-1, keepdim=True) + 1e-6) * q.shape[-1] ** -0.5)
    k = k * torch.rsqrt(k.square().sum(-1, keepdim=True) + 1e-6)
    total = g.cumsum(-1)
    decay = (total[:, :, None] - total[:, None, :]).tril().exp().tril()
    weighted = k * beta[..., None]
    system = ((weighted @ k.mT) * decay).tril(-1)
    scores = (q @ k.mT) * decay
    grown = total.exp()[..., None]
    left = (total[:, -1:] - total).exp()[..., None]
    return q * grown, weighted * grown, k * left, system, scores, total[:, -1].exp()


@fused
def _writes(inverse: Tensor, v: Tensor, beta: Tensor, w_in: Tensor) -> tuple[Tensor, Tensor]:
    """What each chunk writes, u, and what it reads of the state before it, w."""
    return inverse @ (v * beta[..., None]), inverse @ w_in


@fused
def _transition(u: Tensor, w: Tensor, k_left: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Each chunk's affine step (A, B) on the state."""
    k_t = k_left.mT
    eye = torch.eye(w.shape[-1], device=w.device, dtype=w.dtype)
    return last[:, None, None] * eye - k_t @ w, k_t @ u


@fused
def _output(q: Tensor, scores: Tensor, u: Tensor, w: Tensor, state: Tensor) -> Tensor:
    return q @ state + scores @ (u - w @ state)


class _States(torch.autograd.Function):
    """States before every chunk and after the last from the affine steps: step, add [N, chunks, D, D] -> [N, chunks +
    1, D, D]."""

    @staticmethod
    def forward(ctx, step: Tensor, add: Tensor) -> Tensor:
        states = F.pad(add, (0, 0, 0, 0, 1, 0))
        for i in range(step.shape[1]):
            states[:, i + 1].baddbmm_(step[:, i], states[:, i])
        ctx.save_for_backward(step, states)
        return states

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:
        step, states = ctx.saved_tensors
        grad = grad.clone(memory_format=torch.contiguous_format)
        for i in reversed(range(step.shape[1])):
            grad[:, i].baddbmm_(step[:, i].mT, grad[:, i + 1])
        added = grad[:, 1:].contiguous()
        return added @ states[:, :-1].mT, added


def _chunks(x: Tensor, size: int) -> Tensor:
    """[B, L, H, …] -> float32 [B · H · chunks, size, …], zeros behind the end."""
    x = x.float().transpose(1, 2)
    pad = -x.shape[2] % size
    x = F.pad(x, (0, 0) * (x.dim() - 3) + (0, pad)).contiguous()
    # No view, whose base would be guarded: what is compiled for whole sequences serves branches as well.
    return torch.ops.aten._unsafe_view(x, (-1, size, *x.shape[3:]))


def prefix_reference(qkv: Tensor, g: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """``gated_delta_prefix`` in torch."""
    q, k, v = qkv.unbind(2)
    batch, length, heads, dim = q.shape
    chunks = -(-length // CHUNK)
    beta_c, v_c = _chunks(beta, CHUNK), _chunks(v, CHUNK)
    q_c, w_in, k_left, system, scores, last = _within(_chunks(q, CHUNK), _chunks(k, CHUNK), _chunks(g, CHUNK), beta_c)
    u, w = _writes(_UnitLowerInverse.apply(system), v_c, beta_c, w_in)
    step, add = _transition(u, w, k_left, last)
    grid = (batch * heads, chunks, dim, dim)
    states = _States.apply(step.view(grid), add.view(grid))
    before = states[:, :-1].reshape(-1, dim, dim)
    out = _output(q_c, scores, u, w, before).view(batch, heads, chunks * CHUNK, dim)
    return out[:, :, :length].transpose(1, 2), states[:, -1].view(batch, heads, dim, dim)


def branches_reference(qkv: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    """``gated_delta_branches`` in torch."""
    batch, count, size, _, heads, dim = qkv.shape
    qkv, g, beta = (x.flatten(1, 2) for x in (qkv, g, beta))
    q, k, v = qkv.unbind(2)
    beta_c = _chunks(beta, size)
    q_c, w_in, _, system, scores, _ = _within(_chunks(q, size), _chunks(k, size), _chunks(g, size), beta_c)
    u, w = _writes(_UnitLowerInverse.apply(system), _chunks(v, size), beta_c, w_in)
    start = state.reshape(batch * heads, dim, dim)

    def read(x: Tensor) -> Tensor:
        return (x.view(batch * heads, count * size, dim) @ start).view(x.shape)

    out = read(q_c) + scores @ (u - read(w))
    return out.view(batch, heads, count, size, dim).permute(0, 2, 3, 1, 4)


_kernels: list[ModuleType] = []
"""``delta``, once ``choose`` has found it to agree."""


def gated_delta_rule(qkv: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    """qkv [B, L, 3, H, D]: q, k and v; g (log decay), beta [B, L, H] -> float32 [B, L, H, D]. State starts at zero."""
    return gated_delta_prefix(qkv, g, beta)[0]


def gated_delta_prefix(qkv: Tensor, g: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """As ``gated_delta_rule``, with the state after the last position: float32 [B, H, D, D]. A position with g = 0 and
    beta = 0 leaves the state as it is."""
    for kernels in _kernels:
        if qkv.is_cuda and kernels.suits(qkv):
            return kernels.gated_delta_prefix(qkv, g, beta)
    return prefix_reference(qkv, g, beta)


def gated_delta_branches(qkv: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    """Short sequences that all continue one state: qkv [B, N, T, 3, H, D]; g, beta [B, N, T, H]; state [B, H, D, D]
    -> float32 [B, N, T, H, D]. Each of the N branches is one chunk of T positions and knows nothing of the others."""
    for kernels in _kernels:
        if qkv.is_cuda and kernels.suits(qkv):
            return kernels.gated_delta_branches(qkv, g, beta, state)
    return branches_reference(qkv, g, beta, state)


def choose(device: torch.device, heads: int, dim: int) -> str:
    """Compare the Triton kernels with the reference on ``device`` and use them from then on, if they agree. Before
    ``fuse.enable``: the reference is to run as written. Returns a line that says what was chosen."""
    _kernels.clear()
    try:
        from . import delta

        apart = differences(delta, device, heads, dim)
    except Exception as fault:  # no Triton, no compiler, a card they do not fit: all the same here
        return f"Gated DeltaNet in torch: {type(fault).__name__}: {str(fault).strip().splitlines()[-1:]}"
    worst = max(apart, key=lambda name: apart[name] if apart[name] == apart[name] else float("inf"))
    if not apart[worst] < LARGEST:
        return f"Gated DeltaNet in torch: the kernels' {worst} is {apart[worst]:.1e} off"
    _kernels.append(delta)
    return f"Gated DeltaNet in Triton: {worst} is {apart[worst]:.1e} off the reference"


def differences(kernels: ModuleType, device: torch.device, heads: int, dim: int) -> dict[str, float]:
    """|kernels' - reference's| / |reference's| of every result and gradient, over random bfloat16 inputs."""
    apart = {}
    for name, reference, lead in (
        ("prefix", prefix_reference, (2, 150)),
        ("branches", branches_reference, (2, 5, 24)),
    ):
        generator = torch.Generator().manual_seed(1)
        inputs = [torch.randn(*lead, 3, heads, dim, generator=generator).bfloat16()]
        gates = torch.rand(2, *lead, heads, generator=generator)
        gates[:, :, lead[1] * 3 // 4 :] = 0  # padding
        inputs += [-gates[0], gates[1]]
        if name == "branches":
            inputs.append(torch.randn(lead[0], heads, dim, dim, generator=generator))
        found = []
        for form in (getattr(kernels, f"gated_delta_{name}"), reference):
            given = [x.to(device).requires_grad_() for x in inputs]
            results = form(*given)
            results = results if isinstance(results, tuple) else (results,)
            weights = [torch.ones_like(x).cumsum(-1).sin() for x in results]
            found.append((*results, *torch.autograd.grad(results, given, weights)))
        names = ["out", "state"][: len(results)] + [f"gradient {i}" for i in range(len(inputs))]
        for label, a, b in zip(names, *found, strict=True):
            apart[f"{name} {label}"] = ((a.double() - b.double()).norm() / b.double().norm()).item()
    return apart
