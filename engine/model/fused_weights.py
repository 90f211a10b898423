"""The decoder's weights as the card's kernels take them: quantised as they are stored, in the kernels' order.

Matrices that see the same input are joined. Reading is overlapped with packing: while the card shuffles one matrix, the
next ones come out of their files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.checkpoint.formats import Format
from engine.checkpoint.layout import matrix_names
from engine.checkpoint.quantize import Fragments, Packed, PackedFP8, PackedNVFP4
from engine.config import ModelConfig, TextConfig
from engine.memory.arena import Take, each_its_own
from engine.model.matrix import DenseMatrix, FP8Matrix, Matrix, NVFP4Matrix, Scratch
from kernels.fused.gdn import GdnLayer
from kernels.fused.nvfp4_layout import empty_nvfp4, pack_rows, place_rows

_Part = PackedNVFP4 | Fragments
_FOUR_BITS = frozenset({"nvfp4", "fragments"})
_AHEAD = 4
"""Matrices that are read while one is packed."""


class PackedSource(Protocol):
    """Where weights come from, packed or not (``engine.checkpoint.reader.Checkpoint``)."""

    def shape(self, name: str) -> tuple[int, ...]: ...
    def format_of(self, name: str) -> Format: ...
    def packed(self, name: str) -> Packed: ...
    def fragments(self, name: str) -> Fragments: ...
    def copy_into(self, name: str, out: Tensor) -> None: ...


@dataclass(frozen=True)
class FusedAttention:
    qkv: Matrix
    """Per query head query ‖ gate, then keys, then values."""
    out: Matrix
    q_norm: Tensor
    k_norm: Tensor


@dataclass(frozen=True)
class FusedDeltaNet:
    inputs: Matrix
    """q ‖ k ‖ v ‖ z."""
    gates: DenseMatrix
    """b ‖ a: two values a head, too few for the others' format."""
    layer: GdnLayer
    out: Matrix


@dataclass(frozen=True)
class FusedLayer:
    input_norm: Tensor
    """float32, 1 + w, as every zero-centred norm here."""
    post_norm: Tensor
    mixer: FusedAttention | FusedDeltaNet
    gate_up: Matrix
    down: Matrix


@dataclass(frozen=True)
class FusedWeights:
    embedding: Tensor
    layers: tuple[FusedLayer, ...]
    norm: Tensor
    head: DenseMatrix | FP8Matrix
    scratch: Scratch

    @property
    def nbytes(self) -> int:
        """Of the matrices and the embedding."""
        tied = isinstance(self.head, DenseMatrix) and self.head.weight is self.embedding
        total = self.embedding.nbytes + (0 if tied else self.head.nbytes)
        for layer in self.layers:
            total += layer.gate_up.nbytes + layer.down.nbytes + layer.mixer.out.nbytes
            if isinstance(layer.mixer, FusedAttention):
                total += layer.mixer.qkv.nbytes
            else:
                total += layer.mixer.inputs.nbytes + layer.mixer.gates.nbytes
        return total


def read_fused(
    config: ModelConfig, source: PackedSource, device: torch.device, take: Take | None = None
) -> FusedWeights:
    """Read the decoder's weights into tensors that ``take`` gives on ``device``; None lets torch allocate them. Raises
    ``ValueError`` for a shape that the kernels do not serve."""
    with ThreadPoolExecutor(_AHEAD, thread_name_prefix="ignis-read") as pool:
        return _Reader(config.text, source, device, take or each_its_own(device), pool).read()


