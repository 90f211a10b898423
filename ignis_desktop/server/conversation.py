"""OpenAI chat messages, checked and turned into the engine's."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ignis_desktop.server.attachments import Attachment
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.tools import checked_calls, ordered_results


class ChatMessage(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None


def chat_messages(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """As ``attachments.read_messages`` takes them. Raises ``ApiError`` 400 naming the part that cannot be used."""
    return ordered_results([_message(message, f"messages.{index}") for index, message in enumerate(messages)])


def last_user_text(messages: list[ChatMessage]) -> str:
    """The newest user message's text, as a label for the panels."""
    for message in reversed(messages):
        if message.role == "user":
            if isinstance(message.content, str):
                return message.content
            texts = (part.get("text") for part in message.content or ())
            return " ".join(text for text in texts if isinstance(text, str))
    return ""


def _message(message: ChatMessage, where: str) -> dict[str, Any]:
    converted: dict[str, Any] = dict(message.model_extra or {})
    if message.tool_calls and message.role == "assistant":
        converted["tool_calls"] = checked_calls(message.tool_calls, where)
    converted["role"] = "system" if message.role == "developer" else message.role
    if message.content is None:
        if message.role != "assistant":
            raise bad_request(f"{where}.content: a {message.role} message needs content.", f"{where}.content")
        converted["content"] = ""
    elif isinstance(message.content, str):
        converted["content"] = message.content
    else:
        parts = enumerate(message.content)
        converted["content"] = [_part(part, f"{where}.content.{index}", message.role) for index, part in parts]
    return converted


def _part(part: dict[str, Any], where: str, role: str) -> dict[str, Any] | Attachment:
    kind = part.get("type")
    if kind == "text":
        text = part.get("text")
        if not isinstance(text, str):
            raise bad_request(f"{where}.text: a text part needs its text as a string.", f"{where}.text")
        return {"type": "text", "text": text}
    if kind == "image_url":
        link = part.get("image_url")
        return attached(link.get("url") if isinstance(link, dict) else link, f"{where}.image_url.url", role)
    if kind == "file":
        file = part.get("file")
        source = (file.get("file_id") or file.get("file_data")) if isinstance(file, dict) else None
        return attached(source, f"{where}.file", role, texts=True)
    raise ApiError(
        400,
        f"{where}.type: content parts of type {kind!r} are not supported; use text, image_url and file.",
        code="unsupported_content_part",
        param=f"{where}.type",
    )


def attached(source: object, where: str, role: str, *, texts: bool = False) -> Attachment:
    """What a part names, to be read later. Raises ``ApiError`` 400 naming ``where``."""
    if not isinstance(source, str) or not source:
        what = "a file part needs a file's id or its data URI" if texts else "an image part needs a URL or a file's id"
        raise bad_request(f"{where}: {what}.", where)
    if role not in ("user", "tool"):
        raise bad_request(f"{where}: only messages of users and results of tools may carry images and files.", where)
    return Attachment(source, where, texts)
