"""NVFP4 weights in the order in which matrix instructions take them.

A checkpoint keeps a matrix [out, in] as 4-bit E2M1 codes, two to a byte, and one E4M3 scale for every 16 columns of a
row. A warp that feeds ``mma.m16n8k16`` wants something else: each lane (g, t), g < 8, t < 4, multiplies rows g and
g + 8 of 16, a few columns each, and is best off reading exactly those as 16 consecutive bytes. So the matrix is
shuffled once, at load, and decoded in registers without passing through shared memory.

Words: int32 [out/16][in/512][c 4][b 2][g 8][t 4][r 2][w 2], eight weights each: row 16·tile + 8r + g, columns
512·block + 128c + 64b + 16t + 8w + 2j + i for pair j < 4 and half i < 2. Halves are those of the word, so that one
operation decodes two weights. Within half i:

    pair 0  sign at bit 15, magnitude at 8..6            value = word & M
    pair 1  magnitude at 11..9, sign at 2 of half 1 − i  value = (word rotated right by 3) & M
    pair 2  magnitude at 14..12, sign at 5 of half 1 − i value = (word rotated right by 6) & M
    pair 3  a code of bits 0, 1, 3, 4                    value = ((word & 0x001B001B) · 0x888) & M

with M = 0x81C081C0: what is left is a pair of bfloat16 numbers, value · 2⁻¹²⁶ (the largest, 6, is the pattern 111
across the exponent's last bit and the mantissa's first two).

Scales: int32 [out/16][in/512][h 2][g 8][t 4][r 2], four scales each: byte 2l + b is that of c = 2h + l, in an unsigned
E5M3 with exponent bias 16, so that subnormals are gone: byte · 16 + 0x6000 is the bfloat16 number scale · 2⁸¹. A zero
scale has no such form: its weights are zero instead. The product of the two is exact in bfloat16 (two significant bits
times four) and 2⁻⁴⁵ of what it stands for; ``factors`` make up for that and hold the matrix's own scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.registry import use_triton

TILE = 16
"""Rows of a fragment."""
ROWS = 64
"""Rows are padded to this: the fragments of four warps."""
BLOCK = 512
"""Columns are padded to this: 32 scales of a row, eight words of a lane."""
_SLICE = 1 << 24
"""Weights that the plain conversion looks at in one go: it needs some tens of bytes for each."""


@dataclass(frozen=True)
class NVFP4Weight:
    """A matrix [out, in] as the kernels read it; ``words`` and ``scales`` padded to 64 rows × 512 columns."""

    words: Tensor
    """int32, in · out / 8 of the padded shape, flat."""
    scales: Tensor
    """int32, in · out / 64 of the padded shape, flat."""
    factors: Tensor
    """float32 [padded out / 16]: the matrix's scale · 2⁴⁵ for each 16 rows."""
    out_features: int
    in_features: int

    @property
    def rows(self) -> int:
        """``out_features`` padded."""
        return -(-self.out_features // ROWS) * ROWS

    @property
    def columns(self) -> int:
        """``in_features`` padded."""
        return -(-self.in_features // BLOCK) * BLOCK

    def rows_from(self, start: int) -> NVFP4Weight:
        """The rows from a multiple of 64 on, as a matrix of their own."""
        k = self.columns
        words, scales = self.words[start * k // 8 :], self.scales[start * k // 64 :]
        return NVFP4Weight(words, scales, self.factors[start // TILE :], self.out_features - start, self.in_features)

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self.scales.nbytes + self.factors.nbytes


def empty_nvfp4(
    out_features: int,
    in_features: int,
    device: torch.device | str,
    take: Callable[[Sequence[int], torch.dtype], Tensor] | None = None,
) -> NVFP4Weight:
    """Room for a matrix, for :func:`pack_rows` to fill part by part. Raises ``ValueError`` on a card whose instructions
    cannot decode it.

    Args:
        take: gives tensors of a shape and type on ``device``; None lets torch allocate them.
    """
    device = torch.device(device)
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (9, 0):
        found = ".".join(str(number) for number in torch.cuda.get_device_capability(device))
        raise ValueError(f"NVFP4 weights are decoded by instructions of compute capability 9.0; this card has {found}.")
    shape = NVFP4Weight(torch.empty(0), torch.empty(0), torch.empty(0), out_features, in_features)
    size = shape.rows * shape.columns
    take = take or (lambda shape, dtype: torch.empty(tuple(shape), dtype=dtype, device=device))
    return NVFP4Weight(
        take((size // 8,), torch.int32),
        take((size // 64,), torch.int32),
        take((shape.rows // TILE,), torch.float32),
        out_features,
        in_features,
    )


def pack_nvfp4(
    codes: Tensor | Sequence[Tensor], block_scale: Tensor | Sequence[Tensor], scale: Tensor | Sequence[Tensor]
) -> NVFP4Weight:
    """A matrix, or several with as many columns joined by rows (q ‖ k ‖ v, gate ‖ up), in the kernels' order.

    Args:
        codes: uint8 [out, in / 2], the even column in the low nibble; one for each part.
        block_scale: float8_e4m3fn [out, in / 16], not negative.
        scale: float32 scalar. Parts keep their own.

    The result is on the parts' device. Raises ``ValueError`` where the shapes do not fit, a scale is negative or NaN,
    or a part other than the last does not end with a fragment of 16 rows.
    """
    parts = list(
        zip(
            *([value] if isinstance(value, Tensor) else list(value) for value in (codes, block_scale, scale)),
            strict=True,
        )
    )
    first = parts[0][0]
    weight = empty_nvfp4(sum(part[0].shape[0] for part in parts), 2 * first.shape[1], first.device)
    start = 0
    for part in parts:
        start = pack_rows(weight, start, *part)
    return weight


def pack_rows(weight: NVFP4Weight, start: int, codes: Tensor, block_scale: Tensor, scale: Tensor) -> int:
    """Write one part to rows ``start`` … of ``weight`` and return where the next begins; arguments and errors as for
    :func:`pack_nvfp4`. What follows the last part up to the padded rows is written with it."""
    rows, columns = codes.shape[0], 2 * codes.shape[1]
    stop = start + rows
    if block_scale.shape != (rows, columns // 16) or columns != weight.in_features or stop > weight.out_features:
        raise ValueError(
            f"Codes {list(codes.shape)} with scales {list(block_scale.shape)} are no part of an NVFP4 matrix "
            f"[{weight.out_features}, {weight.in_features}] from row {start} on: for [rows, {weight.in_features}] "
            f"there must be [rows, {weight.in_features // 2}] codes and [rows, {weight.in_features // 16}] scales."
        )
    if start % TILE or (rows % TILE and stop != weight.out_features):
        raise ValueError(
            f"A part of {rows} rows at row {start} cannot be joined with another: all but the last need a multiple "
            f"of {TILE} rows."
        )
    bits = block_scale.view(torch.uint8)
    if int(bits.max()) > 0x7E:
        raise ValueError("A block scale of an NVFP4 matrix is negative or NaN: the checkpoint is damaged.")
    end = weight.rows if stop == weight.out_features else stop
    weight.factors[start // TILE : end // TILE] = scale.to(weight.factors.device, torch.float32) * 2.0**45
    blocks = weight.columns // BLOCK
    words = weight.words[start * weight.columns // 8 : end * weight.columns // 8]
    scales = weight.scales[start * weight.columns // 64 : end * weight.columns // 64]
    if use_triton(codes):
        grid = ((end - start) // TILE * blocks,)
        _pack_kernel[grid](
            codes.contiguous().view(torch.int32), bits.contiguous(), words, scales, rows, columns, blocks
        )
    else:
        step = max(1, _SLICE // (TILE * weight.columns)) * TILE
        for low in range(0, end - start, step):
            high = min(low + step, end - start)
            part = _padded(codes, low, high, weight.columns // 2), _padded(bits, low, high, weight.columns // 16)
            words[low * weight.columns // 8 : high * weight.columns // 8] = pack_words(*part)
            scales[low * weight.columns // 64 : high * weight.columns // 64] = pack_scales(part[1])
    return stop


def place_rows(weight: NVFP4Weight, start: int, words: Tensor, scales: Tensor, scale: Tensor, rows: int) -> int:
    """As :func:`pack_rows` for a part that stands in this order already: int32 words and scales of ``rows`` rows,
    padded to 64, on any device."""
    stop = start + rows
    if start % TILE or (rows % TILE and stop != weight.out_features) or stop > weight.out_features:
        raise ValueError(f"A part of {rows} rows at row {start} does not fit a matrix of {weight.out_features} rows.")
    end = weight.rows if stop == weight.out_features else stop
    for target, source, share in ((weight.words, words, 8), (weight.scales, scales, 64)):
        part = target[start * weight.columns // share : end * weight.columns // share]
        # Padding between parts is left out.
        part.copy_(source.reshape(-1)[: part.numel()])
    weight.factors[start // TILE : end // TILE] = scale.to(weight.factors.device, torch.float32) * 2.0**45
    return stop


def pack_words(codes: Tensor, bits: Tensor) -> Tensor:
    """uint8 codes [rows, columns / 2] and the bits of their scales [rows, columns / 16] → int32 words, flat."""
    rows = codes.shape[0]
    eights = codes.contiguous().view(torch.int32).view(rows, -1, 2)
    eights = torch.where(bits[..., None] == 0, 0, eights).view(rows // TILE, 2, 8, -1, 4, 2, 4, 2)  # T r g k c b t w
    words: Tensor = _shuffle.fn(eights.permute(0, 3, 4, 5, 2, 6, 1, 7).reshape(-1))
    return words


def pack_scales(bits: Tensor) -> Tensor:
    """The bits of E4M3 scales, uint8 [rows, columns / 16] → int32 words of E5M3 scales, flat."""
    # Normal numbers differ by the exponent's bias alone; of m · 2⁻⁹ the leading one becomes the exponent.
    table = torch.arange(256) + 72
    table[:8] = torch.tensor([56, 56, 64, 68, 72, 74, 76, 78])
    small = table.to(torch.uint8).to(bits.device)[bits.int()]
    small = small.view(bits.shape[0] // TILE, 2, 8, -1, 2, 2, 2, 4)  # T r g k h l b t
    return small.permute(0, 3, 4, 2, 7, 1, 5, 6).reshape(-1).view(torch.int32)


def dequantize(weight: NVFP4Weight, dtype: torch.dtype = torch.float32) -> Tensor:
    """[out, in] in ``dtype``, in plain torch: what the kernels' words and scales stand for, decoded as they do."""
    rows, columns = weight.rows, weight.columns
    out = torch.empty(weight.out_features, weight.in_features, dtype=dtype, device=weight.words.device)
    step = max(1, _SLICE // (TILE * columns)) * TILE
    for low in range(0, rows, step):
        high = min(low + step, rows)
        pairs = decode_words(weight.words[low * columns // 8 : high * columns // 8])
        halves = (
            pairs.contiguous().view(torch.bfloat16).view(-1, columns // BLOCK, 4, 2, 8, 4, 2, 2, 8)
        )  # T k c b g t r w
        values = halves.permute(0, 6, 4, 1, 2, 3, 5, 7, 8).reshape(high - low, columns // 16, 16)
        scale = decode_scales(weight.scales[low * columns // 64 : high * columns // 64], columns)
        # Both are exact, and so is the product of bfloat16 numbers; float64 spares the look at float32's subnormals.
        exact = values.double() * scale.double()[..., None]
        factor = weight.factors[low // TILE : high // TILE].double().repeat_interleave(TILE)
        whole = (exact.view(high - low, columns) * factor[:, None]).to(dtype)
        stop = min(high, weight.out_features)
        if stop > low:
            out[low:stop] = whole[: stop - low, : weight.in_features]
    return out


def decode_words(words: Tensor) -> Tensor:
    """int32 words → [words, 4] pairs of bfloat16 patterns of value · 2⁻¹²⁶, as int32."""
    return torch.stack(_decode_pairs.fn(words), dim=-1)


def decode_scales(scales: Tensor, columns: int) -> Tensor:
    """int32 scale words → bfloat16 [rows, columns / 16] of scale · 2⁸¹."""
    small = scales.contiguous().view(torch.uint8).view(-1, columns // BLOCK, 2, 8, 4, 2, 2, 2)  # T k h g t r l b
    small = small.permute(0, 5, 3, 1, 2, 6, 7, 4).reshape(-1, columns // 16)
    return (small.to(torch.int16) * 16 + 0x6000).view(torch.bfloat16)


def _padded(values: Tensor, low: int, high: int, columns: int) -> Tensor:
    """Rows ``low`` … ``high`` of a matrix, with zeros where it has none."""
    part = values[low:high]
    if part.shape == (high - low, columns):
        return part
    return torch.nn.functional.pad(part, (0, columns - part.shape[1], 0, high - low - part.shape[0]))


@triton.jit
def _shuffle(eights):  # type: ignore[no-untyped-def]
    """int32 words of eight codes, column 2j + i in nibble 2j + i → words as above.

    Nothing but operators, so that ``_shuffle.fn`` does the same to torch's tensors.
    """
    pair0 = (eights & 0xF) | ((eights & 0xF0) << 12)
    pair1 = ((eights >> 8) & 0xF) | ((eights & 0xF000) << 4)
    pair2 = ((eights >> 16) & 0xF) | ((eights >> 4) & 0xF0000)
    pair3 = ((eights >> 24) & 0xF) | ((eights >> 12) & 0xF0000)
    sign1, sign2, sign3 = (pair1 >> 3) & 0x10001, (pair2 >> 3) & 0x10001, (pair3 >> 3) & 0x10001
    word = (((pair0 >> 3) & 0x10001) << 15) | ((pair0 & 0x70007) << 6)
    word |= (((sign1 << 16) | (sign1 >> 16)) << 2) | ((pair1 & 0x70007) << 9)
    word |= (((sign2 << 16) | (sign2 >> 16)) << 5) | ((pair2 & 0x70007) << 12)
    # code · 0x888 has the code's bit 3 at 6, bits 4 + 0 at 7 with the carry going into bit 1 at 8, and bit 4 at 15.
    zero = ((pair3 >> 1) & 0x10001) ^ sign3
    one = ((pair3 >> 2) & 0x10001) ^ (sign3 & zero)
    return word | zero | (one << 1) | ((pair3 & 0x10001) << 3) | (sign3 << 4)


@triton.jit
def _decode_pairs(word):  # type: ignore[no-untyped-def]
    """The inverse: a word → its four pairs of bfloat16 patterns. On torch's tensors as ``_decode_pairs.fn``."""
    third = ((word >> 3) & 0x1FFFFFFF) | (word << 29)
    sixth = ((word >> 6) & 0x03FFFFFF) | (word << 26)
    last = (word & 0x001B001B) * 0x888
    return word & -0x7E3F7E40, third & -0x7E3F7E40, sixth & -0x7E3F7E40, last & -0x7E3F7E40


@triton.jit
def _pack_kernel(codes, bits, words, scales, rows, columns, blocks):  # type: ignore[no-untyped-def]
    """One fragment: 16 rows × 512 columns. ``codes`` as int32 [rows, columns / 8], ``bits`` uint8 [rows, columns / 16];
    beyond ``rows`` and ``columns`` both are zero."""
    fragment = tl.program_id(0)
    top, left = fragment // blocks * 16, fragment % blocks * 512
    i = tl.arange(0, 1024)
    row = top + ((i >> 1) & 1) * 8 + ((i >> 4) & 7)
    column = left + (i >> 8) * 128 + ((i >> 7) & 1) * 64 + ((i >> 2) & 3) * 16 + (i & 1) * 8
    inside = (row < rows) & (column < columns)
    eights = tl.load(codes + row.to(tl.int64) * (columns // 8) + column // 8, mask=inside, other=0)
    live = tl.load(bits + row.to(tl.int64) * (columns // 16) + column // 16, mask=inside, other=0)
    tl.store(words + fragment.to(tl.int64) * 1024 + i, _shuffle(tl.where(live == 0, 0, eights)))
    i = tl.arange(0, 128)
    row = top + (i & 1) * 8 + ((i >> 3) & 7)
    column = left + (i >> 6) * 256 + ((i >> 1) & 3) * 16
    word = tl.zeros([128], tl.int32)
    for byte in tl.static_range(4):
        at = column + (byte >> 1) * 128 + (byte & 1) * 64
        inside = (row < rows) & (at < columns)
        bit = tl.load(bits + row.to(tl.int64) * (columns // 16) + at // 16, mask=inside, other=0).to(tl.int32)
        subnormal = tl.where(bit < 2, 56, tl.where(bit < 4, 56 + 4 * bit, 64 + 2 * bit))
        word |= tl.where(bit < 8, subnormal, bit + 72) << (8 * byte)
    tl.store(scales + fragment.to(tl.int64) * 128 + i, word)
