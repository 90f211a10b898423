"""What a model is (``ModelConfig``, from a checkpoint's config.json) and how to run it (``EngineConfig``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from engine.messages import EngineError

LayerType = Literal["linear_attention", "full_attention"]
KVFormat = Literal["auto", "bf16", "fp8", "q2"]
KV_FORMATS: tuple[KVFormat, ...] = get_args(KVFormat)


class ConfigError(EngineError):
    """config.json does not describe a model this engine runs."""


@dataclass(frozen=True)
class RopeConfig:
    """Rotary embedding of the text model (model.md; transformers' ``rope_parameters``)."""

    theta: float = 10_000_000.0
    dim: int = 64
    """Rotated dimensions of each head, even."""
    sections: tuple[int, int, int] = (11, 11, 10)
    """mRoPE pairs per axis (t, h, w), interleaved."""
    yarn_factor: float = 1.0
    """1 is plain rotary; above 1, YaRN."""
    yarn_original_context: int = 262_144
    yarn_beta_fast: float = 32.0
    yarn_beta_slow: float = 1.0
    yarn_attention_factor: float | None = None
    """None: 0.1 · ln(factor) + 1."""


@dataclass(frozen=True)
class TextConfig:
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layer_types: tuple[LayerType, ...]
    num_heads: int
    num_kv_heads: int
    head_dim: int
    gdn_key_heads: int
    gdn_value_heads: int
    gdn_key_dim: int
    gdn_value_dim: int
    conv_width: int
    rms_eps: float
    tied_embedding: bool
    max_context: int
    rope: RopeConfig

    @property
    def num_layers(self) -> int:
        return len(self.layer_types)

    @property
    def full_layers(self) -> tuple[int, ...]:
        """Indices of the full-attention layers: the only ones with a KV cache and with heads to read."""
        return tuple(i for i, t in enumerate(self.layer_types) if t == "full_attention")

    @property
    def gdn_layers(self) -> tuple[int, ...]:
        """Indices of the Gated DeltaNet layers: the only ones with recurrent state."""
        return tuple(i for i, t in enumerate(self.layer_types) if t == "linear_attention")

    @property
    def gdn_channels(self) -> int:
        """Channels of the causal convolution: q ‖ k ‖ v."""
        return 2 * self.gdn_key_heads * self.gdn_key_dim + self.gdn_value_heads * self.gdn_value_dim


@dataclass(frozen=True)
class VisionConfig:
    depth: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    patch_size: int
    merge_size: int
    temporal_patch_size: int
    in_channels: int
    out_hidden_size: int
    position_side: int
    """The learned position table is side × side."""
    rope_theta: float = 10_000.0

    @property
    def cell(self) -> int:
        """Pixels a side of one image token."""
        return self.patch_size * self.merge_size


@dataclass(frozen=True)
class ModelConfig:
    text: TextConfig
    vision: VisionConfig | None
    image_token_id: int
    vision_start_id: int
    vision_end_id: int

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> ModelConfig:
        """From a parsed config.json of model type ``qwen3_5`` (or ``qwen3_5_text``).

        Raises ``ConfigError`` naming the key that is missing or out of range.
        """
        kind = raw.get("model_type")
        if kind not in ("qwen3_5", "qwen3_5_text"):
            raise ConfigError(f"This is a {kind!r} model; Ignis runs 'qwen3_5' models only (Qwen3.8-27B, Ember).")
        text = raw if kind == "qwen3_5_text" else raw.get("text_config")
        if not isinstance(text, Mapping):
            raise ConfigError("config.json has no text_config.")
        vision = raw.get("vision_config") if kind == "qwen3_5" else None
        tied = bool(raw.get("tie_word_embeddings", text.get("tie_word_embeddings", False)))
        return cls(
            text=_text_config(text, tied),
            vision=_vision_config(vision) if isinstance(vision, Mapping) else None,
            image_token_id=int(raw.get("image_token_id", -1)),
            vision_start_id=int(raw.get("vision_start_token_id", -1)),
            vision_end_id=int(raw.get("vision_end_token_id", -1)),
        )

    def stretched(self, factor: float) -> ModelConfig:
        """For contexts ``factor`` times as long as the model was made for, by YaRN; 1 is plain rotary."""
        rope = self.text.rope
        native = rope.yarn_original_context if rope.yarn_factor > 1 else self.text.max_context
        rope = replace(rope, yarn_factor=factor, yarn_original_context=native)
        return replace(self, text=replace(self.text, rope=rope, max_context=int(native * factor)))


def _need(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"config.json: {key} must be a positive integer, not {value!r}.")
    return value


def _text_config(raw: Mapping[str, Any], tied: bool) -> TextConfig:
    layers = _need(raw, "num_hidden_layers")
    types = raw.get("layer_types")
    if types is None:
        interval = int(raw.get("full_attention_interval", 4))
        types = ["full_attention" if (i + 1) % interval == 0 else "linear_attention" for i in range(layers)]
    if len(types) != layers or any(t not in ("linear_attention", "full_attention") for t in types):
        raise ConfigError(f"config.json: layer_types must name linear_attention or full_attention for {layers} layers.")
    if raw.get("attention_bias"):
        raise ConfigError("config.json: attention_bias is not part of the qwen3_5 models that Ignis runs.")
    heads = _need(raw, "num_attention_heads")
    head_dim = raw.get("head_dim") or _need(raw, "hidden_size") // heads
    config = TextConfig(
        vocab_size=_need(raw, "vocab_size"),
        hidden_size=_need(raw, "hidden_size"),
        intermediate_size=_need(raw, "intermediate_size"),
        layer_types=tuple(types),
        num_heads=heads,
        num_kv_heads=_need(raw, "num_key_value_heads"),
        head_dim=int(head_dim),
        gdn_key_heads=_need(raw, "linear_num_key_heads"),
        gdn_value_heads=_need(raw, "linear_num_value_heads"),
        gdn_key_dim=_need(raw, "linear_key_head_dim"),
        gdn_value_dim=_need(raw, "linear_value_head_dim"),
        conv_width=_need(raw, "linear_conv_kernel_dim"),
        rms_eps=float(raw.get("rms_norm_eps", 1e-6)),
        tied_embedding=tied,
        max_context=_need(raw, "max_position_embeddings"),
        rope=_rope_config(raw, int(head_dim)),
    )
    if config.num_heads % config.num_kv_heads:
        raise ConfigError("config.json: num_attention_heads must be a multiple of num_key_value_heads.")
    if config.gdn_value_heads % config.gdn_key_heads:
        raise ConfigError("config.json: linear_num_value_heads must be a multiple of linear_num_key_heads.")
    return config


def _rope_config(raw: Mapping[str, Any], head_dim: int) -> RopeConfig:
    params = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    kind = params.get("rope_type", params.get("type", "default"))
    if kind not in ("default", "mrope", "yarn"):
        raise ConfigError(f"config.json: rope_type {kind!r} is not supported; use default or yarn.")
    dim = int(head_dim * float(params.get("partial_rotary_factor", raw.get("partial_rotary_factor", 0.25))))
    sections = tuple(int(s) for s in params.get("mrope_section", (11, 11, 10)))
    if len(sections) != 3 or dim < 2 or dim % 2 or dim > head_dim:
        raise ConfigError("config.json: rope_parameters need three mrope_section entries and an even rotary size.")
    factor = params.get("attention_factor")
    return RopeConfig(
        theta=float(params.get("rope_theta", raw.get("rope_theta", 10_000_000.0))),
        dim=dim,
        sections=(sections[0], sections[1], sections[2]),
        yarn_factor=float(params.get("factor", 1.0)) if kind == "yarn" else 1.0,
        yarn_original_context=int(
            params.get("original_max_position_embeddings", raw.get("max_position_embeddings", 262_144))
        ),
        yarn_beta_fast=float(params.get("beta_fast") or 32.0),
        yarn_beta_slow=float(params.get("beta_slow") or 1.0),
        yarn_attention_factor=None if factor is None else float(factor),
    )


def _vision_config(raw: Mapping[str, Any]) -> VisionConfig:
    positions = _need(raw, "num_position_embeddings")
    side = round(positions**0.5)
    if side * side != positions:
        raise ConfigError("config.json: num_position_embeddings must be a square number.")
    rope = raw.get("rope_parameters") or {}
    return VisionConfig(
        depth=_need(raw, "depth"),
        hidden_size=_need(raw, "hidden_size"),
        intermediate_size=_need(raw, "intermediate_size"),
        num_heads=_need(raw, "num_heads"),
        patch_size=_need(raw, "patch_size"),
        merge_size=_need(raw, "spatial_merge_size"),
        temporal_patch_size=_need(raw, "temporal_patch_size"),
        in_channels=_need(raw, "in_channels"),
        out_hidden_size=_need(raw, "out_hidden_size"),
        position_side=side,
        rope_theta=float(rope.get("rope_theta", 10_000.0)),
    )


@dataclass(frozen=True)
class EngineConfig:
    """How to run a model. Sizes are tokens unless a name says bytes."""

    model: Path | None = None
    """Checkpoint directory; None is the bundled Ember."""
    device: str = "auto"
    """"auto" (a card that is there, the CPU for Ember), "cpu" or "cuda"."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Compute type; "auto" is bfloat16 on a GPU or with AMX, else float32."""
    lanes: int = 8
    page_size: int = 64
    max_context: int | None = None
    """Tokens one lane may hold; None is what the model was made for, times ``yarn``."""
    yarn: float | None = None
    """YaRN's factor, 1 to 8: contexts longer than the model was made for. None is what the checkpoint says."""
    kv_format: KVFormat = "auto"
    """How keys and values are kept; "auto" is the compute type."""
    kv_tokens: int | None = None
    """Tokens the KV pool holds for all lanes together. None: what fits; on the host at most a context for each lane."""
    headroom: int | None = None
    """Bytes of free memory left to other programs. None: 1 GiB on a GPU, 512 MiB on the host."""
    memory_budget: int | None = None
    """Bytes the engine may hold; None is what is free less the headroom."""
    lookahead: bool | None = None
    """Whether the next round is launched before the last one's tokens are known, or at least before they are told
    (``engine.schedule.lookahead``). None: on a GPU; on the CPU, which would compute it first, they would only come
    later."""
    draft_tokens: int = 0
    """Tokens drafted for each lane and round, 0 to 15."""
    prefill_chunk: int = 1024
    decode_share: float = 0.25
    """Part of the time that running lanes keep while a long prompt is being read."""
    generation_cap: int = 38_912
    """Tokens reserved for an answer whose request names no limit, when they fit."""
    queue_limit: int = 256
    """Requests of one class that may wait for a lane."""
    retained_limit: int = 16
    """States kept at once after their requests (snapshots and retained prefixes); the least recently used goes
    first."""
    host_tier: int | None = None
    """Bytes of host memory for pages of kept and parked state that the pool has no room for. None: 2 GiB beside a GPU,
    256 MiB on the CPU, at most a quarter of the memory."""
    disk_tier: Path | None = None
    """Folder for kept state that the host tier has no room for; None is off."""
    disk_tier_bytes: int = 8 << 30
    """What that folder may hold."""
    threads: int | None = None
    """CPU threads; None is the number of physical cores this process may use."""

    def __post_init__(self) -> None:
        if not 1 <= self.lanes <= 16:
            raise ConfigError(f"lanes must be 1 to 16, not {self.lanes}.")
        if self.dtype not in ("auto", "float32", "bfloat16"):
            raise ConfigError(f"dtype must be auto, float32 or bfloat16, not {self.dtype!r}.")
        if self.prefill_chunk < 128 or self.prefill_chunk % 128:
            raise ConfigError(f"prefill_chunk must be a multiple of 128, not {self.prefill_chunk}.")
        if self.max_context is not None and self.max_context < 256:
            raise ConfigError(f"max_context must be at least 256 tokens, not {self.max_context}.")
        if not 0 <= self.decode_share < 1:
            raise ConfigError(f"decode_share must be 0 or more and below 1, not {self.decode_share}.")
        if self.yarn is not None and not 1 <= self.yarn <= 8:
            raise ConfigError(f"yarn must be 1 to 8, not {self.yarn}.")
        if self.kv_format not in KV_FORMATS:
            raise ConfigError(f"kv_format must be one of {', '.join(KV_FORMATS)}, not {self.kv_format!r}.")
        if not 0 <= self.draft_tokens <= 15:
            raise ConfigError(f"draft_tokens must be 0 to 15, not {self.draft_tokens}.")
        for name in ("headroom", "memory_budget", "host_tier"):
            if (getattr(self, name) or 0) < 0:
                raise ConfigError(f"{name} must be 0 or more bytes, not {getattr(self, name)}.")
        for name in ("page_size", "generation_cap", "queue_limit", "retained_limit"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
