"""Tools in OpenAI's shape: what a request may call, checked; calls and results of earlier turns, checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.text.tool_arguments import NAME
from ignis_desktop.server.errors import bad_request

MAX_TOOLS = 512
MAX_SCHEMA_BYTES = 256 * 2**10
"""Of one tool's description and schema as JSON."""
MAX_DEPTH = 64
"""Of schemas and arguments; templates and parsers walk them recursively."""


@dataclass(frozen=True)
class ToolChoice:
    """Whether tools are called: as the model likes, never, or at least one of them."""

    mode: Literal["auto", "none", "required"] = "auto"
    name: str | None = None
    """With "required": the one tool that is called."""


AUTO = ToolChoice()


def checked_tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools as the chat template is given them: function tools with name, description and parameters, no more.

    Raises ``ApiError`` 400 that names the part that cannot be used.
    """
    if len(tools) > MAX_TOOLS:
        raise bad_request(f"tools: at most {MAX_TOOLS} tools, not {len(tools)}.", "tools")
    checked = [_tool(tool, f"tools.{index}") for index, tool in enumerate(tools)]
    names: set[str] = set()
    for index, tool in enumerate(checked):
        name = tool["function"]["name"]
        if name in names:
            where = f"tools.{index}.function.name"
            raise bad_request(f"{where}: there are two tools called {name!r}.", where)
        names.add(name)
    return checked


def schemas_of(tools: list[dict[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Parameters' schemas by name, as ``AnswerParser`` takes them."""
    return {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in tools}


def _tool(tool: dict[str, Any], where: str) -> dict[str, Any]:
    if tool.get("type") != "function":
        message = f"{where}.type: only tools of type 'function' can be called here, not {tool.get('type')!r}."
        raise bad_request(message, f"{where}.type")
    where += ".function"
    function = tool.get("function")
    if not isinstance(function, dict):
        raise bad_request(f"{where}: a tool needs an object with name, description and parameters.", where)
    name = function.get("name")
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        message = f"{where}.name: a tool's name is 1 to 128 letters, digits, '_', '-', '.' or ':'."
        raise bad_request(message, f"{where}.name")
    checked: dict[str, Any] = {"name": name}
    description, parameters = function.get("description"), function.get("parameters")
    if description is not None:
        if not isinstance(description, str):
            raise bad_request(f"{where}.description: a description is a text.", f"{where}.description")
        checked["description"] = description
    if parameters is not None:
        checked["parameters"] = _schema(parameters, f"{where}.parameters")
    if len(json.dumps(checked)) > MAX_SCHEMA_BYTES:
        raise bad_request(f"{where}: a tool's description and schema hold at most {MAX_SCHEMA_BYTES:,} bytes.", where)
    return {"type": "function", "function": checked}


def _schema(schema: object, where: str) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise bad_request(f"{where}: parameters are an object, a JSON schema.", where)
    if too_deep(schema):
        raise bad_request(f"{where}: the schema is nested more than {MAX_DEPTH} levels deep.", where)
    if schema.get("type", "object") != "object":
        raise bad_request(f"{where}.type: a tool's parameters are of type 'object'.", f"{where}.type")
    if not isinstance(schema.get("properties", {}), dict):
        raise bad_request(f"{where}.properties: properties are an object, a schema a name.", f"{where}.properties")
    return schema


def checked_choice(choice: str | dict[str, Any] | None, tools: list[dict[str, Any]]) -> ToolChoice:
    """What ``tool_choice`` means. Raises ``ApiError`` 400 for one that means nothing."""
    if choice is None or choice in ("auto", "none"):
        return ToolChoice("none") if choice == "none" else AUTO
    named = choice.get("function") if isinstance(choice, dict) and choice.get("type") == "function" else None
    name = named.get("name") if isinstance(named, dict) else None
    if choice != "required" and not isinstance(name, str):
        message = "tool_choice: auto, none, required, or an object that names a function."
        raise bad_request(message, "tool_choice")
    if not tools:
        raise bad_request("tool_choice: there are no tools to choose from; send tools too.", "tool_choice")
    if name is not None and name not in schemas_of(tools):
        raise bad_request(f"tool_choice: there is no tool called {name!r}.", "tool_choice")
    return ToolChoice("required", name)


def checked_calls(calls: list[dict[str, Any]], where: str) -> list[dict[str, Any]]:
    """An assistant message's calls, their arguments parsed. Raises ``ApiError`` 400."""
    return [_call(call, f"{where}.tool_calls.{index}") for index, call in enumerate(calls)]


def _call(call: dict[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(call.get("id"), str):
        raise bad_request(f"{where}.id: a call needs the id that its result refers to.", f"{where}.id")
    function = call.get("function")
    if not isinstance(function, dict):
        raise bad_request(f"{where}.function: a call needs a function with name and arguments.", f"{where}.function")
    where += ".function"
    if not isinstance(name := function.get("name"), str):
        raise bad_request(f"{where}.name: a call needs its function's name.", f"{where}.name")
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": name, "arguments": _arguments(function.get("arguments"), f"{where}.arguments")},
    }


def _arguments(arguments: object, where: str) -> dict[str, Any]:
    try:
        parsed = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict) or too_deep(parsed):
        message = f"{where}: arguments are the JSON text of an object, at most {MAX_DEPTH} levels deep."
        raise bad_request(message, where)
    return parsed


def ordered_results(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation with each turn's tool results in the order of its calls: templates tell them apart by it alone.

    Raises ``ApiError`` 400 for a result of no call that the assistant's last message made.
    """
    ordered: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    begun = 0
    """Where the results of the calls begin."""
    for index, message in enumerate(messages):
        if message["role"] != "tool":
            calls = message.get("tool_calls") or ()
            places = {call["id"]: place for place, call in enumerate(calls)} if message["role"] == "assistant" else {}
            ordered.append(message)
            begun = len(ordered)
            continue
        call = message.get("tool_call_id")
        if not isinstance(call, str) or call not in places:
            where = f"messages.{index}.tool_call_id"
            raise bad_request(f"{where}: a tool message answers a call of the assistant message before it.", where)
        ordered.append(message)
        ordered[begun:] = sorted(ordered[begun:], key=lambda result: places[result["tool_call_id"]])
    return ordered


def too_deep(value: object) -> bool:
    """Whether lists and objects stand in each other more than ``MAX_DEPTH`` levels."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
