"""Pictures on their way in: decoding, checking and sizing for the vision tower.

Sizing follows transformers' ``smart_resize`` for the Qwen vision models: both sides to the nearest multiple of a cell,
the whole picture shrunk or grown when its area leaves the bounds.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from engine.config import VisionConfig
from engine.messages import ImageInput, RequestError

MAX_SOURCE_PIXELS = 100_000_000
"""Larger pictures are refused before their pixels are decoded."""
MAX_ASPECT = 200
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
"""What is decoded; others that Pillow knows are rare, and some start programs (PostScript)."""


@dataclass(frozen=True)
class ImageLimits:
    """Bounds on a picture's area as the model sees it, in pixels, and the side of a cell."""

    cell: int
    min_pixels: int
    max_pixels: int

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], vision: VisionConfig) -> ImageLimits:
        """From a parsed preprocessor_config.json (may be empty); without bounds, those of Qwen3.8: 256² to 4096²."""
        size = raw.get("size") if isinstance(raw.get("size"), Mapping) else {}
        assert isinstance(size, Mapping)
        low = raw.get("min_pixels") or size.get("shortest_edge") or 256 * 256
        high = raw.get("max_pixels") or size.get("longest_edge") or 4096 * 4096
        return cls(vision.cell, int(low), int(high))

    def fit(self, width: int, height: int) -> tuple[int, int]:
        """(width, height) the model sees of a picture of this size, multiples of the cell."""
        cell = self.cell
        fitted_w, fitted_h = round(width / cell) * cell, round(height / cell) * cell
        if fitted_w * fitted_h > self.max_pixels:
            shrink = math.sqrt(width * height / self.max_pixels)
            fitted_w = max(cell, math.floor(width / shrink / cell) * cell)
            fitted_h = max(cell, math.floor(height / shrink / cell) * cell)
        elif fitted_w * fitted_h < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (width * height))
            fitted_w = math.ceil(width * grow / cell) * cell
            fitted_h = math.ceil(height * grow / cell) * cell
        return fitted_w, fitted_h


def prepare_image(source: bytes | Image.Image, limits: ImageLimits) -> ImageInput:
    """Decode, check and size one picture. An animation gives its first frame; transparency goes over white.

    Args:
        source: a file of one of ``FORMATS``, or a decoded picture.

    Raises:
        RequestError: it is no picture, is damaged, too large or too elongated.
    """
    rgb = decode_image(source)
    size = limits.fit(*rgb.size)
    pixels = np.asarray(rgb if rgb.size == size else rgb.resize(size, Image.Resampling.BICUBIC))
    digest = hashlib.blake2b(pixels.tobytes(), digest_size=16, salt=f"{size[0]}x{size[1]}".encode()[:16]).digest()
    return ImageInput(pixels, digest, rgb.size)


def decode_image(source: bytes | Image.Image) -> Image.Image:
    """The picture before it is sized: RGB, upright, checked. Raises ``RequestError`` as ``prepare_image`` does."""
    picture = source if isinstance(source, Image.Image) else _open(source)
    width, height = picture.size
    if width * height > MAX_SOURCE_PIXELS:
        raise RequestError(
            f"The picture has {width}×{height} pixels; the limit is {MAX_SOURCE_PIXELS:,}. Send a smaller one.",
            code="image_too_large",
        )
    if not width or not height:
        raise RequestError("The picture has no pixels.", code="invalid_image")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise RequestError(f"The picture is {width}×{height}; a side may be at most {MAX_ASPECT} times the other.")
    try:
        return _rgb(picture)
    except _DAMAGED as error:
        raise _damaged(error) from None


def format_of(data: bytes) -> str | None:
    """Which of ``FORMATS`` a file is of, by how it begins; None when of none. Raises ``RequestError`` for one that is
    too large to be used."""
    try:
        return _open(data).format
    except RequestError as error:
        if error.code == "invalid_image":
            return None
        raise


def _open(data: bytes) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            return Image.open(io.BytesIO(data), formats=FORMATS)
        except UnidentifiedImageError:
            raise RequestError(
                "This is no picture that can be read; send PNG, JPEG, WebP, BMP, GIF or TIFF.", code="invalid_image"
            ) from None
        except Image.DecompressionBombError:
            raise RequestError(
                f"The picture has more than {MAX_SOURCE_PIXELS:,} pixels; send a smaller one.", code="image_too_large"
            ) from None
        except _DAMAGED as error:
            raise _damaged(error) from None


_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, KeyError, IndexError, TypeError, struct.error, zlib.error)
"""What Pillow's decoders raise on files that are not what they say."""


def _damaged(error: Exception) -> RequestError:
    return RequestError(f"The picture is damaged and cannot be decoded: {error}", code="invalid_image")


def _rgb(picture: Image.Image) -> Image.Image:
    upright = ImageOps.exif_transpose(picture)
    if upright.has_transparency_data:
        layered = upright.convert("RGBA")
        ground = Image.new("RGBA", layered.size, "white")
        return Image.alpha_composite(ground, layered).convert("RGB")
    if upright.mode.startswith(("I", "F")):
        return _eight_bits(upright)
    return upright if upright.mode == "RGB" else upright.convert("RGB")


def _eight_bits(picture: Image.Image) -> Image.Image:
    """Grey samples of more than 8 bits, which Pillow would clip: 16 bits are scaled, other ranges stretched."""
    samples = np.nan_to_num(np.asarray(picture, np.float64), posinf=0.0, neginf=0.0)
    low, high = (0.0, 65535.0) if picture.mode.startswith("I;16") else (samples.min(), samples.max())
    grey = ((samples - low) * (255.0 / max(high - low, 1e-9))).round().astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
