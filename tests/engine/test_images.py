"""Pictures on their way in: sizing and pixels as transformers' processor, everything else refused or mended."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize

from engine import images
from engine.images import ImageLimits, prepare_image
from engine.messages import RequestError
from tests.engine.model.oracle import make_pair

LIMITS = ImageLimits(cell=8, min_pixels=32 * 32, max_pixels=96 * 96)


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    channels = len(Image.new(mode, (1, 1)).getbands())
    pixels = np.random.default_rng(width * height).integers(0, 256, (height, width, channels), dtype=np.uint8)
    return Image.fromarray(pixels.squeeze(-1) if channels == 1 else pixels, mode=None)


def encoded(picture: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 6000), st.integers(1, 6000), st.sampled_from([8, 28, 32]))
def test_sizes_are_transformers(width: int, height: int, cell: int) -> None:
    assume(max(width, height) <= 200 * min(width, height))
    limits = ImageLimits(cell, 256 * 256, 2048 * 2048)
    expected = smart_resize(height, width, cell, limits.min_pixels, limits.max_pixels)
    assert limits.fit(width, height) == expected[::-1]


@pytest.mark.parametrize("size", [(64, 64), (50, 50), (61, 43), (200, 90), (90, 333), (20, 12), (9, 200)], ids=str)
def test_pixels_are_transformers(size: tuple[int, int]) -> None:
    """Kept, rounded, shrunk and grown pictures, down to the rows that enter the vision tower."""
    processor = Qwen2VLImageProcessorPil(
        patch_size=4,
        temporal_patch_size=2,
        merge_size=2,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        size={"shortest_edge": LIMITS.min_pixels, "longest_edge": LIMITS.max_pixels},
    )
    picture = noise(*size)
    expected = processor(images=[picture], return_tensors="pt")
    ours = prepare_image(encoded(picture), LIMITS)
    tower = make_pair().network.vision
    assert tower is not None
    _, rows, columns = expected["image_grid_thw"][0].tolist()
    assert ours.size == (columns * 4, rows * 4)
    assert ours.original_size == size
    assert (tower._patches(ours.rgb) - expected["pixel_values"]).abs().max() <= 1e-6


def test_scale_leads_back_to_the_original() -> None:
    image = prepare_image(noise(300, 100), LIMITS)
    assert (image.size[0] * image.scale[0], image.size[1] * image.scale[1]) == pytest.approx((300, 100))


def test_content_has_one_digest() -> None:
    picture = noise(64, 40)
    same = {prepare_image(source, LIMITS).digest for source in (picture, encoded(picture), encoded(picture, "BMP"))}
    assert len(same) == 1
    changed = picture.copy()
    changed.putpixel((3, 3), (0, 0, 1))
    assert prepare_image(changed, LIMITS).digest not in same
    # The same bytes in another shape are another picture.
    flat = Image.new("RGB", (64, 40), "red")
    assert prepare_image(flat, LIMITS).digest != prepare_image(flat.transpose(Image.Transpose.ROTATE_90), LIMITS).digest


@pytest.mark.parametrize("form", ["PNG", "BMP", "GIF", "WEBP", "JPEG"])
def test_common_formats(form: str) -> None:
    assert prepare_image(encoded(Image.new("RGB", (64, 64), "white"), form), LIMITS).rgb.min() >= 254


@pytest.mark.parametrize("mode", ["L", "P", "1", "CMYK", "I;16", "LA", "RGBA"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    picture = Image.new(mode, (64, 64))
    if mode in ("LA", "RGBA"):
        picture.putalpha(255)
    rgb = prepare_image(picture, LIMITS).rgb
    assert (rgb.shape, rgb.dtype) == ((64, 64, 3), np.uint8)
    assert rgb.max() == (255 if mode == "CMYK" else 0)


def test_transparency_lies_over_white() -> None:
    picture = Image.new("RGBA", (64, 64), (255, 0, 0, 0))
    picture.paste((0, 0, 255, 255), (0, 0, 32, 64))
    rgb = prepare_image(encoded(picture), LIMITS).rgb
    assert rgb[10, 10].tolist() == [0, 0, 255]
    assert rgb[10, 60].tolist() == [255, 255, 255]
    palette = Image.new("P", (64, 64), 0)
    palette.putpalette([9, 9, 9])
    assert (prepare_image(encoded(palette, transparency=0), LIMITS).rgb == 255).all()


def test_a_turned_photograph_is_turned_upright() -> None:
    picture = Image.new("RGB", (80, 40), "white")
    picture.paste("black", (0, 0, 40, 40))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by a quarter
    image = prepare_image(encoded(picture, "PNG", exif=exif), LIMITS)
    assert image.size == (40, 80)
    assert image.original_size == (40, 80)
    assert image.rgb[10].max() == 0
    assert image.rgb[70].min() == 255


def test_an_animation_gives_its_first_frame() -> None:
    frames = [Image.new("RGB", (64, 64), colour) for colour in ("black", "white")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert prepare_image(data, LIMITS).rgb.max() == 0


@pytest.mark.parametrize("cut", [10, 60, 2000])
def test_damaged_files(cut: int) -> None:
    with pytest.raises(RequestError, match=r"damaged|no picture"):
        prepare_image(encoded(noise(64, 64))[:cut], LIMITS)


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.7", b"<svg xmlns='http://www.w3.org/2000/svg'/>"])
def test_no_pictures(data: bytes) -> None:
    with pytest.raises(RequestError, match="no picture that can be read; send PNG"):
        prepare_image(data, LIMITS)


def test_too_many_pixels_are_refused_before_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_SOURCE_PIXELS", 1000)
    monkeypatch.setattr(images, "_rgb", lambda picture: pytest.fail("decoded"))
    with pytest.raises(RequestError, match="40×30 pixels; the limit is 1,000"):
        prepare_image(encoded(noise(40, 30)), LIMITS)


def test_decompression_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    with pytest.raises(RequestError, match="send a smaller one") as caught:
        prepare_image(encoded(noise(40, 30)), LIMITS)
    assert caught.value.code == "image_too_large"


def test_elongated_pictures_are_refused() -> None:
    assert prepare_image(Image.new("RGB", (1600, 8)), LIMITS).size[1] == 8
    with pytest.raises(RequestError, match="at most 200 times"):
        prepare_image(Image.new("RGB", (1608, 8)), LIMITS)


def test_limits_from_a_checkpoint() -> None:
    vision = make_pair().config.vision
    assert vision is not None
    assert ImageLimits.from_dict({}, vision) == ImageLimits(8, 65_536, 16_777_216)
    size = {"size": {"shortest_edge": 100, "longest_edge": 900}}
    assert ImageLimits.from_dict(size, vision) == ImageLimits(8, 100, 900)
    assert ImageLimits.from_dict({"min_pixels": 200, "max_pixels": 800}, vision) == ImageLimits(8, 200, 800)
