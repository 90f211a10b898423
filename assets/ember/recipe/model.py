"""A lean batched forward of the ``qwen3_5`` network with gradients, for training and evaluation.

Parameter names are Hugging Face's, so a state dict goes in and out of checkpoints unchanged. Sequences of a batch
start at position 0 and are padded at their end; causality keeps the padding from being seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .forms import in_triton
from .fuse import fused
from .gdn import gated_delta_rule
from .shape import Shape


@fused
def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMSNorm with a zero-centred weight: the scale is 1 + weight."""
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps) * (1 + weight.float())).to(x.dtype)


@fused
def _gated_norm(x: Tensor, gate: Tensor, weight: Tensor, eps: float) -> Tensor:
    y = x.float()
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps) * weight.float()
    return (y * F.silu(gate.float())).to(gate.dtype)


@fused
def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding over NeoX halves: x [B, L, H, D]; cos, sin [.., L, 1, D]."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return (x.float() * cos + turned.float() * sin).to(x.dtype)


@fused
def _norm_rotate(x: Tensor, weight: Tensor, eps: float, cos: Tensor, sin: Tensor) -> Tensor:
    y = x.float()
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps) * (1 + weight.float())
    half = x.shape[-1] // 2
    return (y * cos + torch.cat((-y[..., half:], y[..., :half]), -1) * sin).to(x.dtype)


def _example_conv(s: Shape, generator: torch.Generator) -> list[Tensor]:
    channels = 3 * s.gdn_heads * s.gdn_dim
    x, weight = (torch.randn(*size, generator=generator) for size in ((2, 70, channels), (channels, 1, s.conv)))
    return [t.bfloat16().requires_grad_() for t in (x, weight)]


@in_triton("convolution", _example_conv)
@fused
def conv_silu(x: Tensor, weight: Tensor) -> Tensor:
    """Causal depthwise convolution of width 4 over positions, then SiLU. x [B, L, C]; weight [C, 1, 4]."""
    length, taps = x.shape[1], weight.shape[-1]
    padded = F.pad(x, (0, 0, taps - 1, 0)).float()
    total = padded[:, :length] * weight[:, 0, 0].float()
    for tap in range(1, taps):
        total = total + padded[:, tap : tap + length] * weight[:, 0, tap].float()
    return F.silu(total).to(x.dtype)


@fused
def _gates(a: Tensor, b: Tensor, a_log: Tensor, dt_bias: Tensor) -> tuple[Tensor, Tensor]:
    g = -a_log.float().exp() * F.softplus(a.float() + dt_bias.float())
    return g, b.float().sigmoid()


@fused
def _swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(gate) * up


