"""What stands in a request only by name: pictures and texts as data URIs, as uploaded files, or on the web."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec

from engine.messages import EngineError, ImageInput
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.images import read_data_uri
from ignis_desktop.server.state import ServerState
from ignis_desktop.server.web_images import FetchError, fetch
from ignis_desktop.store.files import PREFIX

P = ParamSpec("P")

MAX_ATTACHMENTS = 100
"""In one request."""
MAX_ADDRESSES = 16
"""Of these, on the web: all are held in memory at once before the first is decoded."""
Message = dict[str, Any]


@dataclass(frozen=True)
class Attachment:
    """Stands among a message's parts until it is read."""

    source: str
    """A data URI, an http or https address, or the id of an uploaded file."""
    where: str
    """The field of the request that errors name."""
    texts: bool = False
    """A text will do as well as a picture."""

    @property
    def on_the_web(self) -> bool:
        return self.source[:8].lower().startswith(("http://", "https://"))


async def read_messages(
    state: ServerState, convert: Callable[P, list[Message]], *args: P.args, **kwargs: P.kwargs
) -> list[Message]:
    """A request's messages as ``Engine.chat_prompt`` takes them: what ``convert`` makes of it, with what is attached.

    Raises ``ApiError`` 400 naming the part that cannot be used.
    """
    return await attach(state, await state.workers.prepare(convert, *args, **kwargs))


async def attach(state: ServerState, messages: list[Message]) -> list[Message]:
    """The messages with each ``Attachment`` read. Raises ``ApiError`` 400 naming the one that cannot be used."""
    found = [part for message in messages for part in _parts(message) if isinstance(part, Attachment)]
    if not found:
        return messages
    if len(found) > MAX_ATTACHMENTS:
        where = found[MAX_ATTACHMENTS].where
        raise bad_request(f"{where}: at most {MAX_ATTACHMENTS} pictures and files, not {len(found)}.", where)
    fetched = await _fetch_all(state, found)
    return await state.workers.prepare(_with_attachments, state, messages, fetched)


def _parts(message: Message) -> Iterable[Any]:
    content = message["content"]
    return content if isinstance(content, list) else ()


async def _fetch_all(state: ServerState, found: Iterable[Attachment]) -> dict[str, bytes]:
    """What is on the web, by address."""
    wanted = {attachment.source: attachment for attachment in found if attachment.on_the_web}
    if wanted and not state.settings.fetch_images:
        where = next(iter(wanted.values())).where
        raise bad_request(
            f"{where}: this server fetches nothing from the web; send the picture itself as a data URI "
            "(data:image/png;base64,…) or upload it to /v1/files.",
            where,
            code="unsupported_image_url",
        )
    if len(wanted) > MAX_ADDRESSES:
        where = list(wanted.values())[MAX_ADDRESSES].where
        raise bad_request(f"{where}: at most {MAX_ADDRESSES} pictures of a request are fetched.", where)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {url: group.create_task(_fetch(attachment)) for url, attachment in wanted.items()}
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return {url: task.result() for url, task in tasks.items()}


async def _fetch(attachment: Attachment) -> bytes:
    try:
        return await fetch(attachment.source)
    except FetchError as error:
        where = attachment.where
        raise bad_request(f"{where}: the picture is not used: {error}", where, "invalid_image_url") from None


def _with_attachments(state: ServerState, messages: list[Message], fetched: Mapping[str, bytes]) -> list[Message]:
    """Reads them one by one: a request that is too long is refused before all of its pictures are decoded."""
    reader = _Reader(state, fetched)
    return [
        {**message, "content": [reader.part(part) for part in _parts(message)]} if _parts(message) else message
        for message in messages
    ]


class _Reader:
    def __init__(self, state: ServerState, fetched: Mapping[str, bytes]) -> None:
        self._state = state
        self._fetched = fetched
        self._tokens = 0

    def part(self, part: Any) -> dict[str, Any]:
        if not isinstance(part, Attachment):
            return part
        kind, name, data = self._bytes(part)
        if kind.startswith("image/"):
            return {"type": "image", "image": self._image(data, part.where)}
        if not part.texts:
            raise bad_request(f"{part.where}: this is of type {kind}, not a picture.", part.where, "invalid_image")
        text = as_text(data)
        if text is None:
            message = f"{part.where}: a file is a picture or a text in UTF-8; this one, of type {kind}, is neither."
            raise bad_request(message, part.where, "unsupported_file")
        title = f' title="{name}"' if name else ""
        return {"type": "text", "text": f"<document{title}>\n{text}\n</document>"}

    def _bytes(self, part: Attachment) -> tuple[str, str, bytes]:
        """(media type, name, content)."""
        if part.on_the_web:
            return "image/*", "", self._fetched[part.source]
        if part.source.startswith(PREFIX):
            file, data = self._state.files.get(part.source), self._state.files.data(part.source)
            if file is None or data is None:
                raise bad_request(f"{part.where}: there is no file {part.source[:80]!r}.", part.where, "file_not_found")
            return file.kind, file.name, data
        kind, data = read_data_uri(part.source, part.where)
        return kind, "", data

    def _image(self, data: bytes, where: str) -> ImageInput:
        engine = self._state.engine
        try:
            image = engine.prepare_image(data)
        except EngineError as error:
            raise ApiError(error.status, f"{where}: {error.message}", code=error.code, param=where) from None
        cell = engine.loaded.image_limits().cell
        self._tokens += (image.size[0] // cell) * (image.size[1] // cell)
        if self._tokens > engine.info.context_length:
            message = (
                f"{where}: the pictures up to this one alone take {self._tokens:,} tokens; the context holds "
                f"{engine.info.context_length:,}. Send fewer or smaller ones."
            )
            raise bad_request(message, where, "context_length_exceeded")
        return image


def as_text(data: bytes) -> str | None:
    """Bytes as a text, if they are one in UTF-8."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
