"""Items of OpenAI's Responses, checked and turned into the engine's messages; its tools, turned into function tools."""

from __future__ import annotations

import base64
import binascii
import json
import logging
import uuid
from collections.abc import Iterable
from typing import Any

from ignis_desktop.server.attachments import Attachment
from ignis_desktop.server.conversation import attached
from ignis_desktop.server.errors import ApiError, bad_request
from ignis_desktop.server.tools import ToolChoice, checked_calls, checked_choice, checked_tools, ordered_results

logger = logging.getLogger(__name__)

Item = dict[str, Any]

_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
_CALLED_HERE = ("function", "custom")
_OWN_PART = ("output_text", "refusal", "text", "summary_text")


def as_items(given: str | list[Item]) -> list[Item]:
    """A request's input as a list of items, each with its type and an id. Raises ``ApiError`` 400."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    items = []
    for index, item in enumerate(given):
        where = f"input.{index}"
        kind = item.get("type", "message" if "role" in item else None)
        if not isinstance(kind, str):
            raise bad_request(f"{where}.type: an item is an object with its type, or a message with its role.", where)
        given_id = item.get("id")
        item_id = given_id if isinstance(given_id, str) and given_id else new_id(kind)
        items.append({**_listed(item, kind), "type": kind, "id": item_id})
    return items


def new_id(kind: str) -> str:
    """For an item of this type."""
    return f"{_PREFIXES.get(kind, 'item')}_{uuid.uuid4().hex}"


def engine_messages(instructions: str | None, earlier: list[Item], items: list[Item]) -> list[dict[str, Any]]:
    """As ``attachments.attach`` takes them.

    ``earlier`` are the items of the responses before this one: what cannot be used of ``items`` is named by its place.

    Raises ``ApiError`` 400.
    """
    reader = _Reader()
    if instructions:
        reader.system(instructions)
    for item in earlier:
        reader.item(item, "previous_response_id")
    for index, item in enumerate(items):
        reader.item(item, f"input.{index}")
    return ordered_results(reader.messages)


def last_text(items: list[Item]) -> str:
    """The newest user message's text, as a label for the panels."""
    for item in reversed(items):
        if item["type"] == "message" and item.get("role") == "user" and isinstance(item.get("content"), list):
            texts = [part.get("text") for part in item["content"] if isinstance(part, dict)]
            if text := " ".join(text for text in texts if isinstance(text, str)):
                return text
    return ""


class _Reader:
    """Collects the engine's messages. Items of one answer, one after the other, are one message."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._thoughts: list[str] = []
        """Reasoning that belongs to the assistant's next item."""
        self._before = ""
        """Type of the item before this one, where that is the assistant's."""
        self._calls: set[str] = set()
        """Of the assistant's newest message."""

    def system(self, text: str) -> None:
        """Several in a row are one: templates take one at most."""
        if self.messages and self.messages[-1]["role"] == "system":
            self.messages[-1]["content"] += "\n\n" + text
        else:
            self._add("system", text)

    def item(self, item: Item, where: str) -> None:
        kind = item["type"]
        if kind == "message":
            self._message(item, where)
        elif kind == "reasoning":
            self._thoughts += _thoughts(item)
        elif kind in ("function_call", "custom_tool_call"):
            self._call(item, where)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._result(item, where)
        else:
            message = f"{where}.type: items of type {kind!r} are not supported here."
            raise ApiError(400, message, code="unsupported_item", param=f"{where}.type")

    def _message(self, item: Item, where: str) -> None:
        role = item.get("role")
        if role not in ("user", "assistant", "system", "developer"):
            message = f"{where}.role: a message's role is user, assistant, system or developer, not {role!r}."
            raise bad_request(message, f"{where}.role")
        parts = list(_parts(item.get("content"), f"{where}.content", role))
        if role == "user":
            self._add("user", parts)
            return
        text = "".join(part["text"] for part in parts if isinstance(part, dict))
        if role != "assistant":
            self.system(text)
            return
        turn = self._turn(new=self._before == "message")
        turn["content"] += text
        self._before = "message"

    def _call(self, item: Item, where: str) -> None:
        custom = item["type"] == "custom_tool_call"
        arguments = {"input": item.get("input")} if custom else item.get("arguments")
        call = {"id": item.get("call_id"), "function": {"name": item.get("name"), "arguments": arguments}}
        try:
            (checked,) = checked_calls([call], where)
        except ApiError as error:
            place = f"{where}.tool_calls.0"
            raise error.renamed(f"{place}.function", where).renamed(f"{place}.id", f"{where}.call_id") from None
        turn = self._turn()
        turn.setdefault("tool_calls", []).append(checked)
        self._calls.add(checked["id"])
        self._before = item["type"]

    def _result(self, item: Item, where: str) -> None:
        call = item.get("call_id")
        if not isinstance(call, str) or call not in self._calls:
            place = f"{where}.call_id"
            raise bad_request(f"{place}: an output answers a call that comes before it.", place)
        parts = list(_parts(item.get("output"), f"{where}.output", "tool"))
        self._add("tool", parts, tool_call_id=call)

    def _turn(self, *, new: bool = False) -> dict[str, Any]:
        """The assistant's message that this item is a part of."""
        if new or not self._before:
            self._add("assistant", "")
        turn = self.messages[-1]
        if self._thoughts:
            before = [turn["reasoning_content"]] if "reasoning_content" in turn else []
            turn["reasoning_content"] = "\n\n".join([*before, *self._thoughts])
            self._thoughts = []
        return turn

    def _add(self, role: str, content: object, **extra: Any) -> None:
        if role != "assistant":
            self._thoughts, self._before = [], ""
        if role != "tool":
            self._calls = set()
        self.messages.append({"role": role, "content": content, **extra})


