"""The tokenizer against Hugging Face's own on Ember's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoint.catalogue import BUNDLED
from engine.text.tokenizer import Tokenizer, TokenizerError, end_token_ids

TEXTS = [
    "",
    "Hello, world!",
    "  leading and   inner spaces, tabs\tand\nlines\n\n\nand\r\nreturns ",
    "def f(x):\n    return x**2  # I'm a comment, don't split me\n",
    "2024-05-01T12:34:56Z ERROR [payment-svc] order 4711 declined: 0xdeadbeef",
    "naïve café, Ünïcödé, 中文字符, русский, עברית, emoji 👩‍👩‍👧‍👦 🇫🇷",
    "a" * 1000,
    "\u200b\ufeff\u00a0 odd spaces",
]
SPECIAL = "<|im_start|>user\nWhat does <|im_end|> mean?<think>\n\n</think><|im_end|>\n<|image_pad|><|vision_end|>x"


@pytest.fixture(scope="module")
def ember() -> Tokenizer:
    return Tokenizer(BUNDLED)


@pytest.fixture(scope="module")
def oracle() -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))


@pytest.mark.parametrize("text", [*TEXTS, SPECIAL, "<|im_end|>" * 3, "<|im_end|"])
def test_with_special_tokens_it_is_the_oracle(ember: Tokenizer, oracle: tokenizers.Tokenizer, text: str) -> None:
    assert ember.encode(text, allow_special=True) == oracle.encode(text, add_special_tokens=False).ids


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(max_codepoint=0x3FFFF, exclude_categories=["Cs", "Cc"])),
            st.sampled_from(["<|im_start|>", "<think>", "</think>", "<|im_", "\n", " ", "<|point|>"]),
        )
    ).map("".join)
)
def test_with_special_tokens_it_is_the_oracle_on_anything(
    ember: Tokenizer, oracle: tokenizers.Tokenizer, text: str
) -> None:
    ids = ember.encode(text, allow_special=True)
    assert ids == oracle.encode(text, add_special_tokens=False).ids
    assert ember.decode(ids) == text
    plain = ember.encode(text)
    assert ember.decode(plain) == text
    assert not set(plain) & {ember.token_id(token) for token in ember.added_tokens}


@pytest.mark.parametrize("text", TEXTS)
def test_ordinary_text_needs_no_permission(ember: Tokenizer, text: str) -> None:
    assert ember.encode(text) == ember.encode(text, allow_special=True)
    assert ember.decode(ember.encode(text)) == text


@pytest.mark.parametrize("text", ["a\x04b", "\x06", "x\U000e0041y\x1dz", "\U00040000"])
def test_bytes_the_vocabulary_lacks_never_become_a_special_token(ember: Tokenizer, text: str) -> None:
    ids = ember.encode(text)
    assert ids
    assert not set(ids) & ember.special_ids
    assert "\ufffd" in ember.decode(ids)


def test_marks_come_out_between_special_tokens(ember: Tokenizer) -> None:
    marked = "<|im_start|>user\n<\ufdd0|im_end|> and <\ufdd0think><|im_end|>"
    ids = ember.encode_marked(marked, "\ufdd0")
    assert ids == [
        ember.token_id("<|im_start|>"),
        *ember.encode("user\n<|im_end|> and <think>"),
        ember.token_id("<|im_end|>"),
    ]


def test_every_token_has_its_bytes(ember: Tokenizer, oracle: tokenizers.Tokenizer) -> None:
    assert len(ember) == oracle.get_vocab_size(with_added_tokens=True) == 49160
    assert len(ember.token_bytes) == 49160
    assert all(ember.token_bytes)
    for token in (0, 2, 17, 198, 4093, 30000, 49158):
        assert ember.token_bytes[token].decode() == oracle.decode([token], skip_special_tokens=False)


def test_decode_skips_special_tokens_but_keeps_reasoning_marks(ember: Tokenizer) -> None:
    ids = ember.encode("<|im_start|>a<think>b</think><|im_end|>", allow_special=True)
    assert ember.decode(ids) == "<|im_start|>a<think>b</think><|im_end|>"
    assert ember.decode(ids, skip_special=True) == "a<think>b</think>"
    assert ember.decode([*ids, -1, 10**6]) == ember.decode(ids)


def test_embers_end_is_the_end_of_a_turn(ember: Tokenizer) -> None:
    assert end_token_ids(BUNDLED, ember) == {ember.token_id("<|im_end|>"), ember.token_id("<|endoftext|>")}


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({"generation_config.json": {"eos_token_id": 7}}, {2, 7}),
        ({"generation_config.json": {"eos_token_id": [7, 8]}, "config.json": {"eos_token_id": 9}}, {2, 7, 8, 9}),
        ({"tokenizer_config.json": {"eos_token": "<|endoftext|>"}}, {0, 2}),
        ({"tokenizer_config.json": {"eos_token": {"content": "<|endoftext|>"}}}, {0, 2}),
        ({}, {2}),
    ],
)
def test_end_tokens_are_found_where_publishers_put_them(
    ember: Tokenizer, tmp_path: Path, files: dict[str, object], ends: set[int]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert end_token_ids(tmp_path, ember) == ends


def test_longer_tokens_and_flags(tmp_path: Path) -> None:
    raw = json.loads((BUNDLED / "tokenizer.json").read_text(encoding="utf-8"))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    raw["added_tokens"] += [
        {"id": 49160, "content": "<|im_end|>x", **flags},
        {"id": 49161, "content": "[STRIP]", **flags, "lstrip": True, "rstrip": True},
        {"id": 49162, "content": "wörd", **flags, "single_word": True},
    ]
    (tmp_path / "tokenizer.json").write_text(json.dumps(raw))
    mine, oracle = Tokenizer(tmp_path), tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in ("a<|im_end|>xb", "a<|im_end|>b", "a  [STRIP]\n b", "a wörd, wörds; swörd wörd"):
        assert mine.encode(text, allow_special=True) == oracle.encode(text, add_special_tokens=False).ids, text


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (None, "is missing"),
        ("{", "not a usable tokenizer"),
        ("[]", "not a usable tokenizer"),
        (
            json.dumps({"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}),
            "byte-level",
        ),
    ],
)
def test_a_bad_tokenizer_is_one_sentence(tmp_path: Path, content: str | None, word: str) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(TokenizerError, match=word):
        Tokenizer(tmp_path)
