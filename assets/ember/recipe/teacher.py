"""SmolLM2-135M-Instruct, the text teacher: a Llama forward over the weights of its GGUF file."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

_NAMES = {
    "attn_norm": "norm1",
    "ffn_norm": "norm2",
    "attn_q": "q",
    "attn_k": "k",
    "attn_v": "v",
    "attn_output": "o",
    "ffn_gate": "gate",
    "ffn_up": "up",
    "ffn_down": "down",
}


class Teacher:
    """Frozen. ``heads`` query heads share ``kv_heads`` key/value heads; rotary over NeoX halves, base ``theta``."""

    def __init__(self, weights: dict[str, Tensor], heads: int, kv_heads: int, eps: float, theta: float) -> None:
        self.w, self.heads, self.kv_heads, self.eps, self.theta = weights, heads, kv_heads, eps, theta
        self.embedding = weights["embed"]
        self.dim = weights["0.q"].shape[0] // heads
        self.depth = 1 + max(int(name.split(".")[0]) for name in weights if name[0].isdigit())

    @classmethod
    def from_gguf(cls, path: Path, device: torch.device, dtype: torch.dtype) -> Teacher:
        """Dequantise a Llama-architecture GGUF (needs the ``gguf`` package). Its q and k rows are stored paired for
        llama.cpp's rotary order and are put back into halves here."""
        import gguf

        reader = gguf.GGUFReader(str(path))

        def field(name: str):
            return reader.fields[f"llama.{name}"].contents()

        heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
        weights: dict[str, Tensor] = {}
        for tensor in reader.tensors:
            x = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
            parts = tensor.name.split(".")
            if parts[0] == "blk":
                name = _NAMES[parts[2]]
                if name in "qk":
                    groups = heads if name == "q" else kv_heads
                    x = x.view(groups, -1, 2, x.shape[1]).transpose(1, 2).reshape(x.shape)
                weights[f"{parts[1]}.{name}"] = x.to(device, dtype)
            else:
                weights[{"token_embd": "embed", "output_norm": "norm"}[parts[0]]] = x.to(device, dtype)
        eps, theta = field("attention.layer_norm_rms_epsilon"), field("rope.freq_base")
        return cls(weights, heads, kv_heads, eps, theta)

    def angles(self, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
        half = self.dim // 2
        rate = self.theta ** -(torch.arange(half, device=device).float() / half)
        angle = torch.arange(length, device=device)[:, None] * rate
        angle = torch.cat((angle, angle), -1)
        return angle.cos(), angle.sin()

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.w[name], self.eps)

    def _turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    def _mlp(self, h: Tensor, i: int) -> Tensor:
        x = self._norm(h, f"{i}.norm2")
        return h + F.linear(
            F.silu(F.linear(x, self.w[f"{i}.gate"])) * F.linear(x, self.w[f"{i}.up"]), self.w[f"{i}.down"]
        )

    @torch.no_grad()
    def hidden(self, ids: Tensor, keep: frozenset[int] = frozenset()) -> tuple[Tensor, dict[int, Tensor]]:
        """ids [B, L] -> (normed last hidden state [B, L, hidden], outputs of the layers named in ``keep``)."""
        batch, length = ids.shape
        h = F.embedding(ids, self.embedding)
        cos, sin = (t.to(h.dtype)[:, None] for t in self.angles(length, ids.device))
        kept: dict[int, Tensor] = {}
        group = self.heads // self.kv_heads
        for i in range(self.depth):
            x = self._norm(h, f"{i}.norm1")
            q, k, v = (F.linear(x, self.w[f"{i}.{n}"]).view(batch, length, -1, self.dim) for n in "qkv")
            q, k = self._turn(q, cos, sin), self._turn(k, cos, sin)
            k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
            out = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)
            h = h + F.linear(out.transpose(1, 2).reshape(batch, length, -1), self.w[f"{i}.o"])
            h = self._mlp(h, i)
            if i in keep:
                kept[i] = h
        return self._norm(h, "norm"), kept

    @torch.no_grad()
    def step(self, tokens: Tensor, at: int, keys: Tensor, values: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """One decoding step: tokens [B] at position ``at`` -> logits [B, vocab]; keys and values
        [depth, B, kv_heads, L, dim] are filled at ``at``."""
        batch = tokens.shape[0]
        h = F.embedding(tokens, self.embedding)
        cos, sin = angles[0][at].to(h.dtype), angles[1][at].to(h.dtype)
        group = self.heads // self.kv_heads
        for i in range(self.depth):
            x = self._norm(h, f"{i}.norm1")
            q, k, v = (F.linear(x, self.w[f"{i}.{n}"]).view(batch, -1, self.dim) for n in "qkv")
            q = self._turn(q, cos, sin).view(batch, self.kv_heads, group, self.dim)
            keys[i, :, :, at], values[i, :, :, at] = self._turn(k, cos, sin), v
            p = (q @ keys[i, :, :, : at + 1].mT).float() * self.dim**-0.5
            out = p.softmax(-1).to(h.dtype) @ values[i, :, :, : at + 1]
            h = h + F.linear(out.reshape(batch, -1), self.w[f"{i}.o"])
            h = self._mlp(h, i)
        return F.linear(self._norm(h, "norm"), self.embedding)
