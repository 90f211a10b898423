"""Float32 master weights in one flat buffer, updated by Muon (matrices) and Adam (the rest).

Parameters of the same kind and shape lie side by side, so an update, a rounding to the shipped precision and the
gradient all-reduce each work on a few large views instead of hundreds of tensors.

Muon: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/; its step is scaled by 0.2·√max(rows, columns) so
that it has Adam's typical size (Moonlight, arXiv:2502.16982) and both share one learning rate.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .quantise import kind, shipped


@dataclass
class Slab:
    """Parameters of one domain, method and shape: ``names`` in order, at ``[start, end)`` of the flat buffers."""

    domain: str
    muon: bool
    decay: float
    how: str
    names: list[str]
    shape: tuple[int, ...]
    start: int
    end: int

    def of(self, flat: Tensor) -> Tensor:
        """This slab's part of a flat buffer as [parameters, rows, columns] (or [parameters, size] for vectors)."""
        return flat[self.start : self.end].view(len(self.names), *self.shape)


def _muon(name: str, parameter: Tensor) -> bool:
    inside = ".layers." in name or ".blocks." in name or ".merger." in name
    return inside and parameter.dim() == 2 and ".in_proj_a." not in name and ".in_proj_b." not in name


def orthogonal(g: Tensor) -> Tensor:
    """Nearest semi-orthogonal matrices of a stack [n, rows, columns] by five Newton–Schulz steps in BF16."""
    x = g.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.float().norm(dim=(1, 2), keepdim=True).bfloat16() + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if tall else x).float()


class Optimiser:
    """Owns the weights of a model from construction on: its parameters become BF16 views of ``working``, their
    gradients views of ``grads``, both refreshed from the float32 ``master``."""

    def __init__(self, model: nn.Module, rates: dict[str, float], dtype: torch.dtype = torch.bfloat16) -> None:
        """``rates``: peak learning rate per domain ("text", "vision")."""
        self.rates = rates
        groups: dict[tuple, list[tuple[str, nn.Parameter]]] = defaultdict(list)
        for name, p in model.named_parameters():
            domain = "vision" if ".visual." in name else "text"
            shape = tuple(p.flatten(1).shape) if p.dim() > 1 else tuple(p.shape)
            decay = 0.03 if p.dim() > 1 else 0.0
            groups[domain, _muon(name, p), decay, kind(name, p), shape].append((name, p))
        device = next(model.parameters()).device
        total = sum(p.numel() for p in model.parameters())
        self.master = torch.empty(total, device=device)
        self.working = torch.empty(total, device=device, dtype=dtype)
        self.grads = torch.zeros(total, device=device, dtype=dtype)
        self.first = torch.zeros(total, device=device)
        self.slabs: list[Slab] = []
        at = 0
        for (domain, muon, decay, how, shape), found in sorted(
            groups.items(), key=lambda kv: (kv[0][0], kv[0][1], str(kv[0]))
        ):
            start = at
            for _, p in found:
                end = at + p.numel()
                self.master[at:end] = p.data.flatten().float()
                p.data = self.working[at:end].view(p.shape)
                p.grad = self.grads[at:end].view(p.shape)
                at = end
            self.slabs.append(Slab(domain, muon, decay, how, [n for n, _ in found], shape, start, at))
        self.shapes = {name: p.shape for name, p in model.named_parameters()}
        self.second = {s.start: torch.zeros(s.end - s.start, device=device) for s in self.slabs if not s.muon}
        self.steps = 0
        self.rounded = False
        self.refresh()

    def refresh(self) -> None:
        """Copy the masters to the working weights, rounded to the shipped precision once ``rounded`` is set."""
        if not self.rounded:
            self.working.copy_(self.master)
            return
        for slab in self.slabs:
            slab.of(self.working).copy_(shipped(slab.how, slab.of(self.master)))

    def state(self) -> dict[str, Tensor]:
        """The masters under the parameters' names."""
        out = {}
        for slab in self.slabs:
            for name, tensor in zip(slab.names, slab.of(self.master), strict=True):
                out[name] = tensor.view(self.shapes[name])
        return out

    @torch.no_grad()
    def step(self, multiplier: float, clip: float = 1.0) -> dict[str, Tensor]:
        """One update from ``grads`` (already averaged over ranks) at ``multiplier`` × the peak rates; returns the
        gradient norm per domain. A domain whose gradient is not finite is skipped."""
        self.steps += 1
        norms: dict[str, Tensor] = {}
        for domain in self.rates:
            start = min(s.start for s in self.slabs if s.domain == domain)
            end = max(s.end for s in self.slabs if s.domain == domain)
            norms[domain] = self.grads[start:end].float().norm()
        for slab in self.slabs:
            norm, rate = norms[slab.domain], self.rates[slab.domain] * multiplier
            fine = torch.isfinite(norm)
            scale = torch.where(fine, (clip / (norm + 1e-6)).clamp(max=1.0), 0.0)
            part = slice(slab.start, slab.end)
            g = torch.nan_to_num(self.grads[part].float(), 0.0, 0.0, 0.0) * scale
            master, first = self.master[part], self.first[part]
            if slab.muon:
                first.mul_(0.95).add_(g)
                update = orthogonal((g + 0.95 * first).view(-1, *slab.shape))
                update = update.flatten() * (0.2 * max(slab.shape) ** 0.5)
            else:
                second = self.second[slab.start]
                first.lerp_(g, 0.1)
                second.lerp_(g.square(), 0.02)
                update = (first / (1 - 0.9**self.steps)) / ((second / (1 - 0.98**self.steps)).sqrt() + 1e-8)
            master.mul_(1 - rate * slab.decay).sub_(update * fine, alpha=rate)
        self.refresh()
        self.grads.zero_()
        return norms
