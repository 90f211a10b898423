"""Many questions about one evidence, each read alone: the evidence is computed once, every question continues from it.

The program asks one question a prompt. A *prefix* is a batch of evidences [B, N]; *branches* are the questions
[B, Q, T] that follow it. A branch sees the prefix and itself, never another branch, and stands at the positions right
after the prefix; so its scores are those of the prompt that holds it alone, for the price of its own few tokens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .forms import in_triton
from .fuse import fused
from .gdn import gated_delta_branches, gated_delta_prefix
from .model import Attention, GatedDeltaNet, TextModel, _gated_norm, _gates, _norm, _norm_rotate, conv_silu
from .shape import Shape


def _example(s: Shape, generator: torch.Generator) -> list[Tensor]:
    channels = 3 * s.gdn_heads * s.gdn_dim
    sizes = (3, 24, channels), (3, s.conv - 1, channels), (channels, 1, s.conv)
    return [torch.randn(*size, generator=generator).bfloat16().requires_grad_() for size in sizes]


@in_triton("convolution", _example)
@fused
def conv_silu_after(x: Tensor, left: Tensor, weight: Tensor) -> Tensor:
    """``conv_silu`` of x [R, T, C] behind ``left`` [R, taps - 1, C]."""
    taps, length = weight.shape[-1], x.shape[1]
    joined = torch.cat((left, x), 1).float()
    total = joined[:, :length] * weight[:, 0, 0].float()
    for tap in range(1, taps):
        total = total + joined[:, tap : tap + length] * weight[:, 0, tap].float()
    return F.silu(total).to(x.dtype)


class Layout:
    """Prefix tokens [B · N] and branch tokens [B · Q · T] side by side in one row of tokens, so that everything that
    looks at one token at a time runs once over all of them.

    length [B] is the count of real prefix tokens, start [B] the position of the first branch token.
    """

    def __init__(self, text: TextModel, positions: Tensor, length: Tensor, start: Tensor, shape: tuple[int, ...]):
        self.batch, self.count, self.size = shape
        self.length, device = length, length.device
        self.prefix = positions.shape[-1]
        self.real = torch.arange(self.prefix, device=device) < length[:, None]
        steps = start[:, None, None] + torch.arange(self.size, device=device)
        steps = steps.expand(-1, self.count, -1).flatten(1)
        self.cos, self.sin = (
            torch.cat((a.flatten(0, 1), b.flatten(0, 1)))
            for a, b in zip(
                text.angles(positions.expand(3, self.batch, -1)), text.angles(steps.expand(3, -1, -1)), strict=True
            )
        )
        taps = text.shape.conv - 1
        self.tail = (length[:, None] - taps + torch.arange(taps, device=device)).clamp(min=0)
        branch = torch.arange(self.count, device=device).repeat_interleave(self.size)
        at = torch.arange(self.size, device=device).repeat(self.count)
        own = (branch[:, None] == branch) & (at[:, None] >= at)
        self.seen = torch.cat(
            (
                self.real[:, None].expand(-1, len(branch), -1),
                own.expand(self.batch, -1, -1),
            ),
            2,
        )[:, None]

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[tokens, …] -> prefix [B, N, …], branches [B, Q · T, …]."""
        cut = self.batch * self.prefix
        return x[:cut].view(self.batch, self.prefix, *x.shape[1:]), x[cut:].view(self.batch, -1, *x.shape[1:])

    @staticmethod
    def join(prefix: Tensor, branches: Tensor) -> Tensor:
        return torch.cat((prefix.flatten(0, 1), branches.flatten(0, 1)))


