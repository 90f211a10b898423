"""The checkpoint's chat template: messages to token ids.

The template is rendered once, as a whole, so that its logic sees what it was written for. What users write never
becomes a special token on the way: before rendering, a guard is put inside every special token's text that stands in a
message, and inside every beginning of one that a text ends with (what follows might complete it); the rendered prompt
is cut at unguarded special tokens only, then the guards come out. Ordinary text is tokenised exactly as the publisher's
own tools tokenise it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateSyntaxError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.messages import ImageInput, RequestError
from engine.text.call_grammar import CallForm
from engine.text.thinking import OPEN, split_reasoning
from engine.text.tokenizer import Tokenizer, TokenizerError
from engine.text.tool_calls import FUNCTION

_GUARD = "\ufdd0"
"""A Unicode noncharacter, which no text should hold; repeated until no text of the request holds it."""

ROLES = ("system", "user", "assistant", "tool")


class ChatTemplate:
    """Renders messages in OpenAI's shape. Thread-safe."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        """Reads chat_template.jinja, else the ``chat_template`` of tokenizer_config.json. A checkpoint without either
        loads; encoding messages is then refused.

        Raises:
            TokenizerError: the template does not parse.
        """
        self._tokenizer = tokenizer
        self._starts = _starts(tokenizer.added_tokens)
        source = _source(folder)
        self.exists = source is not None
        self.thinks = source is not None and "enable_thinking" in source and tokenizer.token_id(OPEN) is not None
        """Whether the template can open an answer with a reasoning block."""
        self.takes_tools = source is not None and "tools" in source
        """Whether the template tells the model of tools."""
        self.call_form: CallForm = "xml" if source is not None and FUNCTION in source else "json"
        """How it shows the model to write calls."""
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, autoescape=False, extensions=[loopcontrols]
        )
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        environment.filters["tojson"] = _tojson
        try:
            self._template = None if source is None else environment.from_string(source)
        except TemplateSyntaxError as error:
            where = f"line {error.lineno}: {error.message}"
            raise TokenizerError(f"The chat template in {folder} does not parse ({where}).") from None
        self._system_anywhere = self._takes([("user", "a"), ("system", "b"), ("user", "c")])

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        enable_thinking: bool | None = None,
    ) -> tuple[list[int], list[ImageInput]]:
        """Token ids with one image token for each picture, and the pictures in order.

        Args:
            messages: OpenAI's shape. A picture is the part ``{"type": "image", "image": ImageInput}``. Where the
                template takes one system message only, those at the beginning are put together and later ones are the
                user's.
            enable_thinking: None leaves it to the template.

        Raises:
            RequestError: no messages, an unknown role or part, or the template refuses them.
        """
        if self._template is None:
            raise RequestError("This model has no chat template; use /v1/completions with a plain prompt.")
        if not messages:
            raise RequestError("messages is empty; send at least one.", param="messages")
        images: list[ImageInput] = []
        known: dict[str, Any] = {
            "messages": self._arranged([_message(i, message, images) for i, message in enumerate(messages)]),
            "tools": list(tools) if tools else None,
        }
        guard = _unused_guard(known)
        known = _changed(known, lambda text: self._guard(text, guard))
        known["add_generation_prompt"] = True
        if enable_thinking is not None:
            known["enable_thinking"] = enable_thinking
        try:
            text = self._template.render(known)
        except RequestError:
            raise
        except Exception as error:  # a template is a program: it may fail in any way on messages it does not expect
            raise RequestError(f"The chat template cannot take these messages: {error}", param="messages") from None
        return self._tokenizer.encode_marked(text, guard), images

    def _takes(self, messages: Sequence[tuple[str, str]]) -> bool:
        """Whether the template takes messages of these (role, content)."""
        if self._template is None:
            return False
        try:
            self._template.render(messages=[{"role": role, "content": content} for role, content in messages])
        except Exception:
            return False
        return True

    def _arranged(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages with system messages where the template takes them."""
        if self._system_anywhere:
            return messages
        arranged: list[dict[str, Any]] = []
        for message in messages:
            if message["role"] != "system" or not arranged:
                arranged.append(message)
            elif len(arranged) == 1 and arranged[0]["role"] == "system":
                contents = (arranged[0]["content"], message["content"])
                arranged[0] = {**message, "content": "\n\n".join(map(_plain, contents))}
            else:
                arranged.append({**message, "role": "user"})
        return arranged

    def _guard(self, text: str, guard: str) -> str:
        return self._starts.sub(lambda start: start[0] + guard, text)