def _parts(content: object, where: str, role: str) -> Iterable[dict[str, Any] | Attachment]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
        return
    if not isinstance(content, list):
        raise bad_request(f"{where}: a text or a list of parts is needed.", where)
    for index, part in enumerate(content):
        place = f"{where}.{index}"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("input_text", *_OWN_PART):
            text = part.get("refusal" if kind == "refusal" else "text")
            if not isinstance(text, str):
                raise bad_request(f"{place}.text: a text part needs its text as a string.", f"{place}.text")
            yield {"type": "text", "text": text}
        elif kind == "input_image":
            key = "file_id" if part.get("file_id") else "image_url"
            yield attached(part.get(key), f"{place}.{key}", role)
        elif kind == "input_file":
            key = next((key for key in ("file_id", "file_data", "file_url") if part.get(key)), "file_id")
            yield attached(part.get(key), f"{place}.{key}", role, texts=True)
        else:
            message = f"{place}.type: content parts of type {kind!r} are not supported; use input_text and input_image."
            raise ApiError(400, message, code="unsupported_content_part", param=f"{place}.type")


def _thoughts(item: Item) -> list[str]:
    """What an item holds of reasoning: in plain words, else as ``sealed`` wrote it; nothing where others sealed it."""
    content = item.get("content")
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    found = [text for text in texts if isinstance(text, str)]
    if not found and isinstance(item.get("encrypted_content"), str):
        try:
            found = [base64.b64decode(item["encrypted_content"], validate=True).decode()]
        except (binascii.Error, ValueError):
            logger.debug("Reasoning that another server encrypted is left out")
    return found


def sealed(text: str) -> str:
    """Reasoning for clients that keep it themselves (``reasoning.encrypted_content``). It is theirs to read."""
    return base64.b64encode(text.encode()).decode()


def _listed(item: Item, kind: str) -> Item:
    """A message as it is listed later: with its content as parts."""
    content = item.get("content")
    if kind != "message" or not isinstance(content, str):
        return item
    part = {"type": "output_text", "annotations": []} if item.get("role") == "assistant" else {"type": "input_text"}
    return {**item, "content": [{**part, "text": content}], "status": "completed"}


def tools_of(tools: list[Item]) -> tuple[list[dict[str, Any]], list[Item]]:
    """(function tools as ``tools.checked_tools`` gives them, the request's tools that these stand for).

    A custom tool, which takes a text, becomes a function with that text as its only argument. Tools that OpenAI's
    servers run themselves are left out: there is nothing here that could. Raises ``ApiError`` 400.
    """
    converted: list[dict[str, Any]] = []
    taken: list[Item] = []
    for index, tool in enumerate(tools):
        kind = tool.get("type")
        if kind not in _CALLED_HERE:
            if not isinstance(kind, str):
                raise bad_request(f"tools.{index}.type: a tool has a type, such as function.", f"tools.{index}.type")
            logger.info("A tool of type %s is left out: OpenAI's servers run it", kind[:40])
            continue
        function = {key: tool[key] for key in ("name", "description", "parameters") if tool.get(key) is not None}
        if kind == "custom":
            function |= _of_text(tool)
        converted.append({"type": "function", "function": function})
        taken.append(tool)
    try:
        return checked_tools(converted), taken
    except ApiError as error:
        raise error.renamed(".function", "") from None


def _of_text(tool: Item) -> dict[str, Any]:
    form = tool.get("format")
    description = tool.get("description") or ""
    if isinstance(form, dict) and form.get("type") == "grammar":
        description += f"\n\nThe input follows this grammar ({form.get('syntax')}):\n{form.get('definition')}"
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return {"description": description, "parameters": schema}


def custom_names(taken: list[Item]) -> frozenset[str]:
    """Names of the custom tools."""
    return frozenset(tool["name"] for tool in taken if tool["type"] == "custom")


def text_of(arguments: str) -> str:
    """The text in the arguments of a call of a custom tool; what the model wrote where that is something else."""
    try:
        return str(json.loads(arguments)["input"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return arguments


def choice_of(choice: str | Item | None, tools: list[dict[str, Any]]) -> tuple[ToolChoice, list[dict[str, Any]]]:
    """What ``tool_choice`` means, and the tools that it leaves. Raises ``ApiError`` 400."""
    if not isinstance(choice, dict):
        return checked_choice(choice, tools), tools
    kind = choice.get("type")
    if kind in _CALLED_HERE:
        named = {"type": "function", "function": {"name": choice.get("name")}}
        return checked_choice(named, tools), tools
    allowed = choice.get("tools")
    if kind != "allowed_tools" or not isinstance(allowed, list):
        message = "tool_choice: auto, none, required, or an object of type function, custom or allowed_tools."
        raise bad_request(message, "tool_choice")
    names = [tool.get("name") for tool in allowed if isinstance(tool, dict)]
    left = [tool for tool in tools if tool["function"]["name"] in names]
    mode = choice.get("mode", "auto")
    if mode not in ("auto", "required"):
        raise bad_request("tool_choice.mode: auto or required.", "tool_choice.mode")
    return checked_choice(mode, left), left
