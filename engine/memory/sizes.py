"""Bytes of what the engine keeps: keys and values in each format, lane state, penalties, the buffers of a round.

Plain arithmetic on a model's geometry, without torch, so that a plan for a card that is not there takes no time. The
tests hold these figures against the buffers themselves.
"""

from __future__ import annotations

from engine.config import TextConfig

EXACT_FIRST = 32
EXACT_LAST = 512
"""Tokens at a context's start and end whose keys and values stay BF16 beside packed ones."""
PACKED = ("fp8", "q2")
"""KV formats that are not the compute type."""
WINDOWED = ("q2",)
"""Formats so coarse that they need the exact window; e4m3 codes with a scale a row do not."""


def kv_row_bytes(kv_format: str, values: int) -> int:
    """Bytes of the key or value of one head and token, ``values`` numbers long.

    "fp8" is one byte a value and a float32 scale; "q2" two bits a value and 8 bytes of side data.
    """
    return {"float32": 4 * values, "bf16": 2 * values, "fp8": values + 4, "q2": values // 4 + 8}[kv_format]


def kv_token_bytes(text: TextConfig, kv_format: str) -> int:
    """Bytes of one token's keys and values in all layers."""
    return len(text.full_layers) * 2 * text.num_kv_heads * kv_row_bytes(kv_format, text.head_dim)


def exact_rows(chunk: int) -> int:
    """Tokens of a lane's exact window: the first, the last, and the chunk that is being written."""
    return EXACT_FIRST + EXACT_LAST + chunk


def state_parts(text: TextConfig, itemsize: int) -> tuple[int, int]:
    """Recurrent state (float32) and convolution taps (compute type of ``itemsize`` bytes) of one sequence."""
    recurrent = text.gdn_value_heads * text.gdn_key_dim * text.gdn_value_dim * 4
    taps = (text.conv_width - 1) * text.gdn_channels * itemsize
    return len(text.gdn_layers) * recurrent, len(text.gdn_layers) * taps


def state_bytes(text: TextConfig, itemsize: int) -> int:
    """Both."""
    return sum(state_parts(text, itemsize))


def shelf_bytes(text: TextConfig, lanes: int, kept: int, slot: int, itemsize: int) -> tuple[int, str]:
    """States of ``slot`` bytes each for sequences that hold no lane, and how that comes about: ``kept`` ones, each with
    the residual of its last token, and one for every lane that may be parked."""
    row = text.hidden_size * itemsize
    size = (lanes + kept) * slot + kept * row
    return size, f"{lanes + kept} kept or parked states × {slot:,} B + {kept} × {row:,} B"


def sampling_parts(vocabulary: int) -> tuple[int, int, int]:
    """Penalties of one lane, two float32 values for each token of the vocabulary, and a mask of one bit each."""
    return vocabulary * 4, vocabulary * 4, -(-vocabulary // 32) * 4


def sampling_bytes(vocabulary: int) -> int:
    """All of it."""
    return sum(sampling_parts(vocabulary))


def round_bytes(lanes: int, pages: int, columns: int) -> int:
    """Fixed inputs of a round: for each lane a page table (int32) and 64 bytes of slot, length, sampling settings and
    flags; for each column an id, three positions and a pool row (int64)."""
    return lanes * (pages * 4 + 64 + columns * 5 * 8)


PADDED = (16, 32, 64, 128, 256, 384, 512)
"""Columns that chunks of one run are padded to on a card, so that they can be replayed as graphs: where a kernel for
more columns begins, and then by the tiles of attention and of cuBLAS. Longer ones take the card longer to compute than
the host to launch."""


def padded_bytes(text: TextConfig) -> int:
    """The residual stream of a padded chunk (BF16), the one of its inputs that is not small."""
    return PADDED[-1] * text.hidden_size * 2


SCRATCH = 96 << 20
"""Weights that are unpacked at a time at most for a prompt's products: all of a matrix of the 27B but its largest."""


def scratch_bytes(text: TextConfig) -> int:
    """Room for unpacked weights (BF16), as the largest matrix of a layer needs it."""
    rows = max(2 * text.intermediate_size, text.num_heads * text.head_dim * 2, text.gdn_channels)
    return min(-(-rows // 64) * 64 * -(-text.hidden_size // 512) * 512, SCRATCH) * 2


def verify_bytes(text: TextConfig, taps: int) -> int:
    """What one column of a verify round records until it is accepted: in each Gated DeltaNet layer its key, the value
    it would write, its two gates (float32) and its convolution input (BF16); and ``taps`` hidden states (BF16)."""
    heads = text.gdn_value_heads
    recurrent = (text.gdn_key_heads * text.gdn_key_dim + heads * text.gdn_value_dim + 2 * heads) * 4
    return len(text.gdn_layers) * (recurrent + text.gdn_channels * 2) + taps * text.hidden_size * 2
