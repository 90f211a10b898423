"""Names and shapes of every tensor of a ``qwen3_5`` model, as Hugging Face's transformers names them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.config import ModelConfig, TextConfig, VisionConfig

Shape = tuple[int, ...]

TEXT_PREFIX = "model.language_model."
HEAD = "lm_head.weight"

_IGNORED = re.compile(
    r"^(model\.)?mtp\."  # multi-token prediction layers: published, not needed
    r"|(^|\.)(input_scale|input_global_scale|k_scale|v_scale|q_scale)$"  # activation scales of the publisher's runtime
    r"|\.rotary_emb\.inv_freq$"  # computed, not learned
)


def expected_tensors(config: ModelConfig) -> dict[str, Shape]:
    """Name → shape of every tensor the model needs, in file order; shapes are of the unquantised weights.

    ``lm_head.weight`` is absent when the embedding is tied; the vision tower is absent without ``config.vision``.
    """
    shapes: dict[str, Shape] = {}
    if config.vision is not None:
        shapes.update(_vision(config.vision))
    shapes.update(_text(config.text))
    if not config.text.tied_embedding:
        shapes[HEAD] = (config.text.vocab_size, config.text.hidden_size)
    return shapes


def matrix_names(text: TextConfig) -> Iterator[tuple[str, ...]]:
    """The names of each matrix that a card multiplies with, layer by layer: those that see the same input are one."""
    for index, kind in enumerate(text.layer_types):
        layer = f"{TEXT_PREFIX}layers.{index}."
        if kind == "full_attention":
            yield tuple(f"{layer}self_attn.{part}_proj.weight" for part in "qkv")
            yield (f"{layer}self_attn.o_proj.weight",)
        else:
            yield f"{layer}linear_attn.in_proj_qkv.weight", f"{layer}linear_attn.in_proj_z.weight"
            yield (f"{layer}linear_attn.out_proj.weight",)
        yield f"{layer}mlp.gate_proj.weight", f"{layer}mlp.up_proj.weight"
        yield (f"{layer}mlp.down_proj.weight",)


def is_ignored(name: str, config: ModelConfig) -> bool:
    """Whether a tensor that the model does not need is a normal sight in published checkpoints."""
    if _IGNORED.search(name):
        return True
    if config.vision is None and name.startswith("model.visual."):
        return True
    return config.text.tied_embedding and name.startswith("lm_head.")


def _text(config: TextConfig) -> dict[str, Shape]:
    hidden, mlp = config.hidden_size, config.intermediate_size
    shapes: dict[str, Shape] = {f"{TEXT_PREFIX}embed_tokens.weight": (config.vocab_size, hidden)}
    for index, kind in enumerate(config.layer_types):
        layer = f"{TEXT_PREFIX}layers.{index}."
        block = _full_attention(config) if kind == "full_attention" else _gated_deltanet(config)
        shapes.update({layer + name: shape for name, shape in block.items()})
        shapes[layer + "mlp.gate_proj.weight"] = (mlp, hidden)
        shapes[layer + "mlp.up_proj.weight"] = (mlp, hidden)
        shapes[layer + "mlp.down_proj.weight"] = (hidden, mlp)
        shapes[layer + "input_layernorm.weight"] = (hidden,)
        shapes[layer + "post_attention_layernorm.weight"] = (hidden,)
    shapes[f"{TEXT_PREFIX}norm.weight"] = (hidden,)
    return shapes


def _full_attention(config: TextConfig) -> dict[str, Shape]:
    hidden, dim = config.hidden_size, config.head_dim
    return {
        "self_attn.q_proj.weight": (2 * config.num_heads * dim, hidden),  # query and output gate, per head
        "self_attn.k_proj.weight": (config.num_kv_heads * dim, hidden),
        "self_attn.v_proj.weight": (config.num_kv_heads * dim, hidden),
        "self_attn.o_proj.weight": (hidden, config.num_heads * dim),
        "self_attn.q_norm.weight": (dim,),
        "self_attn.k_norm.weight": (dim,),
    }


def _gated_deltanet(config: TextConfig) -> dict[str, Shape]:
    hidden, heads = config.hidden_size, config.gdn_value_heads
    values = heads * config.gdn_value_dim
    return {
        "linear_attn.dt_bias": (heads,),
        "linear_attn.A_log": (heads,),
        "linear_attn.conv1d.weight": (config.gdn_channels, 1, config.conv_width),
        "linear_attn.norm.weight": (config.gdn_value_dim,),
        "linear_attn.out_proj.weight": (hidden, values),
        "linear_attn.in_proj_qkv.weight": (config.gdn_channels, hidden),
        "linear_attn.in_proj_z.weight": (values, hidden),
        "linear_attn.in_proj_b.weight": (heads, hidden),
        "linear_attn.in_proj_a.weight": (heads, hidden),
    }


def _vision(config: VisionConfig) -> dict[str, Shape]:
    hidden, mlp, root = config.hidden_size, config.intermediate_size, "model.visual."
    patch = (config.in_channels, config.temporal_patch_size, config.patch_size, config.patch_size)
    merged = hidden * config.merge_size**2
    shapes: dict[str, Shape] = {
        root + "patch_embed.proj.weight": (hidden, *patch),
        root + "patch_embed.proj.bias": (hidden,),
        root + "pos_embed.weight": (config.position_side**2, hidden),
    }
    for index in range(config.depth):
        block = f"{root}blocks.{index}."
        for norm in ("norm1", "norm2"):
            shapes[f"{block}{norm}.weight"] = (hidden,)
            shapes[f"{block}{norm}.bias"] = (hidden,)
        for name, rows, columns in (
            ("attn.qkv", 3 * hidden, hidden),
            ("attn.proj", hidden, hidden),
            ("mlp.linear_fc1", mlp, hidden),
            ("mlp.linear_fc2", hidden, mlp),
        ):
            shapes[f"{block}{name}.weight"] = (rows, columns)
            shapes[f"{block}{name}.bias"] = (rows,)
    shapes[root + "merger.norm.weight"] = (hidden,)
    shapes[root + "merger.norm.bias"] = (hidden,)
    for name, rows in (("linear_fc1", merged), ("linear_fc2", config.out_hidden_size)):
        shapes[f"{root}merger.{name}.weight"] = (rows, merged)
        shapes[f"{root}merger.{name}.bias"] = (rows,)
    return shapes