def _example_heads(s: Shape, generator: torch.Generator) -> list[Tensor]:
    """Two pictures of 70 patches."""
    dim = s.vision_hidden // s.vision_heads
    qkv = torch.randn(2, 70, 3, s.vision_heads, dim, generator=generator).bfloat16().requires_grad_()
    angle = torch.rand(70, 1, dim // 2, generator=generator).repeat(1, 1, 2) * 6
    return [qkv, angle.cos(), angle.sin()]


@in_triton("rotary", _example_heads)
def rotate_heads(qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q and k, rotated, and v of qkv [B, P, 3, H, D]; cos, sin [P, 1, D], their halves alike."""
    q, k, v = qkv.unbind(2)
    return _rotate(q, cos, sin), _rotate(k, cos, sin), v


class Scale(nn.Module):
    """Holds a norm's weight under its Hugging Face name."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))


class GatedDeltaNet(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        inner = s.gdn_heads * s.gdn_dim
        self.dim, self.eps = s.gdn_dim, s.eps
        self.in_proj_qkv = nn.Linear(s.hidden, 3 * inner, bias=False)
        self.in_proj_z = nn.Linear(s.hidden, inner, bias=False)
        self.in_proj_a = nn.Linear(s.hidden, s.gdn_heads, bias=False)
        self.in_proj_b = nn.Linear(s.hidden, s.gdn_heads, bias=False)
        self.conv1d = nn.Conv1d(3 * inner, 3 * inner, s.conv, groups=3 * inner, bias=False)
        self.A_log = nn.Parameter(torch.zeros(s.gdn_heads))
        self.dt_bias = nn.Parameter(torch.zeros(s.gdn_heads))
        self.norm = Scale(s.gdn_dim)
        self.out_proj = nn.Linear(inner, s.hidden, bias=False)

    def forward(self, x: Tensor, batch: int) -> Tensor:
        """x [tokens, hidden], the tokens of ``batch`` sequences one behind the other."""
        mixed = conv_silu(self.in_proj_qkv(x).unflatten(0, (batch, -1)), self.conv1d.weight)
        gates = _gates(self.in_proj_a(x), self.in_proj_b(x), self.A_log, self.dt_bias)
        g, beta = (t.unflatten(0, (batch, -1)) for t in gates)
        out = gated_delta_rule(mixed.unflatten(-1, (3, -1, self.dim)), g, beta).flatten(0, 1)
        z = self.in_proj_z(x).view(out.shape)
        return self.out_proj(_gated_norm(out, z, self.norm.weight, self.eps).flatten(1))


class Attention(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.dim, self.eps = s.heads, s.kv_heads, s.head_dim, s.eps
        self.q_proj = nn.Linear(s.hidden, 2 * s.heads * s.head_dim, bias=False)
        self.k_proj = nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
        self.v_proj = nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
        self.o_proj = nn.Linear(s.heads * s.head_dim, s.hidden, bias=False)
        self.q_norm, self.k_norm = Scale(s.head_dim), Scale(s.head_dim)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, batch: int, read: list | None = None) -> Tensor:
        """x [tokens, hidden], cos and sin [tokens, 1, D]. ``read``, when given, receives the rotated queries [B, L,
        heads, D] and keys [B, L, kv_heads, D]."""
        q, gate = self.q_proj(x).view(len(x), self.heads, 2 * self.dim).chunk(2, -1)
        q = _norm_rotate(q, self.q_norm.weight, self.eps, cos, sin)
        k = self.k_proj(x).view(len(x), self.kv_heads, self.dim)
        k = _norm_rotate(k, self.k_norm.weight, self.eps, cos, sin)
        v = self.v_proj(x).view(len(x), self.kv_heads, self.dim)
        q, k, v = (t.unflatten(0, (batch, -1)) for t in (q, k, v))
        if read is not None:
            read.extend((q, k))
        group = self.heads // self.kv_heads
        shared = (t.repeat_interleave(group, 2).transpose(1, 2) for t in (k, v))
        out = F.scaled_dot_product_attention(q.transpose(1, 2), *shared, is_causal=True).transpose(1, 2)
        return self.o_proj((out.flatten(0, 1) * gate.sigmoid()).flatten(1))


class SwiGLU(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden, s.mlp, bias=False)
        self.up_proj = nn.Linear(s.hidden, s.mlp, bias=False)
        self.down_proj = nn.Linear(s.mlp, s.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(_swiglu(self.gate_proj(x), self.up_proj(x)))


class Layer(nn.Module):
    def __init__(self, s: Shape, kind: str) -> None:
        super().__init__()
        self.eps = s.eps
        self.input_layernorm, self.post_attention_layernorm = Scale(s.hidden), Scale(s.hidden)
        if kind == "linear_attention":
            self.linear_attn = GatedDeltaNet(s)
        else:
            self.self_attn = Attention(s)
        self.full = kind != "linear_attention"
        self.mlp = SwiGLU(s)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor, batch: int, read: list | None = None) -> Tensor:
        x = _norm(h, self.input_layernorm.weight, self.eps)
        h = h + (self.self_attn(x, cos, sin, batch, read) if self.full else self.linear_attn(x, batch))
        return h + self.mlp(_norm(h, self.post_attention_layernorm.weight, self.eps))


@dataclass
class TextOutput:
    """``final`` [B, L, hidden] is None when the forward stopped below the last layer; ``q``/``k`` are the read
    layer's rotated queries [B, L, heads, D] and keys [B, L, kv_heads, D]; ``layers`` holds each layer's output when
    asked for."""

    final: Tensor | None
    q: Tensor | None
    k: Tensor | None
    layers: list[Tensor]


class TextModel(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.shape = s
        self.embed_tokens = nn.Embedding(s.vocab, s.hidden)
        self.layers = nn.ModuleList(Layer(s, kind) for kind in s.layer_types)
        self.norm = Scale(s.hidden)

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Interleaved multimodal rotary tables: positions [3, B, L] -> cos, sin [B, L, 1, head_dim], float32."""
        s = self.shape
        half = s.head_dim // 2
        rate = s.theta ** -(torch.arange(half, device=positions.device, dtype=torch.float32) / half)
        axis = torch.zeros(half, dtype=torch.long, device=positions.device)
        for a in (1, 2):
            axis[a : 3 * s.mrope[a] : 3] = a
        angle = positions.permute(1, 2, 0).float()[..., axis] * rate
        angle = torch.cat((angle, angle), -1)[:, :, None]
        return angle.cos(), angle.sin()

    def forward(
        self, embedded: Tensor, positions: Tensor | None = None, *, to_read: bool = False, keep_layers: bool = False
    ) -> TextOutput:
        """embedded [B, L, hidden]; positions [3, B, L], plain 0… when None. ``to_read`` stops at the read layer."""
        batch, length, _ = embedded.shape
        if positions is None:
            positions = torch.arange(length, device=embedded.device).expand(3, batch, -1)
        cos, sin = (angle.flatten(0, 1) for angle in self.angles(positions))
        h, read, outputs = embedded.flatten(0, 1), [], []  # tokens alone, so that nothing is compiled for each rank
        last = self.shape.read_layer
        for index, layer in enumerate(self.layers[: last + 1] if to_read else self.layers):
            h = layer(h, cos, sin, batch, read if index == last else None)
            if keep_layers:
                outputs.append(h.view(embedded.shape))
        final = None if to_read else _norm(h, self.norm.weight, self.shape.eps).view(embedded.shape)
        return TextOutput(final, *(read or (None, None)), outputs)


class VisionAttention(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.heads = s.vision_heads
        self.qkv = nn.Linear(s.vision_hidden, 3 * s.vision_hidden)
        self.proj = nn.Linear(s.vision_hidden, s.vision_hidden)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, patches, width = x.shape
        heads = rotate_heads(self.qkv(x).view(batch, patches, 3, self.heads, -1), cos, sin)
        out = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in heads)).transpose(1, 2)
        return self.proj(out.reshape(batch, patches, width))


class VisionMLP(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(s.vision_hidden, s.vision_mlp)
        self.linear_fc2 = nn.Linear(s.vision_mlp, s.vision_hidden)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_fc2(F.gelu(self.linear_fc1(x), approximate="tanh"))


class VisionBlock(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(s.vision_hidden, eps=1e-6)
        self.norm2 = nn.LayerNorm(s.vision_hidden, eps=1e-6)
        self.attn, self.mlp = VisionAttention(s), VisionMLP(s)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        size = (2, s.patch, s.patch)
        self.proj = nn.Conv3d(3, s.vision_hidden, size, stride=size)

    def forward(self, patches: Tensor) -> Tensor:
        """patches [B, N, 3·patch²]: a still picture fills both frames, so the two temporal taps add up."""
        weight = self.proj.weight.sum(2).flatten(1)
        return F.linear(patches, weight, self.proj.bias)


class PatchMerger(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.wide = s.vision_hidden * s.merge**2
        self.norm = nn.LayerNorm(s.vision_hidden, eps=1e-6)
        self.linear_fc1 = nn.Linear(self.wide, self.wide)
        self.linear_fc2 = nn.Linear(self.wide, s.hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x).reshape(x.shape[0], -1, self.wide)
        return self.linear_fc2(F.gelu(self.linear_fc1(x)))


class VisionModel(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.shape = s
        self.patch_embed = PatchEmbed(s)
        self.pos_embed = nn.Embedding(s.position_side**2, s.vision_hidden)
        self.blocks = nn.ModuleList(VisionBlock(s) for _ in range(s.vision_depth))
        self.merger = PatchMerger(s)

    def forward(self, images: Tensor) -> Tensor:
        """images uint8 [B, H, W, 3], sides multiples of 32 -> tokens [B, H/32 · W/32, text hidden] in raster order."""
        s = self.shape
        batch, height, width, _ = images.shape
        rows, columns = height // s.patch, width // s.patch
        dtype = self.pos_embed.weight.dtype
        x = (images.permute(0, 3, 1, 2).float() / 127.5 - 1).to(dtype)
        x = x.view(batch, 3, rows // s.merge, s.merge, s.patch, columns // s.merge, s.merge, s.patch)
        x = x.permute(0, 2, 5, 3, 6, 1, 4, 7).reshape(batch, rows * columns, -1)
        index, weight, cos, sin = _grid(s, rows, columns, images.device)
        h = self.patch_embed(x) + (self.pos_embed(index).float() * weight[..., None]).sum(1).to(dtype)
        for block in self.blocks:
            h = block(h, cos, sin)
        return self.merger(h)


@lru_cache(maxsize=64)
def _grid(s: Shape, rows: int, columns: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For each patch, in merge-block order: the four taps into the learned position table (align-corners bilinear)
    and their weights [N, 4]; the axial rotary tables cos, sin [N, 1, head dim]."""
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    blocks = (rows // s.merge, s.merge, columns // s.merge, s.merge)
    y, x = (t.reshape(blocks).transpose(1, 2).flatten() for t in (y, x))
    taps = []
    for index, size in ((y, rows), (x, columns)):
        source = index.float() * (s.position_side - 1) / max(1, size - 1)
        low = source.floor().long()
        high = (low + 1).clamp(max=s.position_side - 1)
        taps.append(((low, 1 - (source - low)), (high, source - low)))
    index = torch.stack([ty * s.position_side + tx for ty, _ in taps[0] for tx, _ in taps[1]], 1)
    weight = torch.stack([wy * wx for _, wy in taps[0] for _, wx in taps[1]], 1)
    half = s.vision_hidden // s.vision_heads // 2
    rate = 10000.0 ** -(torch.arange(0, half, 2).float() / half)
    angle = torch.cat((y[:, None] * rate, x[:, None] * rate), -1)
    angle = torch.cat((angle, angle), -1)[:, None]
    return index.to(device), weight.to(device), angle.cos().to(device), angle.sin().to(device)


class Backbone(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.visual = VisionModel(s)
        self.language_model = TextModel(s)


class Ember(nn.Module):
    """The whole network; ``state_dict()`` has exactly the checkpoint's names (the output head is the embedding)."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.shape = s
        self.model = Backbone(s)

    @property
    def text(self) -> TextModel:
        return self.model.language_model

    @property
    def vision(self) -> VisionModel:
        return self.model.visual

    def embed(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.text.embed_tokens.weight)


def image_positions(before: int, rows: int, columns: int, after: int, device: torch.device) -> Tensor:
    """mRoPE positions [3, L] of ``before`` text tokens, an image of rows × columns tokens, ``after`` text tokens."""
    lead = torch.arange(before, device=device).expand(3, -1)
    y, x = torch.meshgrid(torch.arange(rows, device=device), torch.arange(columns, device=device), indexing="ij")
    picture = torch.stack((torch.zeros_like(y), y, x)).flatten(1) + before
    tail = torch.arange(after, device=device).expand(3, -1) + before + max(rows, columns)
    return torch.cat((lead, picture, tail), 1)


def read_scores(out: TextOutput, queries: Tensor, start: int, end: int) -> Tensor:
    """Readout: Σ over all heads of q·k / (√d · key heads) at each query position over the keys ``[start, end)``.

    queries [B, Q] positions -> float32 [B, Q, end - start]. For Ember the divisor is 8 · 3 = 24. Query heads that
    share a key head are added up first: (Σ q)·k is Σ (q·k)."""
    assert out.q is not None
    assert out.k is not None
    batch, _, heads, dim = out.q.shape
    groups = out.k.shape[2]
    q = out.q.gather(1, queries[:, :, None, None].expand(-1, -1, heads, dim)).float()
    q = q.view(batch, -1, groups, heads // groups, dim).sum(3)
    scale = groups * dim**0.5
    return torch.einsum("bqgd,bngd->bqn", q, out.k[:, start:end].float()) / scale
