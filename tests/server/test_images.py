"""Data URIs."""

from __future__ import annotations

import base64

import pytest

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
