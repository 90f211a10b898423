"""Anthropic's messages, tools and choices, checked and turned into the engine's."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ignis_desktop.server.attachments import Attachment
from ignis_desktop.server.conversation import attached
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.tools import MAX_DEPTH, ToolChoice, checked_choice, checked_tools, ordered_results, too_deep

logger = logging.getLogger(__name__)

MAX_MARKS = 4
"""Blocks of a request that may carry ``cache_control``, as at Anthropic."""
SERVED_ELSEWHERE = ("web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "advisor_")
"""Tools that Anthropic's servers run themselves. There is nothing here that could: models are not told of them."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}

Block = dict[str, Any]


class BlockMessage(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


@dataclass
class Conversation:
    """``messages``: as ``attachments.attach`` takes them; ``marks``: those after whose turn the state is kept."""

    messages: list[dict[str, Any]]
    marks: list[int]


def conversation(system: str | list[Block] | None, messages: list[BlockMessage]) -> Conversation:
    """Raises ``ApiError`` 400 naming the block that cannot be used."""
    reader = _Reader()
    if system:
        reader.system(system, "system")
    for index, message in enumerate(messages):
        where = f"messages.{index}.content"
        if message.role == "system":
            reader.system(message.content, where)
        elif message.role == "assistant":
            reader.assistant(message.content, where)
        else:
            reader.user(message.content, where)
    return Conversation(ordered_results(reader.messages), reader.marks)


def last_text(messages: list[BlockMessage]) -> str:
    """The newest user message's text, as a label for the panels."""
    for message in reversed(messages):
        if message.role == "user":
            blocks = [{"text": message.content}] if isinstance(message.content, str) else message.content
            if text := " ".join(block["text"] for block in blocks if isinstance(block.get("text"), str)):
                return text
    return ""


def tools_of(tools: list[Block]) -> list[dict[str, Any]]:
    """As ``tools.checked_tools`` gives them. Raises ``ApiError`` 400 naming the tool that cannot be used."""
    converted: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        kind = tool.get("type") or "custom"
        if isinstance(kind, str) and kind.startswith(SERVED_ELSEWHERE):
            logger.info("A tool of type %s is left out: Anthropic's servers run it", kind)
            continue
        if kind != "custom":
            where = f"tools.{index}.type"
            raise bad_request(f"{where}: only tools of type 'custom' can be called here, not {kind!r}.", where)
        function = {"name": tool.get("name"), "parameters": tool.get("input_schema")}
        if tool.get("description") is not None:
            function["description"] = tool["description"]
        converted.append({"type": "function", "function": function})
    try:
        return checked_tools(converted)
    except ApiError as error:
        raise error.renamed(".function.parameters", ".input_schema").renamed(".function", "") from None


def choice_of(choice: Block | None, tools: list[dict[str, Any]]) -> ToolChoice:
    """What ``tool_choice`` means. Raises ``ApiError`` 400."""
    if choice is None:
        return ToolChoice()
    kind = choice.get("type")
    if kind == "tool":
        return checked_choice({"type": "function", "function": {"name": choice.get("name")}}, tools)
    if not isinstance(kind, str) or kind not in _CHOICES:
        message = "tool_choice.type: auto, any, none, or tool with the name of one."
        raise bad_request(message, "tool_choice.type")
    return checked_choice(_CHOICES[kind], tools)


class _Reader:
    """Collects the engine's messages."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.marks: list[int] = []
        self._marked = 0
        self._calls: set[str] = set()
        """Of the assistant message before this one."""

    def system(self, content: str | list[Block], where: str) -> None:
        texts: list[str] = []
        marked = False
        for place, block in _blocks(content, where):
            if block["type"] != "text":
                raise bad_request(f"{place}.type: system prompts are texts, not {block['type']!r}.", f"{place}.type")
            texts.append(_text(block, place))
            marked |= self._is_marked(block, place)
        self._calls = set()
        self._add("system", "\n\n".join(texts), marked)

    def user(self, content: str | list[Block], where: str) -> None:
        parts: list[dict[str, Any] | Attachment] = []
        marked = False
        blocks = list(_blocks(content, where))
        for place, block in blocks:
            if block["type"] != "tool_result":
                parts += self._parts(block, place)
                marked |= self._is_marked(block, place)
                continue
            if parts:
                raise bad_request(f"{place}: results of tools come before anything else in a message.", place)
            call = block.get("tool_use_id")
            if not isinstance(call, str) or call not in self._calls:
                message = f"{place}.tool_use_id: a tool_result answers a tool_use block of the message before it."
                raise bad_request(message, f"{place}.tool_use_id")
            nested = self._result(block, f"{place}.content")
            self._add("tool", nested, self._is_marked(block, place), tool_call_id=call)
        self._calls = set()
        if parts or not blocks:
            self._add("user", parts, marked)

    def assistant(self, content: str | list[Block], where: str) -> None:
        text, thoughts = "", []
        calls: list[dict[str, Any]] = []
        marked = False
        for place, block in _blocks(content, where):
            marked |= self._is_marked(block, place)
            kind = block["type"]
            if kind == "text":
                text += _text(block, place)
            elif kind == "thinking":
                thoughts.append(_text(block, place, "thinking"))
            elif kind == "tool_use":
                calls.append(_call(block, place))
            elif kind == "redacted_thinking":
                continue  # nobody here can read it
            else:
                raise _unsupported(kind, place, "text, thinking and tool_use")
        extra: dict[str, Any] = {}
        if thoughts:
            extra["reasoning_content"] = "\n\n".join(thoughts)
        if calls:
            extra["tool_calls"] = calls
        self._calls = {call["id"] for call in calls}
        self._add("assistant", text, marked, **extra)

    def _add(self, role: str, content: object, marked: bool, **extra: Any) -> None:
        if marked:
            self.marks.append(len(self.messages))
        self.messages.append({"role": role, "content": content, **extra})

    def _is_marked(self, block: Block, where: str) -> bool:
        if not block.get("cache_control"):
            return False
        self._marked += 1
        if self._marked > MAX_MARKS:
            where = f"{where}.cache_control"
            raise bad_request(f"{where}: at most {MAX_MARKS} blocks of a request carry cache_control.", where)
        return True

    def _result(self, block: Block, where: str) -> list[dict[str, Any] | Attachment]:
        parts: list[dict[str, Any] | Attachment] = []
        if block.get("is_error") is True:
            parts.append({"type": "text", "text": "Error: "})
        content = block.get("content")
        if content is not None and not isinstance(content, str | list):
            raise bad_request(f"{where}: a result is a text or a list of blocks.", where)
        for place, inner in _blocks(content or "", where):
            parts += self._parts(inner, place)
        return parts or [{"type": "text", "text": ""}]

    def _parts(self, block: Block, where: str) -> list[dict[str, Any] | Attachment]:
        kind = block["type"]
        if kind == "text":
            return [{"type": "text", "text": _text(block, where)}]
        if kind == "image":
            return [_source(block, where, texts=False)]
        if kind == "document":
            return self._document(block, where)
        raise _unsupported(kind, where, "text, image, document and tool_result")

    def _document(self, block: Block, where: str) -> list[dict[str, Any] | Attachment]:
        source = block.get("source")
        kind = source.get("type") if isinstance(source, dict) else None
        if not isinstance(source, dict) or kind not in ("text", "content"):
            return [_source(block, where, texts=True)]
        title = f' title="{block["title"]}"' if isinstance(block.get("title"), str) else ""
        inner: list[dict[str, Any] | Attachment] = []
        if kind == "text":
            inner = [{"type": "text", "text": _text(source, f"{where}.source", "data")}]
        else:
            content = source.get("content")
            if not isinstance(content, str | list):
                raise bad_request(f"{where}.source.content: a text or a list of blocks.", f"{where}.source.content")
            for place, part in _blocks(content, f"{where}.source.content"):
                inner += self._parts(part, place)
        around = [{"type": "text", "text": text} for text in (f"<document{title}>\n", "\n</document>")]
        return [around[0], *inner, around[1]]


def _blocks(content: str | list[Block], where: str) -> Iterable[tuple[str, Block]]:
    """(where it stands, block), each with a ``type`` that is a text."""
    if isinstance(content, str):
        yield where, {"type": "text", "text": content}
        return
    for index, block in enumerate(content):
        place = f"{where}.{index}"
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise bad_request(f"{place}: a block is an object with its type.", place)
        yield place, block


def _text(block: Block, where: str, key: str = "text") -> str:
    if not isinstance(text := block.get(key), str):
        raise bad_request(f"{where}.{key}: a {block['type']} block needs its {key} as a string.", f"{where}.{key}")
    return text


def _source(block: Block, where: str, *, texts: bool) -> Attachment:
    """A picture, or where ``texts`` are taken also a text, wherever it comes from."""
    where = f"{where}.source"
    source = block.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    if isinstance(source, dict) and kind == "base64":
        data, media = _text({"type": "base64", **source}, where, "data"), source.get("media_type")
        if not isinstance(media, str):
            raise bad_request(f"{where}.media_type: base64 data needs its media type.", f"{where}.media_type")
        return attached(f"data:{media};base64,{data}", f"{where}.data", "user", texts=texts)
    if isinstance(source, dict) and kind in ("url", "file"):
        key = "url" if kind == "url" else "file_id"
        return attached(source.get(key), f"{where}.{key}", "user", texts=texts)
    message = f"{where}.type: a source is of type base64, url or file{', text or content' if texts else ''}."
    raise bad_request(message, f"{where}.type")


def _call(block: Block, where: str) -> dict[str, Any]:
    name, call, arguments = block.get("name"), block.get("id"), block.get("input")
    for key, value in (("id", call), ("name", name)):
        if not isinstance(value, str) or not value:
            raise bad_request(f"{where}.{key}: a tool_use block needs its {key}.", f"{where}.{key}")
    if not isinstance(arguments, dict) or too_deep(arguments):
        message = f"{where}.input: a tool_use block needs its input, an object at most {MAX_DEPTH} levels deep."
        raise bad_request(message, f"{where}.input")
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


def _unsupported(kind: str, where: str, known: str) -> ApiError:
    message = f"{where}.type: blocks of type {kind!r} are not supported here; use {known}."
    return ApiError(400, message, code="unsupported_content_part", param=f"{where}.type")