def _delta(layer: GatedDeltaNet, x: Tensor, at: Layout) -> Tensor:
    """x [tokens, hidden] -> [tokens, hidden]."""
    before, after = at.split(layer.in_proj_qkv(x))
    g, beta = _gates(layer.in_proj_a(x), layer.in_proj_b(x), layer.A_log, layer.dt_bias)
    (g, g_after), (beta, beta_after) = at.split(g), at.split(beta)
    g, beta = g * at.real[..., None], beta * at.real[..., None]
    tail = before.gather(1, at.tail[..., None].expand(-1, -1, before.shape[-1]))
    tail = tail[:, None].expand(-1, at.count, -1, -1).flatten(0, 1)
    mixed = conv_silu(before, layer.conv1d.weight)
    mixed_after = conv_silu_after(after.reshape(-1, at.size, after.shape[-1]), tail, layer.conv1d.weight)
    out, state = gated_delta_prefix(mixed.unflatten(-1, (3, -1, layer.dim)), g, beta)
    lead = (at.batch, at.count, at.size)
    g_after, beta_after = g_after.reshape(*lead, -1), beta_after.reshape(*lead, -1)
    out_after = gated_delta_branches(mixed_after.reshape(*lead, 3, -1, layer.dim), g_after, beta_after, state)
    out = at.join(out, out_after.flatten(1, 2))
    z = layer.in_proj_z(x).view(out.shape)
    return layer.out_proj(_gated_norm(out, z, layer.norm.weight, layer.eps).flatten(1))


def _keys(layer: Attention, x: Tensor, at: Layout) -> Tensor:
    k = layer.k_proj(x).view(len(x), layer.kv_heads, layer.dim)
    return _norm_rotate(k, layer.k_norm.weight, layer.eps, at.cos, at.sin)


def _queries(layer: Attention, x: Tensor, at: Layout) -> tuple[Tensor, Tensor]:
    q, gate = layer.q_proj(x).view(len(x), layer.heads, 2 * layer.dim).chunk(2, -1)
    return _norm_rotate(q, layer.q_norm.weight, layer.eps, at.cos, at.sin), gate


def _attention(layer: Attention, x: Tensor, at: Layout) -> Tensor:
    q, gate = _queries(layer, x, at)
    k, v = _keys(layer, x, at), layer.v_proj(x).view(len(x), layer.kv_heads, layer.dim)
    group = layer.heads // layer.kv_heads
    (q, q_after), (k, k_after), (v, v_after) = (
        (part.transpose(1, 2) for part in at.split(t))
        for t in (q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1))
    )
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    out_after = F.scaled_dot_product_attention(
        q_after, torch.cat((k, k_after), 2), torch.cat((v, v_after), 2), attn_mask=at.seen
    )
    out = at.join(out.transpose(1, 2), out_after.transpose(1, 2))
    return layer.o_proj((out * gate.sigmoid()).flatten(1))


def branch_scores(
    text: TextModel,
    prefix: Tensor,
    positions: Tensor,
    branches: Tensor,
    asked_at: Tensor,
    first: int,
    length: Tensor | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """Readout of every branch: float32 [B, Q, N - first] over the prefix's keys from ``first`` on.

    prefix [B, N, hidden] at positions [3, 1 or B, N]; branches [B, Q, T, hidden]; asked_at [B, Q] the token of each
    branch that asks. length [B]: real tokens of each prefix (default: all); start [B]: position of the first branch
    token (default: length). Scores are Σ over heads of q·k / (√d · key heads), as ``read_scores`` gives them; those of
    tokens behind ``length`` mean nothing.
    """
    batch, count, size, _ = branches.shape
    if length is None:
        length = torch.full((batch,), prefix.shape[1], device=prefix.device)
    at = Layout(text, positions, length, length if start is None else start, (batch, count, size))
    h = at.join(prefix, branches.flatten(1, 2))
    last = text.shape.read_layer
    for layer in text.layers[:last]:
        x = _norm(h, layer.input_layernorm.weight, layer.eps)
        h = h + (_attention(layer.self_attn, x, at) if layer.full else _delta(layer.linear_attn, x, at))
        h = h + layer.mlp(_norm(h, layer.post_attention_layernorm.weight, layer.eps))
    layer = text.layers[last]
    x = _norm(h, layer.input_layernorm.weight, layer.eps)
    k = at.split(_keys(layer.self_attn, x, at))[0][:, first:].float()
    q = at.split(_queries(layer.self_attn, x, at)[0])[1].unflatten(1, (count, size))
    heads, dim, groups = q.shape[3], q.shape[4], k.shape[2]
    q = q.gather(2, asked_at[:, :, None, None, None].expand(-1, -1, 1, heads, dim))[:, :, 0].float()
    q = q.view(batch, count, groups, heads // groups, dim).sum(3)
    return torch.einsum("bqgd,bngd->bqn", q, k) / (groups * dim**0.5)
