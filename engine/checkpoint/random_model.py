"""A checkpoint of random weights in a real geometry: to measure loading and speed, which do not depend on values.

It is complete (tokenizer, chat template and the prompts of its head lists are Ember's), so that the whole server runs
on it; what it says means nothing. Weights are scaled so that activations neither vanish nor overflow through any number
of layers.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoint.catalogue import BUNDLED
from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.formats import Format
from engine.checkpoint.geometries import Geometry
from engine.checkpoint.json_file import read_json
from engine.checkpoint.layout import HEAD, expected_tensors
from engine.checkpoint.quantize import BLOCK, Fragments, Packed, PackedFP8, PackedNVFP4, dequantize
from engine.checkpoint.write import NVFP4Layout, Weight, write_checkpoint
from engine.config import ModelConfig

SHARD = 2 << 30
_BESIDE = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
_HEADS, _HEADS_A_LAYER = "heads.json", 6
_UNSPOKEN = 2.0**-10
"""Times the head's scale where no token is: such rows are never the likeliest in a trained model either, and without
text a stream would have nothing to send."""
_IDS = ("image_token_id", "vision_start_token_id", "vision_end_token_id")
_NIBBLE_RMS = math.sqrt(68.5 / 8)  # of E2M1's values, each as likely
_E4M3_RMS = torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn).double().square().mean().sqrt().item()
_SCALE_CODES = range(0x28, 0x38)
"""E4M3 codes of block scales: two octaves up to 1."""
_SCALE_RMS = math.sqrt(sum(((8 + c % 8) / 8 * 2.0 ** (c // 8 - 7)) ** 2 for c in _SCALE_CODES) / len(_SCALE_CODES))


def write_random(
    geometry: Geometry,
    folder: Path,
    *,
    layout: NVFP4Layout = "modelopt",
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write the checkpoint into ``folder``, which must not hold one.

    Args:
        layout: of the text matrices, all NVFP4; the head is FP8 by row, the rest BF16, as publishers do.
        on_progress: (bytes written, bytes in all), file by file.

    Raises:
        CheckpointError: the folder holds a checkpoint already.
    """
    if folder.exists() and any(folder.glob("*.safetensors")):
        raise CheckpointError(f"{folder} holds a checkpoint already: name an empty folder.")
    raw = {**geometry.raw, "ignis_name": f"{geometry.name}, random weights"}
    ember = read_json(BUNDLED / "config.json")
    raw.update({key: ember[key] for key in _IDS})
    config = ModelConfig.from_dict(raw)
    weights = RandomWeights(config, seed, spoken=_ember_tokens())
    total = weights.nbytes
    write_checkpoint(
        folder,
        raw,
        ((name, _on_cpu(weights.weight(name))) for name in weights.names()),
        layout=layout,
        shard_bytes=SHARD,
        on_shard=None if on_progress is None else lambda done: on_progress(min(done, total), total),
    )
    for name in _BESIDE:
        shutil.copyfile(BUNDLED / name, folder / name)
    pictures: dict[str, Any] = read_json(BUNDLED / "preprocessor_config.json")
    pictures["size"] = {**pictures["size"], "longest_edge": geometry.max_pixels}
    for name, value in (("preprocessor_config.json", pictures), (_HEADS, _heads(config))):
        (folder / name).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def _heads(config: ModelConfig) -> dict[str, Any]:
    """Ember's readouts over heads of every layer that has any, as published lists spread them."""
    lists: dict[str, Any] = read_json(BUNDLED / _HEADS)
    text, vision = config.text, config.vision
    each = range(min(_HEADS_A_LAYER, text.num_heads))
    heads = [[layer, head] for layer in text.full_layers for head in each]
    readouts = {}
    for name, readout in lists["readouts"].items():
        if readout["over"] == "image" and vision is None:
            continue
        readouts[name] = {**readout, "heads": heads, "scale": 1.0 / len(heads)}
        if readout["over"] == "image" and vision is not None:
            readouts[name]["cell"] = vision.cell
    return {**lists, "model": "random weights", "weights": None, "source": "any heads", "readouts": readouts}


def _ember_tokens() -> int:
    """Ids below this may be tokens of Ember's tokenizer."""
    description = read_json(BUNDLED / "tokenizer.json")
    added = [int(token["id"]) for token in description["added_tokens"]]
    vocabulary: dict[str, int] = description["model"]["vocab"]
    return max([*vocabulary.values(), *added]) + 1


