"""Bytes that a pass holds at its fullest moment: the workspace is the largest of these stages.

Each figure is the set of tensors alive at once in the reference code (``engine.model``, ``kernels``,
``engine.sample``); the tests measure the same passes with torch's memory profiler.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import TextConfig, VisionConfig

GDN_CHUNK = 64
"""Tokens that the chunked recurrence solves together (``kernels.gated_delta.CHUNK``)."""
SLICE = 8192
"""Patches of a picture whose wide values are held at a time (``engine.model.vision.SLICE``)."""
SCORED_ROWS = 64
"""Prompt positions that are scored at once."""


@dataclass(frozen=True)
class Stage:
    bytes: int
    why: str


def workspace(
    text: TextConfig,
    vision: VisionConfig | None,
    *,
    chunk: int,
    lanes: int,
    columns: int,
    pixels: int,
    itemsize: int,
    gathered: int,
) -> Stage:
    """The largest stage.

    Args:
        columns: tokens that a round computes for each lane.
        pixels: of the largest picture.
        itemsize: bytes of the compute type.
        gathered: tokens of context whose keys are copied for attention; 0 where it reads the pages in place.
    """
    stages = [_recurrence(text, chunk, itemsize), _logits(text, lanes, columns)]
    if gathered:
        stages.append(_attention(text, chunk, gathered, itemsize))
    if vision is not None:
        stages.append(_picture(vision, pixels, itemsize))
    return max(stages, key=lambda stage: stage.bytes)


def _carried(text: TextConfig) -> int:
    """Values a token carries through a layer: the residual before and after, what the sublayers gave, gate and up."""
    return 5 * text.hidden_size + 2 * text.intermediate_size + text.rope.dim


def _recurrence(text: TextConfig, chunk: int, itemsize: int) -> Stage:
    """The end of the chunked recurrence: its inputs, and float32 keys, queries and values in all their forms."""
    keys = text.gdn_value_heads * text.gdn_key_dim
    values = text.gdn_value_heads * text.gdn_value_dim
    shared = 2 * keys if text.gdn_value_heads > text.gdn_key_heads else 0
    inputs = 2 * text.gdn_channels + values + 2 * text.gdn_value_heads + shared
    wide = 5 * keys + 4 * values + 3 * text.gdn_value_heads * GDN_CHUNK
    token = (_carried(text) + inputs) * itemsize + wide * 4
    return Stage(chunk * token, f"a chunk's {chunk:,} tokens × {token:,} B")


def _attention(text: TextConfig, chunk: int, gathered: int, itemsize: int) -> Stage:
    """Keys and values of the context, once as they are and once for every query head; queries, the two halves of the
    result and their sum."""
    queries = text.num_heads * text.head_dim
    kept = text.num_kv_heads * text.head_dim
    widened = 3 if itemsize < 4 else 1  # both halves and their sum are float32
    token = (_carried(text) + 5 * queries + 3 * kept) * itemsize + widened * queries * 4
    past = 2 * (queries + kept) * itemsize
    size = chunk * token + gathered * past
    return Stage(size, f"a chunk's {chunk:,} tokens × {token:,} B after {gathered:,} × {past:,} B")


def _logits(text: TextConfig, lanes: int, columns: int) -> Stage:
    """Positions being scored (logits in both types and their exponentials), or lanes whose cuts keep the whole
    vocabulary (sorted with 64-bit keys and summed in float64)."""
    rows = max(3 * max(SCORED_ROWS, lanes * columns), 16 * lanes)
    return Stage(rows * text.vocab_size * 4, f"{rows} rows of logits × {text.vocab_size:,} × 4 B")


def _picture(vision: VisionConfig, pixels: int, itemsize: int) -> Stage:
    """The fullest of reading the pixels, placing the patches, attention, and a block's MLP, of which the second and the
    last hold their wide values for some patches at a time (``engine.model.vision.SLICE``)."""
    hidden = vision.hidden_size
    colours = vision.in_channels * vision.patch_size**2
    tubes = colours * vision.temporal_patch_size
    rotary = hidden // vision.num_heads
    pixel = (colours + tubes) * 4 + (tubes * itemsize if itemsize < 4 else 0)
    patches = pixels // vision.patch_size**2
    some = min(patches, SLICE)
    attention = (6 * hidden + rotary) * itemsize
    place = patches * hidden * itemsize + some * 5 * hidden * 4
    mlp = patches * (2 * hidden + rotary) * itemsize + some * (2 * hidden + 2 * vision.intermediate_size) * itemsize
    stages = {
        f"a picture's {patches:,} patches × {pixel:,} B": patches * pixel,
        f"a picture's {patches:,} patches × {attention:,} B": patches * attention,
        f"a picture's {patches:,} patches, {some:,} placed at a time": place,
        f"a picture's {patches:,} patches, {some:,} in the MLP at a time": mlp,
    }
    why = max(stages, key=lambda stage: stages[stage])
    return Stage(stages[why], why)
