"""A data folder in miniature: a byte tokenizer, a small network, a few drawn screens, documents, pairs and a
teacher."""

from __future__ import annotations

import gzip
import io
import json
import random

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from assets.ember.recipe.screens.pack import write_shard
from assets.ember.recipe.teacher import Teacher

SPECIALS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|point|>",
    "<|line|>",
)
HIDDEN, HEADS, DIM = 48, 2, 32


def make_tokenizer(path):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    tokenizer.save(str(path))
    return tokenizer


def make_config(path, vocab):
    layers = ["full_attention" if (i + 1) % 4 == 0 else "linear_attention" for i in range(16)]
    text = {
        "vocab_size": vocab,
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "layer_types": layers,
        "num_hidden_layers": 16,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 1,
        "head_dim": DIM,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e5,
            "partial_rotary_factor": 1.0,
            "mrope_section": [6, 5, 5],
            "mrope_interleaved": True,
        },
    }
    vision = {
        "hidden_size": 32,
        "depth": 2,
        "num_heads": 2,
        "intermediate_size": 64,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "num_position_embeddings": 64,
        "out_hidden_size": HIDDEN,
    }
    path.write_text(json.dumps({"text_config": text, "vision_config": vision, "image_token_id": vocab - 3}))


def make_screen(rng):
    """One 256×192 screen with four labelled buttons and an icon, as (WebP bytes, record)."""
    image = Image.new("RGB", (256, 192), (240, 240, 240))
    draw = ImageDraw.Draw(image)
    items = []
    for row, name in enumerate(rng.sample(("Save", "Open", "Close", "Print", "Copy", "Paste", "Undo"), 4)):
        box = [20, 10 + 40 * row, 100, 40 + 40 * row]
        draw.rectangle(box, outline=(0, 0, 0))
        draw.text((30, 18 + 40 * row), name, fill=(0, 0, 0))
        items.append(
            {
                "box": box,
                "kind": "button",
                "queries": [{"q": name, "by": "text"}, {"q": f"{name.lower()} it now", "by": "function"}],
            }
        )
    draw.ellipse((200, 80, 220, 100), fill=(200, 0, 0))
    items.append({"box": [200, 80, 220, 100], "kind": "icon", "queries": [{"q": "red dot", "by": "name"}]})
    data = io.BytesIO()
    image.save(data, "WEBP", quality=80)
    return data.getvalue(), {"w": 256, "h": 192, "source": "drawn for tests", "theme": "light", "items": items}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    tokenizer = make_tokenizer(root / "tokenizer.json")
    make_config(root / "config.json", tokenizer.get_vocab_size())
    rng = random.Random(0)
    text = " ".join(f"The quick brown fox number {i} jumps over the lazy dog today." for i in range(400))
    ids = np.array(tokenizer.encode(text).ids, np.uint16)
    np.savez_compressed(root / "documents.npz", train=ids, heldout=ids[:6000])
    np.save(root / "chats.npy", np.random.default_rng(0).integers(0, 200, (8, 128)).astype(np.uint16))
    with gzip.open(root / "paraphrase_pairs.jsonl.gz", "wt") as file:
        for i in range(600):
            file.write(
                json.dumps({"q": f"thing that counts to {i}", "t": f"counter number {i} of the series", "src": "test"})
                + "\n"
            )
    (root / "shards").mkdir()
    write_shard(
        root / "shards" / "a.tar",
        [
            (data, {**record, "split": split})
            for split in ("train", "heldout")
            for data, record in [make_screen(rng) for _ in range(6)]
        ],
    )
    return root


@pytest.fixture
def teacher(folder):
    vocab = json.loads((folder / "config.json").read_text())["text_config"]["vocab_size"]
    generator = torch.Generator().manual_seed(0)
    rows = {"q": HEADS * DIM, "k": DIM, "v": DIM, "gate": 64, "up": 64}
    weights = {"embed": torch.randn(vocab - 5, HIDDEN, generator=generator) * 0.1, "norm": torch.ones(HIDDEN)}
    for layer in range(30):
        for name, size in rows.items():
            weights[f"{layer}.{name}"] = torch.randn(size, HIDDEN, generator=generator) * 0.05
        weights[f"{layer}.o"] = torch.randn(HIDDEN, HEADS * DIM, generator=generator) * 0.05
        weights[f"{layer}.down"] = torch.randn(HIDDEN, 64, generator=generator) * 0.05
        weights[f"{layer}.norm1"] = weights[f"{layer}.norm2"] = torch.ones(HIDDEN)
    return Teacher(weights, HEADS, 1, 1e-5, 1e5)
