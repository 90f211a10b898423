"""The checkpoint's byte-level BPE tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from engine.messages import EngineError

_REPLACEMENT = "\ufffd"
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character, which has no bytes; JSON and file names may bring one."""


class TokenizerError(EngineError):
    """tokenizer.json is missing or not usable."""


class Tokenizer:
    """Text to token ids and back. Thread-safe.

    Text of users never becomes a special token: ``encode`` takes "<|im_end|>" for the ten characters it is unless
    ``allow_special`` says otherwise. The backend knows the vocabulary only; added tokens are told apart here, which
    holds for those too that the publisher did not flag as special (``<think>``, ``<tool_call>``).
    """

    def __init__(self, path: Path) -> None:
        """``path``: the checkpoint's folder, or its tokenizer.json."""
        file = path / "tokenizer.json" if path.is_dir() else path
        try:
            description = json.loads(file.read_text(encoding="utf-8"))
            added = {str(t["content"]): t for t in description.pop("added_tokens", None) or []}
            self._backend = Backend.from_str(json.dumps({**description, "added_tokens": []}))
        except FileNotFoundError:
            raise TokenizerError(f"{file} is missing; copy it from the model's publisher.") from None
        except Exception as error:  # the backend raises bare Exception for anything it cannot read
            raise TokenizerError(f"{file} is not a usable tokenizer: {error}") from None
        self._added = {content: int(token["id"]) for content, token in added.items()}
        self._special_ids = frozenset(self._added[content] for content, token in added.items() if token.get("special"))
        # Longest first: of two tokens that begin alike, the longer one is meant.
        self._split = re.compile("(" + "|".join(map(_pattern, sorted(added.values(), key=_length))) + ")")
        self._vocabulary = self._backend.get_vocab()
        if not any(character in self._vocabulary for character in ("Ġ", "Ċ")):
            raise TokenizerError(f"{file} is not a byte-level BPE tokenizer; Ignis reads no other kind.")
        unknown = description.get("model", {}).get("unk_token")
        self._unknown_id = self._vocabulary.get(unknown, self._added.get(unknown, -1))

    def encode(self, text: str, *, allow_special: bool = False) -> list[int]:
        return self.encode_marked(text) if allow_special else self._encode_plain(text)

    def encode_marked(self, text: str, mark: str = "") -> list[int]:
        """Added tokens in ``text`` become their ids; ``mark`` is taken out of what lies between them."""
        ids: list[int] = []
        for content, is_added in self._pieces(text):
            if is_added:
                ids.append(self._added[content])
            else:
                ids += self._encode_plain(content.replace(mark, "") if mark else content)
        return ids

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """All bytes of all tokens as UTF-8; incomplete characters become U+FFFD."""
        table = self.token_bytes
        kept = (i for i in ids if 0 <= i < len(table) and not (skip_special and i in self._special_ids))
        return b"".join(table[i] for i in kept).decode("utf-8", errors="replace")

    def token_id(self, content: str) -> int | None:
        """Id of a token by its text: added tokens first, then the vocabulary as stored."""
        found = self._added.get(content)
        return found if found is not None else self._vocabulary.get(content)

    @property
    def special_ids(self) -> frozenset[int]:
        return self._special_ids

    @property
    def added_tokens(self) -> tuple[str, ...]:
        """Texts of the tokens that stand outside the vocabulary's own merges."""
        return tuple(self._added)

    def __len__(self) -> int:
        return len(self._vocabulary.keys() | self._added.keys())

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes each token stands for, by id; empty for ids without a token."""
        byte_of = {character: byte for byte, character in _byte_characters().items()}
        table = [b""] * (max([*self._vocabulary.values(), *self._added.values()]) + 1)
        for content, token in self._vocabulary.items():
            table[token] = b"".join(bytes([byte_of[c]]) if c in byte_of else c.encode() for c in content)
        for content, token in self._added.items():
            table[token] = content.encode()
        return table

    def _pieces(self, text: str) -> Iterator[tuple[str, bool]]:
        """The text cut at its added tokens: (piece, whether it is one)."""
        if not self._added:
            yield text, False
            return
        for number, piece in enumerate(self._split.split(text)):
            if number % 2:
                yield piece.strip() if piece not in self._added else piece, True
            elif piece:
                yield piece, False

    def _encode_plain(self, text: str) -> list[int]:
        if not text.isascii():
            text = _SURROGATE.sub(_REPLACEMENT, text)
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        if self._unknown_id not in ids:
            return ids
        # A vocabulary may lack rare bytes (Ember's does); the backend puts the unknown token, which is a special one.
        known = "".join(c if self._can_encode(c) else _REPLACEMENT for c in text)
        ids = self._backend.encode(known, add_special_tokens=False).ids
        return [token for token in ids if token != self._unknown_id]

    def _can_encode(self, character: str) -> bool:
        return self._unknown_id not in self._backend.encode(character, add_special_tokens=False).ids


def _length(token: dict[str, Any]) -> int:
    return -len(str(token["content"]))


def _pattern(token: dict[str, Any]) -> str:
    """Where an added token is found in a text, by the flags it is stored with."""
    pattern = re.escape(str(token["content"]))
    if token.get("single_word"):
        pattern = rf"(?<!\w){pattern}(?!\w)"
    return (r"\s*" if token.get("lstrip") else "") + pattern + (r"\s*" if token.get("rstrip") else "")


def _byte_characters() -> dict[int, str]:
    """Byte-level BPE's alphabet: printable bytes stand for themselves, the others for characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}


def end_token_ids(folder: Path, tokenizer: Tokenizer) -> frozenset[int]:
    """Ids that end an answer: generation_config.json's ``eos_token_id``, else tokenizer_config.json's
    ``eos_token``, and always ``<|im_end|>`` where the vocabulary has it."""
    ids: set[int] = set()
    for name, key in (("generation_config.json", "eos_token_id"), ("config.json", "eos_token_id")):
        value = _json(folder / name).get(key)
        ids.update(value if isinstance(value, list) else [value] if isinstance(value, int) else [])
    token = _json(folder / "tokenizer_config.json").get("eos_token")
    content = token.get("content") if isinstance(token, dict) else token
    if not ids and isinstance(content, str):
        ids.update(i for i in [tokenizer.token_id(content)] if i is not None)
    turn_end = tokenizer.token_id("<|im_end|>")
    return frozenset(ids | ({turn_end} if turn_end is not None else set()))


def _json(file: Path) -> dict[str, object]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise TokenizerError(f"{file} is not valid JSON: {error}") from None
    return value if isinstance(value, dict) else {}
