"""OpenAI chat messages, checked and turned into the engine's: image parts carry decoded pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.images import decode_image
from ignis_desktop.server.tools import checked_calls, ordered_results

if TYPE_CHECKING:
    from engine import Engine


class ChatMessage(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None


def engine_messages(engine: Engine, messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """Messages as ``Engine.chat_prompt`` takes them. Decodes pictures: call it off the event loop.

    Raises ``ApiError`` 400 naming the part that cannot be used.
    """
    converted = [_message(engine, message, f"messages.{index}") for index, message in enumerate(messages)]
    return ordered_results(converted)


def last_user_text(messages: list[ChatMessage]) -> str:
    """The newest user message's text, as a label for the panels."""
    for message in reversed(messages):
        if message.role == "user":
            if isinstance(message.content, str):
                return message.content
            texts = (part.get("text") for part in message.content or ())
            return " ".join(text for text in texts if isinstance(text, str))
    return ""


def _message(engine: Engine, message: ChatMessage, where: str) -> dict[str, Any]:
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
        converted["content"] = [_part(engine, part, f"{where}.content.{index}", message.role) for index, part in parts]
    return converted


def _part(engine: Engine, part: dict[str, Any], where: str, role: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind == "text":
        text = part.get("text")
        if not isinstance(text, str):
            raise bad_request(f"{where}.text: a text part needs its text as a string.", f"{where}.text")
        return {"type": "text", "text": text}
    if kind == "image_url":
        link = part.get("image_url")
        url = link.get("url") if isinstance(link, dict) else link
        if not isinstance(url, str):
            raise bad_request(f"{where}.image_url.url: an image part needs a URL.", f"{where}.image_url.url")
        if role not in ("user", "tool"):
            raise bad_request(f"{where}: only user messages may carry images.", where)
        return {"type": "image", "image": decode_image(engine, url, f"{where}.image_url.url")}
    raise ApiError(
        400,
        f"{where}.type: content parts of type {kind!r} are not supported; use text and image_url.",
        code="unsupported_content_part",
        param=f"{where}.type",
    )