def _message(index: int, message: Mapping[str, Any], images: list[ImageInput]) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise RequestError(f"messages[{index}] must be an object with role and content.", param="messages")
    role = "system" if message.get("role") == "developer" else message.get("role")
    if role not in ROLES:
        raise RequestError(f"messages[{index}].role must be one of {', '.join(ROLES)}, not {role!r}.", param="messages")
    out: dict[str, Any] = {"role": role, "content": _content(index, message.get("content"), images)}
    if role == "assistant" and isinstance(content := out["content"], str) and content.lstrip().startswith(OPEN):
        # Templates leave earlier reasoning out by its tags, which the guards below make unreadable to them.
        out["reasoning_content"], out["content"] = split_reasoning(content)
    for key in ("reasoning_content", "name", "tool_call_id"):
        if isinstance(message.get(key), str):
            out[key] = message[key]
    calls = message.get("tool_calls")
    if calls:
        if not isinstance(calls, list | tuple):
            raise RequestError(f"messages[{index}].tool_calls must be a list.", param="messages")
        out["tool_calls"] = [_tool_call(index, call) for call in calls]
    return out


def _content(index: int, content: object, images: list[ImageInput]) -> object:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise RequestError(f"messages[{index}].content must be a text or a list of parts.", param="messages")
    parts: list[dict[str, object]] = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
            parts.append({"type": "text", "text": part["text"]})
        elif isinstance(part, Mapping) and isinstance(part.get("image"), ImageInput):
            parts.append({"type": "image"})
            images.append(part["image"])
        else:
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise RequestError(f"messages[{index}]: parts are of type text or image, not {kind!r}.", param="messages")
    return parts


def _plain(content: str | list[dict[str, str]]) -> str:
    """The text of a message's content."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _tool_call(index: int, call: Mapping[str, Any]) -> dict[str, Any]:
    """Templates iterate over arguments, clients send them as a JSON text."""
    try:
        function = call["function"]
        arguments = function["arguments"]
        parsed = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
        return {"type": "function", "function": {"name": function["name"], "arguments": parsed}}
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError(f"messages[{index}].tool_calls cannot be read: {error!r}", param="messages") from None


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """``value`` with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_changed(key, change): _changed(entry, change) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_changed(entry, change) for entry in value]
    return value


def _unused_guard(value: Any) -> str:
    """One guard character more than the texts of the request hold together, so that they never make up a guard."""
    held = 0

    def count(text: str) -> str:
        nonlocal held
        held += text.count(_GUARD)
        return text

    _changed(value, count)
    return _GUARD * (held + 1)


def _starts(tokens: Sequence[str]) -> re.Pattern[str]:
    """First characters of the places where a token stands, whole or cut off by the end of the text."""

    def whole_or_cut(token: str) -> str:
        pattern = ""
        for character in reversed(token[1:]):
            pattern = rf"(?:\Z|{re.escape(character)}{pattern})"
        return re.escape(token[0]) + pattern

    return re.compile(f"(?={'|'.join(map(whole_or_cut, tokens))})(?s:.)" if tokens else r"(?!)")


def _source(folder: Path) -> str | None:
    try:
        return (folder / "chat_template.jinja").read_text(encoding="utf-8")
    except FileNotFoundError:
        pass
    try:
        found = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template")
    except (FileNotFoundError, ValueError, AttributeError):
        return None
    if isinstance(found, list):  # several templates by name
        found = next((t.get("template") for t in found if isinstance(t, dict) and t.get("name") == "default"), None)
    return found if isinstance(found, str) else None


def _refuse(message: str) -> NoReturn:
    raise RequestError(f"The chat template refuses these messages: {message}", param="messages")


def _tojson(value: object, indent: int | None = None, **_: object) -> str:
    # Jinja's own filter escapes HTML; prompts want plain JSON.
    return json.dumps(value, ensure_ascii=False, indent=indent)
