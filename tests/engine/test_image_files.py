"""Picture files as they come from cameras, scanners, browsers and attackers."""

from __future__ import annotations

import io
import random
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from engine.images import ImageLimits, prepare_image
from engine.messages import RequestError

LIMITS = ImageLimits(cell=8, min_pixels=32 * 32, max_pixels=96 * 96)
RAMP = np.linspace(0, 65535, 64 * 64).reshape(64, 64)


def encoded(picture: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def colours(seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8))


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_sixteen_bit_grey_is_scaled_and_not_clipped(form: str) -> None:
    image = prepare_image(encoded(Image.fromarray(RAMP.astype(np.uint16)), form), LIMITS)
    assert np.abs(image.rgb[..., 0].astype(float) - RAMP / 257).max() <= 1


@pytest.mark.parametrize("samples", [RAMP.astype(np.int32) - 9, (RAMP / 65535).astype(np.float32)], ids=["I", "F"])
def test_other_deep_grey_is_stretched(samples: np.ndarray) -> None:
    image = prepare_image(encoded(Image.fromarray(samples), "TIFF"), LIMITS)
    assert np.abs(image.rgb[..., 1].astype(float) - RAMP / 257).max() <= 1


def test_deep_grey_without_a_range() -> None:
    for value in (0.0, float("nan"), float("inf")):
        assert prepare_image(Image.fromarray(np.full((64, 64), value, np.float32)), LIMITS).rgb.shape == (64, 64, 3)


def test_a_colour_that_png_declares_transparent_becomes_white() -> None:
    picture = Image.new("RGB", (64, 64), (1, 2, 3))
    picture.paste((0, 0, 255), (0, 0, 32, 64))
    rgb = prepare_image(encoded(picture, "PNG", transparency=(1, 2, 3)), LIMITS).rgb
    assert rgb[5, 60].tolist() == [255, 255, 255]
    assert rgb[5, 5].tolist() == [0, 0, 255]


def test_half_transparent_is_half_white() -> None:
    for form in ("PNG", "WEBP", "TIFF"):
        data = encoded(
            Image.new("RGBA", (64, 64), (255, 0, 0, 128)), form, **({"lossless": True} if form == "WEBP" else {})
        )
        assert prepare_image(data, LIMITS).rgb[9, 9].tolist() == pytest.approx([255, 127, 127], abs=1)


def test_print_colours_of_a_jpeg() -> None:
    picture = Image.new("CMYK", (64, 64), (0, 255, 255, 0))
    assert prepare_image(encoded(picture, "JPEG", quality=95), LIMITS).rgb[9, 9].tolist() == pytest.approx(
        [255, 0, 0], abs=8
    )


def test_a_photograph_with_several_pictures_gives_the_first() -> None:
    data = encoded(Image.new("RGB", (64, 64), "red"), "MPO", save_all=True, append_images=[Image.new("RGB", (64, 64))])
    assert prepare_image(data, LIMITS).rgb[9, 9].tolist() == pytest.approx([255, 0, 0], abs=8)


def test_formats_that_start_programs_or_are_not_pictures() -> None:
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 64\n%%EndComments\nshowpage\n"
    for data in (postscript, encoded(colours(), "PDF"), encoded(colours(), "PPM"), encoded(colours(), "ICO")):
        with pytest.raises(RequestError, match="no picture that can be read") as caught:
            prepare_image(data, LIMITS)
        assert caught.value.code == "invalid_image"


def test_bytes_of_any_kind() -> None:
    data = encoded(colours(), "PNG")
    same = prepare_image(data, LIMITS).digest
    assert prepare_image(bytearray(data), LIMITS).digest == same
    assert prepare_image(memoryview(data), LIMITS).digest == same


@pytest.mark.parametrize("size", [(0, 0), (0, 5), (5, 0)], ids=str)
def test_pictures_without_pixels(size: tuple[int, int]) -> None:
    with pytest.raises(RequestError):
        prepare_image(Image.new("RGB", size), LIMITS)


def test_one_pixel() -> None:
    image = prepare_image(encoded(Image.new("RGB", (1, 1), "blue"), "PNG"), LIMITS)
    assert image.size == (32, 32)
    assert image.original_size == (1, 1)
    assert (image.rgb == [0, 0, 255]).all()


def test_a_small_file_that_claims_to_be_huge() -> None:
    """The header decides, before memory is taken."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    for side in (12_000, 30_000, 2**31 - 1):
        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
        with pytest.raises(RequestError) as caught:
            prepare_image(data, LIMITS)
        assert caught.value.code == "image_too_large"


@pytest.mark.filterwarnings("ignore")  # Pillow warns of what it mends
@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF"])
def test_damage_anywhere_is_a_picture_or_a_clear_refusal(form: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "a description"
    options = {"exif": exif} if form in ("PNG", "JPEG", "WEBP", "TIFF") else {}
    data = encoded(colours().quantize(16) if form == "GIF" else colours(), form, **options)
    rng = random.Random(form)
    outcomes = set()
    for trial in range(150):
        broken = bytearray(data)
        if trial % 3 == 0:
            del broken[rng.randrange(len(broken)) :]
        else:
            window = len(broken) if trial % 3 == 1 else min(200, len(broken))
            for _ in range(rng.choice((1, 2, 8))):
                broken[rng.randrange(window)] = rng.randrange(256)
        try:
            image = prepare_image(bytes(broken), LIMITS)
        except RequestError as error:
            outcomes.add(error.code)
        else:
            outcomes.add("read")
            assert image.rgb.shape[2] == 3
    assert "invalid_image" in outcomes
