"""Pictures in requests: data URIs, and what they hold."""

from __future__ import annotations

import base64
import io

import httpx
import pytest
from PIL import Image

from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.images import data_uri_bytes

DATA = bytes(range(256))
ENCODED = base64.b64encode(DATA).decode()


@pytest.mark.parametrize(
    "uri",
    [
        f"data:image/png;base64,{ENCODED}",
        f"data:image/svg+xml;charset=utf-8;base64,{ENCODED}",
        f"data:image/jpeg;base64,{ENCODED[:76]}\r\n{ENCODED[76:]}\n",
    ],
)
def test_bytes_come_out(uri: str) -> None:
    assert data_uri_bytes(uri, "image") == DATA


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("https://example.org/a.png", "unsupported_image_url"),
        ("HTTP://example.org/a.png", "unsupported_image_url"),
        ("file:///etc/passwd", "invalid_image"),
        ("", "invalid_image"),
        ("iVBORw0KGgo=", "invalid_image"),
        (f"data:text/plain;base64,{ENCODED}", "invalid_image"),
        (f"data:;base64,{ENCODED}", "invalid_image"),
        ("data:image/png,abc", "invalid_image"),
        ("data:image/png;base64,%%%", "invalid_image"),
        ("data:image/png;base64,abc", "invalid_image"),
    ],
)
def test_everything_else_is_refused_with_the_place_it_stands_at(uri: str, code: str) -> None:
    with pytest.raises(ApiError) as refused:
        data_uri_bytes(uri, "messages.0.content.1.image_url.url")
    assert (refused.value.status, refused.value.code) == (400, code)
    assert refused.value.param == "messages.0.content.1.image_url.url"


def animation() -> bytes:
    frames = [Image.new("P", (32, 32), number) for number in range(3)]
    data = io.BytesIO()
    frames[0].save(data, "GIF", save_all=True, append_images=frames[1:], duration=50)
    return data.getvalue()


def bomb() -> bytes:
    """A few kilobytes that would be 400 million pixels."""
    data = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(data, "PNG")
    return data.getvalue()


def plain(kind: str = "PNG") -> bytes:
    data = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(data, kind)
    return data.getvalue()


def ask(http: httpx.Client, data: bytes) -> httpx.Response:
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What?"}]
    return http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": parts}], "max_tokens": 1})


@pytest.mark.parametrize(
    "data", [animation(), plain(), plain("JPEG"), plain("WEBP")], ids=["GIF", "PNG", "JPEG", "WebP"]
)
def test_pictures_that_are_read(http: httpx.Client, data: bytes) -> None:
    assert ask(http, data).status_code == 200


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (bomb(), "image_too_large"),
        (plain()[:-200], "invalid_image"),
        (plain()[:40], "invalid_image"),
        (plain("JPEG")[:200], "invalid_image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "invalid_image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "invalid_image"),
        (b"", "invalid_image"),
    ],
    ids=["bomb", "cut", "head", "JPEG", "PostScript", "SVG", "empty"],
)
def test_pictures_that_are_refused(http: httpx.Client, data: bytes, code: str) -> None:
    answer = ask(http, data)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == (code, "messages.0.content.0.image_url.url")


def test_pictures_that_are_too_many(http: httpx.Client) -> None:
    url = "data:image/png;base64," + base64.b64encode(plain()).decode()
    parts = [{"type": "image_url", "image_url": {"url": url}}] * 101
    answer = http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": parts}]})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages.0.content.100.image_url.url"
