"""Weights of the network in the shapes the forward pass wants, read from a checkpoint.

Matrices that see the same input are joined, so that a layer is a handful of products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig

ReadTensor = Callable[[str, torch.dtype], Tensor]
"""(name, dtype) → the tensor on the engine's device."""


@dataclass(frozen=True)
class Linear:
    """x → x Wᵀ (+ b). ``weight`` is [out, in]."""

    weight: Tensor
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    @property
    def nbytes(self) -> int:
        return self.weight.nbytes + (self.bias.nbytes if self.bias is not None else 0)


@dataclass(frozen=True)
class MlpWeights:
    gate_up: Linear
    down: Linear


@dataclass(frozen=True)
class AttentionWeights:
    qkv: Linear
    """Per query head query ‖ gate, then keys, then values."""
    out: Linear
    q_norm: Tensor
    k_norm: Tensor


@dataclass(frozen=True)
class DeltaNetWeights:
    inputs: Linear
    """q ‖ k ‖ v ‖ z ‖ b ‖ a."""
    conv: Tensor
    """[width, channels] over q ‖ k ‖ v."""
    decay: Tensor
    """float32 [H]: −exp(A_log)."""
    dt_bias: Tensor
    norm: Tensor
    out: Linear


@dataclass(frozen=True)
class LayerWeights:
    input_norm: Tensor
    """float32, 1 + w, as every zero-centred norm here."""
    post_norm: Tensor
    mixer: AttentionWeights | DeltaNetWeights
    mlp: MlpWeights


@dataclass(frozen=True)
class TextWeights:
    embedding: Tensor
    layers: tuple[LayerWeights, ...]
    norm: Tensor
    head: Linear


@dataclass(frozen=True)
class VisionBlockWeights:
    norm1: tuple[Tensor, Tensor]
    qkv: Linear
    proj: Linear
    norm2: tuple[Tensor, Tensor]
    fc1: Linear
    fc2: Linear


@dataclass(frozen=True)
class VisionWeights:
    patch: Linear
    """Over one patch's pixels of all temporal taps, flattened channel-first."""
    positions: Tensor
    blocks: tuple[VisionBlockWeights, ...]
    merger_norm: tuple[Tensor, Tensor]
    merger_fc1: Linear
    merger_fc2: Linear


def read_text(config: ModelConfig, read: ReadTensor, dtype: torch.dtype) -> TextWeights:
    """All of the decoder's weights; ``read`` is called once for each tensor of the checkpoint."""
    base = "model.language_model."
    text = config.text

    def joined(*names: str) -> Linear:
        return Linear(torch.cat([read(name, dtype) for name in names]))

    def centred(name: str) -> Tensor:
        return 1.0 + read(name, torch.float32)

    layers = []
    for index, kind in enumerate(text.layer_types):
        layer = f"{base}layers.{index}."
        mixer: AttentionWeights | DeltaNetWeights
        if kind == "full_attention":
            at = layer + "self_attn."
            mixer = AttentionWeights(
                qkv=joined(at + "q_proj.weight", at + "k_proj.weight", at + "v_proj.weight"),
                out=Linear(read(at + "o_proj.weight", dtype)),
                q_norm=centred(at + "q_norm.weight"),
                k_norm=centred(at + "k_norm.weight"),
            )
        else:
            at = layer + "linear_attn."
            mixer = DeltaNetWeights(
                inputs=joined(*(f"{at}in_proj_{part}.weight" for part in ("qkv", "z", "b", "a"))),
                conv=read(at + "conv1d.weight", dtype)[:, 0].T.contiguous(),
                decay=-read(at + "A_log", torch.float32).exp(),
                dt_bias=read(at + "dt_bias", torch.float32),
                norm=read(at + "norm.weight", torch.float32),
                out=Linear(read(at + "out_proj.weight", dtype)),
            )
        mlp = MlpWeights(
            gate_up=joined(layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight"),
            down=Linear(read(layer + "mlp.down_proj.weight", dtype)),
        )
        layers.append(
            LayerWeights(
                centred(layer + "input_layernorm.weight"), centred(layer + "post_attention_layernorm.weight"), mixer, mlp
            )
        )
    embedding = read(base + "embed_tokens.weight", dtype)
    head = embedding if text.tied_embedding else read("lm_head.weight", dtype)
    return TextWeights(embedding, tuple(layers), centred(base + "norm.weight"), Linear(head))


def read_vision(config: ModelConfig, read: ReadTensor, dtype: torch.dtype) -> VisionWeights | None:
    """The vision tower's weights, or None for a model without one."""
    if config.vision is None:
        return None
    base = "model.visual."

    def linear(name: str) -> Linear:
        return Linear(read(name + ".weight", dtype), read(name + ".bias", dtype))

    def norm(name: str) -> tuple[Tensor, Tensor]:
        return read(name + ".weight", dtype), read(name + ".bias", dtype)

    patch = linear(base + "patch_embed.proj")
    return VisionWeights(
        patch=Linear(patch.weight.flatten(1), patch.bias),
        positions=read(base + "pos_embed.weight", torch.float32),
        blocks=tuple(
            VisionBlockWeights(
                norm1=norm(f"{base}blocks.{i}.norm1"),
                qkv=linear(f"{base}blocks.{i}.attn.qkv"),
                proj=linear(f"{base}blocks.{i}.attn.proj"),
                norm2=norm(f"{base}blocks.{i}.norm2"),
                fc1=linear(f"{base}blocks.{i}.mlp.linear_fc1"),
                fc2=linear(f"{base}blocks.{i}.mlp.linear_fc2"),
            )
            for i in range(config.vision.depth)
        ),
        merger_norm=norm(base + "merger.norm"),
        merger_fc1=linear(base + "merger.linear_fc1"),
        merger_fc2=linear(base + "merger.linear_fc2"),
    )
