"""The checkpoint's byte-level BPE tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as Backend

from engine.messages import EngineError


class TokenizerError(EngineError):
    """tokenizer.json is missing or not usable."""


class Tokenizer:
    """Text to token ids and back. Thread-safe.

    Text of users never becomes a special token: ``encode`` takes "<|im_end|>" for the ten characters it is unless
    ``allow_special`` says otherwise (templates do).
    """

    def __init__(self, path: Path) -> None:
        """``path``: the checkpoint's folder, or its tokenizer.json."""
        file = path / "tokenizer.json" if path.is_dir() else path
        try:
            data = file.read_text(encoding="utf-8")
            self._special = Backend.from_str(data)
            self._plain = Backend.from_str(data)
        except FileNotFoundError:
            raise TokenizerError(f"{file} is missing; copy it from the model's publisher.") from None
        except Exception as error:  # the backend raises bare Exception for anything it cannot read
            raise TokenizerError(f"{file} is not a usable tokenizer: {error}") from None
        self._plain.encode_special_tokens = True
        self._added = {t.content: i for i, t in self._special.get_added_tokens_decoder().items()}
        self._special_ids = frozenset(i for i, t in self._special.get_added_tokens_decoder().items() if t.special)

    def encode(self, text: str, *, allow_special: bool = False) -> list[int]:
        backend = self._special if allow_special else self._plain
        return list(backend.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """All bytes of all tokens as UTF-8; incomplete characters become U+FFFD."""
        table = self.token_bytes
        kept = (i for i in ids if 0 <= i < len(table) and not (skip_special and i in self._special_ids))
        return b"".join(table[i] for i in kept).decode("utf-8", errors="replace")

    def token_id(self, content: str) -> int | None:
        """Id of a token by its text: added tokens first, then the vocabulary as stored."""
        found = self._added.get(content)
        return found if found is not None else self._special.token_to_id(content)

    def is_special(self, token: int) -> bool:
        return token in self._special_ids

    @property
    def special_ids(self) -> frozenset[int]:
        return self._special_ids

    def __len__(self) -> int:
        return self._special.get_vocab_size(with_added_tokens=True)

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes each token stands for, by id; empty for ids without a token."""
        byte_of = {character: byte for byte, character in _byte_characters().items()}
        vocabulary = self._special.get_vocab(with_added_tokens=True)
        table = [b""] * (max(vocabulary.values()) + 1)
        for content, token in vocabulary.items():
            if content in self._added:
                table[token] = content.encode()
            else:
                table[token] = b"".join(bytes([byte_of[c]]) if c in byte_of else c.encode() for c in content)
        return table


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
