"""The checkpoint's chat template: messages to token ids.

What users write never becomes a special token: before rendering, a guard character is put inside every special
token's text that stands in a message, and the rendered prompt is cut at unguarded special tokens only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.messages import ImageInput, RequestError
from engine.text.tokenizer import Tokenizer, TokenizerError

GUARD = "\ufdd0"
"""A Unicode noncharacter, which no text should hold: put inside a special token's text, it keeps it text."""

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
        longest_first = sorted(tokenizer.added_tokens, key=len, reverse=True)
        self._added = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        source = _source(folder)
        self.thinks = source is not None and "enable_thinking" in source and tokenizer.token_id("<think>") is not None
        """Whether the template can open an answer with a reasoning block."""
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
        environment.globals["raise_exception"] = _refuse
        environment.filters["tojson"] = _tojson
        environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
        try:
            self._template = None if source is None else environment.from_string(source)
        except TemplateError as error:
            raise TokenizerError(f"The chat template in {folder} does not parse: {error}") from None

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        enable_thinking: bool | None = None,
    ) -> tuple[list[int], list[ImageInput]]:
        """Token ids with one image token for each picture, and the pictures in order.

        Args:
            messages: OpenAI's shape. A picture is the part ``{"type": "image", "image": ImageInput}``.
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
            "messages": [self._message(i, message, images) for i, message in enumerate(messages)],
            "tools": self._guarded(list(tools)) if tools else None,
            "add_generation_prompt": True,
        }
        if enable_thinking is not None:
            known["enable_thinking"] = enable_thinking
        try:
            text = self._template.render(known)
        except RequestError:
            raise
        except Exception as error:  # a template is a program: it may fail in any way on messages it does not expect
            raise RequestError(f"The chat template cannot take these messages: {error}", param="messages") from None
        return self._tokenizer.encode_marked(text, GUARD), images

    def _message(self, index: int, message: Mapping[str, Any], images: list[ImageInput]) -> dict[str, Any]:
        if not isinstance(message, Mapping):
            raise RequestError(f"messages[{index}] must be an object with role and content.", param="messages")
        role = "system" if message.get("role") == "developer" else message.get("role")
        if role not in ROLES:
            raise RequestError(
                f"messages[{index}].role must be one of {', '.join(ROLES)}, not {role!r}.", param="messages"
            )
        out: dict[str, Any] = {"role": role, "content": self._content(index, message.get("content"), images)}
        for key in ("reasoning_content", "name", "tool_call_id"):
            if isinstance(message.get(key), str):
                out[key] = self._guard(message[key])
        calls = message.get("tool_calls")
        if calls:
            if not isinstance(calls, list | tuple):
                raise RequestError(f"messages[{index}].tool_calls must be a list.", param="messages")
            out["tool_calls"] = [self._tool_call(index, call) for call in calls]
        return out

    def _content(self, index: int, content: object, images: list[ImageInput]) -> object:
        if content is None:
            return ""
        if isinstance(content, str):
            return self._guard(content)
        if not isinstance(content, Sequence):
            raise RequestError(f"messages[{index}].content must be a text or a list of parts.", param="messages")
        parts: list[dict[str, object]] = []
        for part in content:
            if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
                parts.append({"type": "text", "text": self._guard(part["text"])})
            elif isinstance(part, Mapping) and isinstance(part.get("image"), ImageInput):
                parts.append({"type": "image"})
                images.append(part["image"])
            else:
                kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
                raise RequestError(
                    f"messages[{index}]: parts are of type text or image, not {kind!r}.", param="messages"
                )
        return parts

    def _tool_call(self, index: int, call: Mapping[str, Any]) -> dict[str, Any]:
        """Templates iterate over arguments, clients send them as a JSON text."""
        try:
            function = call["function"]
            arguments = function["arguments"]
            parsed = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
            return {"type": "function", "function": self._guarded({"name": function["name"], "arguments": parsed})}
        except (KeyError, TypeError, ValueError) as error:
            raise RequestError(f"messages[{index}].tool_calls cannot be read: {error!r}", param="messages") from None

    def _guard(self, text: str) -> str:
        return self._added.sub(lambda match: match[0][0] + GUARD + match[0][1:], text.replace(GUARD, ""))

    def _guarded(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._guard(value)
        if isinstance(value, Mapping):
            return {self._guarded(key): self._guarded(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self._guarded(entry) for entry in value]
        return value


def _source(folder: Path) -> str | None:
    try:
        return (folder / "chat_template.jinja").read_text(encoding="utf-8")
    except FileNotFoundError:
        pass
    try:
        found = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template")
    except (FileNotFoundError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def _refuse(message: str) -> NoReturn:
    raise RequestError(f"The chat template refuses these messages: {message}", param="messages")


def _tojson(value: object, indent: int | None = None, **_: object) -> str:
    # Jinja's own filter escapes HTML; prompts want plain JSON.
    return json.dumps(value, ensure_ascii=False, indent=indent)