class RandomWeights:
    """The weights of such a checkpoint, drawn when they are asked for, where they are wanted: what
    ``engine.checkpoint.reader.Checkpoint`` is to a loader, without files. The same seed and device draw the same
    weight for a name, whatever was asked for before."""

    def __init__(
        self, config: ModelConfig, seed: int = 0, device: torch.device | None = None, *, spoken: int | None = None
    ) -> None:
        """``spoken``: rows of the output head that stand for tokens; None is all of them."""
        self._config = config
        self._spoken = spoken
        self._shapes = expected_tensors(config)
        self._seeds = {name: seed * len(self._shapes) + number for number, name in enumerate(self._shapes)}
        self._device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def nbytes(self) -> int:
        return sum(self._nbytes(name) for name in self._shapes)

    def names(self) -> list[str]:
        return list(self._shapes)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def format_of(self, name: str) -> Format:
        shape = self._shapes[name]
        if name == HEAD:
            return "fp8"
        small = name.endswith(("in_proj_b.weight", "in_proj_a.weight", "embed_tokens.weight"))
        matrix = len(shape) == 2 and "visual" not in name and not small
        return "nvfp4" if matrix and shape[1] % BLOCK == 0 else "bf16"

    def weight(self, name: str) -> Tensor | Packed:
        """As it is stored."""
        generator = torch.Generator(device=self._device).manual_seed(self._seeds[name])
        weight = _weight(name, self._shapes[name], self.format_of(name), generator)
        if isinstance(weight, PackedFP8) and self._spoken is not None:  # the head
            weight.scale[self._spoken :] *= _UNSPOKEN
        return weight

    def packed(self, name: str) -> Packed:
        """The parts of a weight that is not stored plain."""
        weight = self.weight(name)
        if isinstance(weight, Tensor):
            raise ValueError(f"{name} is stored as bf16, not packed")
        return weight

    def fragments(self, name: str) -> Fragments:
        raise ValueError(f"{name} is not stored in fragments")

    def copy_into(self, name: str, out: Tensor) -> None:
        """One weight, dequantised."""
        weight = self.weight(name)
        out.copy_(weight if isinstance(weight, Tensor) else dequantize(weight))

    def _nbytes(self, name: str) -> int:
        shape = self._shapes[name]
        count = math.prod(shape)
        each = {"nvfp4": count // 2 + count // BLOCK, "fp8": count + 4 * shape[0]}
        return each.get(self.format_of(name), 2 * count)


def _weight(name: str, shape: tuple[int, ...], kind: str, generator: torch.Generator) -> Tensor | Packed:
    if kind == "nvfp4":
        rows, columns = shape
        codes = _integers((rows, columns // 2), 0, 256, generator)
        scales = _integers((rows, columns // BLOCK), _SCALE_CODES.start, _SCALE_CODES.stop, generator)
        scale = torch.tensor(1.0 / (_NIBBLE_RMS * _SCALE_RMS * math.sqrt(columns)), device=codes.device)
        return PackedNVFP4(codes, scales.view(torch.float8_e4m3fn), scale)
    if kind == "fp8":
        codes = _integers(shape, 0, 127, generator) | _integers(shape, 0, 2, generator) << 7
        scale = torch.full((shape[0],), 1.0 / (_E4M3_RMS * math.sqrt(shape[1])), device=codes.device)
        return PackedFP8(codes.view(torch.float8_e4m3fn), scale, "row")
    return _plain(name, shape, generator)


def _plain(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """BF16 (norms and gates near what training leaves: small around 0, or 1 where a norm is not centred)."""
    if name.endswith("A_log"):
        return _uniform(shape, 0.0, 2.0, generator)
    if name.endswith("dt_bias"):
        return _uniform(shape, -4.0, 0.0, generator)
    if "norm" in name and name.endswith("weight"):
        centre = 1.0 if "visual" in name or name.endswith("linear_attn.norm.weight") else 0.0
        return _uniform(shape, centre - 0.1, centre + 0.1, generator)
    fan_in = math.prod(shape[1:]) if len(shape) > 1 else 0
    spread = 1.0 if name.endswith("embed_tokens.weight") else math.sqrt(3.0 / fan_in) if fan_in else 0.02
    return _uniform(shape, -spread, spread, generator)


def _integers(shape: tuple[int, ...], low: int, high: int, generator: torch.Generator) -> Tensor:
    """uint8."""
    out = torch.empty(shape, dtype=torch.uint8, device=generator.device)
    return out.random_(low, high, generator=generator)


def _uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> Tensor:
    """bfloat16, drawn a part at a time."""
    out = torch.empty(shape, dtype=torch.bfloat16, device=generator.device)
    for part in out.view(-1).split(1 << 24):
        part.copy_(torch.empty(part.shape, device=generator.device).uniform_(low, high, generator=generator))
    return out


def _on_cpu(weight: Tensor | Packed) -> Weight:
    if isinstance(weight, Tensor):
        return weight.cpu()
    if isinstance(weight, PackedNVFP4):
        return PackedNVFP4(weight.codes.cpu(), weight.block_scale.cpu(), weight.scale.cpu(), weight.input_scale)
    return replace(weight, codes=weight.codes.cpu(), scale=weight.scale.cpu())
