"""Weights of the network in the shapes the forward pass wants, read from a checkpoint.

Matrices that see the same input are joined, so that a layer is a handful of products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.memory.arena import Take
from kernels.linear import linear


@dataclass(frozen=True)
class Linear:
    """x → x Wᵀ (+ b). ``weight`` is [out, in]."""

    weight: Tensor
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

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


class WeightSource(Protocol):
    """Where weights come from (``engine.checkpoint.reader.Checkpoint``)."""

    def shape(self, name: str) -> tuple[int, ...]: ...
    def copy_into(self, name: str, out: Tensor) -> None: ...


class _Reader:
    """Reads each tensor straight into its final buffer."""

    def __init__(self, source: WeightSource, take: Take, dtype: torch.dtype) -> None:
        self._source = source
        self._take = take
        self._dtype = dtype

    def __call__(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        out = self._take(self._source.shape(name), dtype or self._dtype)
        self._source.copy_into(name, out)
        return out

    def joined(self, *names: str) -> Linear:
        """Several matrices of one input as one, stacked by output."""
        shapes = [self._source.shape(name) for name in names]
        out = self._take((sum(s[0] for s in shapes), shapes[0][1]), self._dtype)
        for name, part in zip(names, out.split([s[0] for s in shapes]), strict=True):
            self._source.copy_into(name, part)
        return Linear(out)

    def taps(self, name: str) -> Tensor:
        """[W, C] of a convolution [C, 1, W]."""
        channels, _, width = self._source.shape(name)
        out = self._take((width, channels), self._dtype)
        self._source.copy_into(name, out.T[:, None])
        return out

    def linear(self, name: str) -> Linear:
        return Linear(self(name + ".weight"), self(name + ".bias"))

    def centred(self, name: str) -> Tensor:
        """A zero-centred norm's scale, 1 + w in float32."""
        return self(name, torch.float32).add_(1.0)

    def norm(self, name: str) -> tuple[Tensor, Tensor]:
        return self(name + ".weight"), self(name + ".bias")


def read_text(config: ModelConfig, source: WeightSource, take: Take, dtype: torch.dtype) -> TextWeights:
    """All of the decoder's weights in the compute type (norms and gates in float32), in tensors that ``take`` gives."""
    read = _Reader(source, take, dtype)
    base = "model.language_model."
    layers = []
    for index, kind in enumerate(config.text.layer_types):
        layer = f"{base}layers.{index}."
        mixer: AttentionWeights | DeltaNetWeights
        if kind == "full_attention":
            at = layer + "self_attn."
            mixer = AttentionWeights(
                qkv=read.joined(at + "q_proj.weight", at + "k_proj.weight", at + "v_proj.weight"),
                out=Linear(read(at + "o_proj.weight")),
                q_norm=read.centred(at + "q_norm.weight"),
                k_norm=read.centred(at + "k_norm.weight"),
            )
        else:
            at = layer + "linear_attn."
            mixer = DeltaNetWeights(
                inputs=read.joined(*(f"{at}in_proj_{part}.weight" for part in ("qkv", "z", "b", "a"))),
                conv=read.taps(at + "conv1d.weight"),
                decay=read(at + "A_log", torch.float32).exp_().neg_(),
                dt_bias=read(at + "dt_bias", torch.float32),
                norm=read(at + "norm.weight", torch.float32),
                out=Linear(read(at + "out_proj.weight")),
            )
        layers.append(
            LayerWeights(
                input_norm=read.centred(layer + "input_layernorm.weight"),
                post_norm=read.centred(layer + "post_attention_layernorm.weight"),
                mixer=mixer,
                mlp=MlpWeights(
                    gate_up=read.joined(layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight"),
                    down=Linear(read(layer + "mlp.down_proj.weight")),
                ),
            )
        )
    embedding = read(base + "embed_tokens.weight")
    head = embedding if config.text.tied_embedding else read("lm_head.weight")
    return TextWeights(embedding, tuple(layers), read.centred(base + "norm.weight"), Linear(head))


def read_vision(config: ModelConfig, source: WeightSource, take: Take, dtype: torch.dtype) -> VisionWeights | None:
    """The vision tower's weights, likewise, or None for a model without one."""
    if config.vision is None:
        return None
    read = _Reader(source, take, dtype)
    base = "model.visual."
    patch = read.linear(base + "patch_embed.proj")
    return VisionWeights(
        patch=Linear(patch.weight.flatten(1), patch.bias),
        positions=read(base + "pos_embed.weight", torch.float32),
        blocks=tuple(
            VisionBlockWeights(
                norm1=read.norm(f"{base}blocks.{i}.norm1"),
                qkv=read.linear(f"{base}blocks.{i}.attn.qkv"),
                proj=read.linear(f"{base}blocks.{i}.attn.proj"),
                norm2=read.norm(f"{base}blocks.{i}.norm2"),
                fc1=read.linear(f"{base}blocks.{i}.mlp.linear_fc1"),
                fc2=read.linear(f"{base}blocks.{i}.mlp.linear_fc2"),
            )
            for i in range(config.vision.depth)
        ),
        merger_norm=read.norm(base + "merger.norm"),
        merger_fc1=read.linear(base + "merger.linear_fc1"),
        merger_fc2=read.linear(base + "merger.linear_fc2"),
    )
