"""Data URIs, and the pictures in them."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import images as engine_images
from engine.messages import EngineError, ImageInput
from ignis_desktop.server.errors import ApiError, bad_request

if TYPE_CHECKING:
    from PIL import Image

    from engine import Engine

HEADER = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?P<parameters>(;[^;,]*)*),", re.ASCII)


def data_uri_bytes(uri: str, param: str) -> bytes:
    """The bytes of an image's data URI; raises ``ApiError`` 400 naming ``param``."""
    if uri[:8].lower().startswith(("http://", "https://")):
        raise bad_request(
            f"{param}: this server fetches nothing; send the image itself as a data URI (data:image/png;base64,…).",
            param,
            code="unsupported_image_url",
        )
    kind, data = read_data_uri(uri, param)
    if not kind.startswith("image/"):
        raise bad_request(f"{param}: a data URI of type {kind} is not an image.", param, code="invalid_image")
    return data


def read_data_uri(uri: str, param: str) -> tuple[str, bytes]:
    """(media type, content) of a data URI; raises ``ApiError`` 400 naming ``param``."""
    head = HEADER.match(uri)
    if head is None:
        raise bad_request(f"{param}: an image is a data URI (data:image/png;base64,…).", param, code="invalid_image")
    if not head["parameters"].endswith(";base64"):
        raise bad_request(f"{param}: the data must be base64-encoded (;base64,).", param, code="invalid_image")
    return (head["type"] or "text/plain").lower(), from_base64(uri[head.end() :], param)


def from_base64(text: str, param: str) -> bytes:
    """Raises ``ApiError`` 400 naming ``param``."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_request(f"{param}: the base64 is broken ({error}).", param, code="invalid_image") from None


def media_type(data: bytes, param: str) -> str | None:
    """Of a file that begins like a picture which can be read; None for any other. Raises ``ApiError`` 400 for a
    picture that is too large to be used."""
    try:
        kind = engine_images.format_of(data)
    except EngineError as error:
        raise ApiError.of(error, param) from None
    return None if kind is None else f"image/{kind.lower()}"


@dataclass(frozen=True)
class Picture:
    """A picture in its own size (RGB), and as the engine takes it."""

    source: Image.Image
    image: ImageInput


def decode_picture(engine: Engine, uri: str, param: str) -> Picture:
    """The picture behind a data URI. Call it off the event loop. Raises ``ApiError`` naming ``param``."""
    data = data_uri_bytes(uri, param)
    try:
        source = engine_images.decode_image(data)
        return Picture(source, engine.prepare_image(source))
    except EngineError as error:
        raise ApiError.of(error, param) from None
