"""Pack a trained Ember into the files that ship: python -m assets.ember.pack CHECKPOINT.safetensors

CHECKPOINT is a BF16 file under Hugging Face names or an int8 one of the recipe. Written beside this file:
model.safetensors, config.json (reduced to what matters, with the formats) and the content hash in heads.json, which
ties the head lists to these very weights. Text projections become NVFP4, rounded with their inputs in mind, or to the
nearest values with ``--nearest`` (for weights that were trained while so rounded); embedding and vision matrices become
INT8 with a scale a row; norms, gates, convolutions and biases stay BF16.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from assets.ember.calibration import second_moments
from assets.ember.recipe.checkpoint import load_int8
from assets.ember.recipe.model import Ember
from assets.ember.recipe.shape import Shape, Words
from assets.ember.rounding import quantize_nvfp4_for_inputs
from engine.checkpoint.layout import expected_tensors
from engine.checkpoint.quantize import quantize_int8, quantize_nvfp4
from engine.checkpoint.reader import open_checkpoint
from engine.checkpoint.write import Weight, write_checkpoint
from engine.config import ModelConfig

HERE = Path(__file__).resolve().parent

NVFP4 = re.compile(
    r".*\.layers\.\d+\.(mlp\.\w+|self_attn\.\w+_proj|linear_attn\.(in_proj_qkv|in_proj_z|out_proj))|.*\.merger\.linear_fc1"
)
INT8 = re.compile(
    r".*\.(embed_tokens|pos_embed|patch_embed\.proj|attn\.qkv|attn\.proj|mlp\.linear_fc[12]|merger\.linear_fc2)"
)
"""Modules by format; these are the targets in config.json too."""

_KEPT = {
    "": "image_token_id video_token_id vision_start_token_id vision_end_token_id tie_word_embeddings",
    "text_config": "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads "
    "head_dim hidden_act max_position_embeddings rms_norm_eps rope_parameters attention_bias linear_conv_kernel_dim "
    "linear_key_head_dim linear_value_head_dim linear_num_key_heads linear_num_value_heads layer_types pad_token_id "
    "bos_token_id eos_token_id tie_word_embeddings model_type",
    "vision_config": "depth hidden_size hidden_act intermediate_size num_heads in_channels patch_size "
    "spatial_merge_size temporal_patch_size out_hidden_size num_position_embeddings rope_parameters model_type",
}
"""Keys of config.json that ship; the others are transformers' own defaults and bookkeeping."""


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--config", type=Path, default=HERE / "config.json", help="config.json of the checkpoint")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write")
    parser.add_argument("--nearest", action="store_true", help="round to the nearest values; no calibration")
    args = parser.parse_args(argv)
    pack(read_state(args.checkpoint), args.config, args.out, nearest=args.nearest)
    with open_checkpoint(args.out) as packed:
        heads = args.out / "heads.json"
        if heads.is_file():
            set_weights(heads, packed.content_hash())
        formats = ", ".join(f"{count} {name}" for name, count in packed.formats().items())
        print(f"{args.out}: {packed.nbytes / 1e6:.1f} MB of weights ({formats}), hash {packed.content_hash()[:16]}")


def read_state(file: Path) -> dict[str, Tensor]:
    """A checkpoint's weights in float32 under Hugging Face names, without a tied output head."""
    state = load_file(file)
    state = load_int8(file) if any(name.endswith(".q8") for name in state) else state
    return {name: tensor.float() for name, tensor in state.items() if name != "lm_head.weight"}


def pack(state: dict[str, Tensor], config_file: Path, folder: Path, *, nearest: bool = False) -> None:
    """Quantise every weight by its kind and write the checkpoint."""
    config = json.loads(config_file.read_text(encoding="utf-8"))
    moments: dict[str, Tensor] | None = None
    if not nearest:
        model = Ember(Shape.from_config(config_file)).eval()
        model.load_state_dict(state)
        moments = second_moments(model, Words(HERE / "tokenizer.json"))
    names = expected_tensors(ModelConfig.from_dict(config))
    write_checkpoint(folder, shipped_config(config), {name: pack_weight(name, state[name], moments) for name in names})


def pack_weight(name: str, weight: Tensor, moments: dict[str, Tensor] | None) -> Weight:
    module = name.removesuffix(".weight")
    if NVFP4.fullmatch(module):
        return quantize_nvfp4(weight) if moments is None else quantize_nvfp4_for_inputs(weight, moments[module])
    if INT8.fullmatch(module):
        return quantize_int8(weight)
    return weight.to(torch.bfloat16)


def shipped_config(config: dict[str, Any]) -> dict[str, Any]:
    """config.json reduced to what describes the network, with the formats as compressed-tensors names them."""

    def kept(section: dict[str, Any], keys: str) -> dict[str, Any]:
        return {key: section[key] for key in keys.split() if key in section}

    def group(kind: str, pattern: re.Pattern[str], **weights: Any) -> dict[str, Any]:
        return {"format": kind, "targets": [f"re:({pattern.pattern})$"], "weights": {"symmetric": True, **weights}}

    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "ignis_name": "Ember",
        "dtype": "bfloat16",
        **kept(config, _KEPT[""]),
        "text_config": kept(config["text_config"], _KEPT["text_config"]),
        "vision_config": kept(config["vision_config"], _KEPT["vision_config"]),
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "format": "mixed-precision",
            "config_groups": {
                "text": group(
                    "nvfp4-pack-quantized", NVFP4, type="float", num_bits=4, strategy="tensor_group", group_size=16
                ),
                "embedding_and_vision": group("int-quantized", INT8, type="int", num_bits=8, strategy="channel"),
            },
        },
    }


def set_weights(file: Path, content_hash: str) -> None:
    """Tie a head list to weights by their hash, leaving the rest of the file as it is written."""
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r'"weights": (null|"\w*")', f'"weights": "{content_hash}"', text), encoding="utf-8")


if __name__ == "__main__":
    main()
