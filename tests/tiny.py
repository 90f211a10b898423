"""A checkpoint folder with a random model so small that a round takes a millisecond or two.

Everything around the weights is real: Ember's tokenizer with its first merges, its chat template, head lists, a vision
tower, the files a published checkpoint has. What such a model writes is noise, but always the same noise.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoint.layout import expected_tensors
from engine.checkpoint.write import write_checkpoint
from engine.config import ModelConfig

EMBER = Path(__file__).resolve().parents[1] / "assets" / "ember"
CONTEXT = 512
MERGES = 400
CELL = 8
"""Pixels a side of an image token."""
HEADS = ((3, 0), (3, 1), (3, 2), (3, 3))
"""Read at layer 3, so that a readout skips the last layer."""


def write_tiny(folder: Path, *, context: int = CONTEXT, vision: bool = True, seed: int = 0, gdn_dim: int = 8) -> Path:
    """Write the checkpoint into ``folder`` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    specials = _write_tokenizer(folder)
    raw = _config(len(specials) + _vocabulary_size(folder), context, specials, vision, gdn_dim)
    shapes = expected_tensors(ModelConfig.from_dict(raw))
    generator = torch.Generator().manual_seed(seed)
    write_checkpoint(folder, raw, {name: _weight(name, shape, generator) for name, shape in shapes.items()})
    shutil.copy(EMBER / "chat_template.jinja", folder)
    _write(folder / "generation_config.json", {"eos_token_id": specials["<|im_end|>"], "temperature": 0.8, "top_k": 40})
    _write(folder / "preprocessor_config.json", {"min_pixels": 16 * CELL**2, "max_pixels": 64 * CELL**2})
    _write(folder / "heads.json", _heads(vision))
    return folder


def _write_tokenizer(folder: Path) -> dict[str, int]:
    """Ember's tokenizer with its first merges only; the added tokens stand last. Returns their ids."""
    description = json.loads((EMBER / "tokenizer.json").read_text(encoding="utf-8"))
    model = description["model"]
    merges = model["merges"][:MERGES]
    joined = {"".join(merge if isinstance(merge, list) else merge.split(" ")) for merge in merges}
    kept = sorted((t for t in model["vocab"] if len(t) == 1 or t in joined), key=model["vocab"].__getitem__)
    added = description["added_tokens"]
    specials = {token["content"]: len(kept) + number for number, token in enumerate(added)}
    description["added_tokens"] = [{**token, "id": specials[token["content"]]} for token in added]
    vocab = {token: number for number, token in enumerate(kept)}
    if model.get("unk_token"):
        vocab[model["unk_token"]] = specials[model["unk_token"]]
    description["model"] = {**model, "vocab": vocab, "merges": merges}
    _write(folder / "tokenizer.json", description)
    _write(folder / "tokenizer_config.json", {"eos_token": "<|im_end|>"})
    return specials


def _vocabulary_size(folder: Path) -> int:
    description = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    added = {token["content"] for token in description["added_tokens"]}
    return len(description["model"]["vocab"].keys() - added)


def _config(vocabulary: int, context: int, specials: dict[str, int], vision: bool, gdn_dim: int) -> dict[str, Any]:
    text = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 5,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"] * 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": gdn_dim,
        "linear_value_head_dim": gdn_dim,
        "linear_conv_kernel_dim": 4,
        "max_position_embeddings": context,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 1.0,
            "mrope_section": [4, 2, 2],
        },
    }
    raw = {
        "model_type": "qwen3_5",
        "ignis_name": "Tiny",
        "tie_word_embeddings": True,
        "text_config": text,
        "image_token_id": specials["<|image_pad|>"],
        "vision_start_token_id": specials["<|vision_start|>"],
        "vision_end_token_id": specials["<|vision_end|>"],
    }
    if vision:
        raw["vision_config"] = {
            "depth": 2,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_heads": 2,
            "out_hidden_size": 32,
            "patch_size": CELL // 2,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "in_channels": 3,
            "num_position_embeddings": 25,
        }
    return raw


def _weight(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Values under which state, attention and pictures all change what is written."""
    noise = torch.randn(shape, generator=generator)
    if name.endswith("dt_bias"):
        return noise - 2.0
    if len(shape) == 1:
        centre = name.endswith(("linear_attn.norm.weight", "norm1.weight", "norm2.weight", "merger.norm.weight"))
        return float(centre) + 0.3 * noise
    return noise if "embed" in name else noise / noise[0].numel() ** 0.5


def _heads(vision: bool) -> dict[str, Any]:
    turn = ["<|im_start|>", "user\n"]
    common = {"heads": [list(head) for head in HEADS], "scale": 0.5, "combine": "sum"}
    readouts = {
        "line": {
            "over": "lines",
            "prompt": [*turn, "{lines}", "\n", "{query}", "<|line|>"],
            "decode": "segment_mass",
            **common,
        }
    }
    if vision:
        readouts["point"] = {
            "over": "image",
            "prompt": [*turn, "<|vision_start|>", "{image}", "<|vision_end|>", "\n", "{query}", "<|point|>"],
            "decode": "peak_3x3",
            "cell": CELL,
            **common,
        }
    return {"format": 1, "model": "Tiny", "weights": None, "source": "random", "readouts": readouts}


def _write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