class _Reader:
    """Reads in the model's order; each matrix is asked for once."""

    def __init__(
        self, text: TextConfig, source: PackedSource, device: torch.device, take: Take, pool: ThreadPoolExecutor
    ) -> None:
        self._text = text
        self._source = source
        self._device = device
        self._take = take
        self._pool = pool
        self._scratch = Scratch(device)
        self._waiting = deque(matrix_names(text))
        self._coming: deque[tuple[tuple[str, ...], list[Future[_Part]] | None]] = deque()

    def read(self) -> FusedWeights:
        base = "model.language_model."
        layers = tuple(self._layer(f"{base}layers.{i}.", kind) for i, kind in enumerate(self._text.layer_types))
        embedding = self._plain(base + "embed_tokens.weight")
        head: DenseMatrix | FP8Matrix | None = DenseMatrix(embedding) if self._text.tied_embedding else None
        head = head or self._fp8("lm_head.weight") or DenseMatrix(self._plain("lm_head.weight"))
        return FusedWeights(embedding, layers, self._centred(base + "norm.weight"), head, self._scratch)

    def _layer(self, at: str, kind: str) -> FusedLayer:
        mixer = self._attention(at + "self_attn.") if kind == "full_attention" else self._deltanet(at + "linear_attn.")
        return FusedLayer(
            self._centred(at + "input_layernorm.weight"),
            self._centred(at + "post_attention_layernorm.weight"),
            mixer,
            self._matrix(),
            self._matrix(),
        )

    def _attention(self, at: str) -> FusedAttention:
        qkv, out = self._matrix(), self._matrix()
        return FusedAttention(qkv, out, self._centred(at + "q_norm.weight"), self._centred(at + "k_norm.weight"))

    def _deltanet(self, at: str) -> FusedDeltaNet:
        inputs, out = self._matrix(), self._matrix()
        layer = GdnLayer(
            conv=self._taps(at + "conv1d.weight"),
            decay=self._plain(at + "A_log", torch.float32).exp_().neg_(),
            dt_bias=self._plain(at + "dt_bias", torch.float32),
            norm=self._plain(at + "norm.weight", torch.float32),
            key_heads=self._text.gdn_key_heads,
            eps=self._text.rms_eps,
        )
        gates = DenseMatrix(self._joined([f"{at}in_proj_b.weight", f"{at}in_proj_a.weight"]))
        return FusedDeltaNet(inputs, gates, layer, out)

    def _matrix(self) -> Matrix:
        """The next matrix of :func:`matrix_names`."""
        while self._waiting and len(self._coming) < _AHEAD:
            names = self._waiting.popleft()
            formats = {self._source.format_of(name) for name in names}
            parts = [self._pool.submit(self._part, name) for name in names] if formats <= _FOUR_BITS else None
            self._coming.append((names, parts))
        names, parts = self._coming.popleft()
        if parts is not None:
            return self._nvfp4(names, parts)
        return (self._fp8(names[0]) if len(names) == 1 else None) or DenseMatrix(self._joined(names))

    def _part(self, name: str) -> _Part:
        """On a thread of the pool."""
        if self._source.format_of(name) == "fragments":
            return self._source.fragments(name)
        packed = self._source.packed(name)
        assert isinstance(packed, PackedNVFP4)
        return packed

    def _nvfp4(self, names: Sequence[str], parts: Sequence[Future[_Part]]) -> Matrix:
        shapes = [self._source.shape(name) for name in names]
        weight = empty_nvfp4(sum(shape[0] for shape in shapes), shapes[0][1], self._device, self._take)
        start, input_scales = 0, set[float | None]()
        for part in parts:
            read = part.result()
            input_scales.add(read.input_scale)
            if isinstance(read, Fragments):
                start = place_rows(weight, start, read.words, read.scales, read.scale, read.rows)
            else:
                codes, block_scale = read.codes.to(self._device), read.block_scale.to(self._device)
                start = pack_rows(weight, start, codes, block_scale, read.scale)
        # Parts see the same input, so they agree where they are calibrated.
        return NVFP4Matrix(weight, self._scratch, input_scales.pop() if len(input_scales) == 1 else None)

    def _fp8(self, name: str) -> FP8Matrix | None:
        """As it is stored, where it is FP8; else None."""
        if self._source.format_of(name) != "fp8":
            return None
        packed = self._source.packed(name)
        assert isinstance(packed, PackedFP8)
        scale = packed.scale.float()
        if packed.kind != "block":
            scale = scale.expand(packed.codes.shape[0]).contiguous()
        codes, scales = (self._take(part.shape, part.dtype).copy_(part) for part in (packed.codes, scale))
        return FP8Matrix(codes, scales)

    def _plain(self, name: str, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        out = self._take(self._source.shape(name), dtype)
        self._source.copy_into(name, out)
        return out

    def _taps(self, name: str) -> Tensor:
        """[W, C] of a convolution [C, 1, W]."""
        channels, _, width = self._source.shape(name)
        out = self._take((width, channels), torch.bfloat16)
        self._source.copy_into(name, out.T[:, None])
        return out

    def _joined(self, names: Sequence[str]) -> Tensor:
        shapes = [self._source.shape(name) for name in names]
        out = self._take((sum(s[0] for s in shapes), shapes[0][1]), torch.bfloat16)
        for name, part in zip(names, out.split([s[0] for s in shapes]), strict=True):
            self._source.copy_into(name, part)
        return out

    def _centred(self, name: str) -> Tensor:
        return self._plain(name, torch.float32).add_(1.0)
