from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.answers.heads import BUNDLED, HeadsError, load_heads, read_heads
from engine.answers.readouts import Extent, Zoom
from engine.checkpoint.catalogue import BUNDLED as EMBER
from engine.config import ModelConfig

ENTRY: dict[str, Any] = {
    "over": "image",
    "prompt": ["<|im_start|>", "user\n", "{image}", "{query}", "<|point|>"],
    "heads": [[3, 0], [3, 2], [1, 1]],
    "scale": 0.25,
    "combine": "sum",
    "decode": "peak_3x3",
    "cell": 32,
}
HASH = "ab" * 32


@pytest.fixture(scope="module")
def ember() -> ModelConfig:
    return ModelConfig.from_dict(json.loads((EMBER / "config.json").read_text()))


def write(folder: Path, entry: dict[str, Any] | None = None, **top: object) -> Path:
    file = folder / "heads.json"
    raw = {"format": 1, "model": "M", "weights": HASH, "source": "S", "readouts": {"point": {**ENTRY, **(entry or {})}}}
    file.write_text(json.dumps({**raw, **top}))
    return file


def test_a_list_is_read(tmp_path: Path) -> None:
    lists = read_heads(write(tmp_path, {"nothing": "before", "found_threshold": 0.4, "near": 1.5}))
    readout = lists.readouts["point"]
    assert (lists.model, lists.weights, lists.source) == ("M", HASH, "S")
    assert readout.heads == ((3, 0), (3, 2), (1, 1))
    assert readout.layers == (1, 3)
    assert readout.prompt == ("<|im_start|>", "user\n", "{image}", "{query}", "<|point|>")
    assert (readout.scale, readout.cell, readout.nothing, readout.found_threshold) == (0.25, 32, "before", 0.4)
    assert (readout.anchor, readout.baseline, readout.max_keys, readout.fallback) == (None, None, None, None)
    assert (readout.words, readout.near) == (6, 1.5)
    assert read_heads(write(tmp_path)).readouts["point"].near == 0


def test_how_boxes_and_second_looks_are_read(tmp_path: Path) -> None:
    """Lists that say nothing of them have the usual box and no second look."""
    plain = read_heads(write(tmp_path)).readouts["point"]
    assert (plain.box, plain.zoom, plain.refuse_above) == (Extent(), None, 0.5)
    entry = {"box": {"share": 0.1, "grow_y": 0}, "zoom": {"factor": 2.5, "below": 0, "cells": 400}, "refuse_above": 0.8}
    readout = read_heads(write(tmp_path, entry)).readouts["point"]
    assert readout.box == Extent(share=0.1, grow_y=0)
    assert readout.zoom == Zoom(2.5, below=0, cells=400)
    assert readout.refuse_above == 0.8
    assert readout.zoom.runner_up == 0


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no JSON": (lambda folder: (folder / "heads.json").write_text("{"), "cannot be read"),
    "other format": (lambda folder: write(folder, format=2), '"format": 1'),
    "weights no hash": (lambda folder: write(folder, weights=7), '"weights"'),
    "readout no object": (lambda folder: write(folder, readouts={"line": []}), "line must be an object"),
    "unknown combine": (lambda folder: write(folder, {"combine": "max"}), "point.combine must be one of sum"),
    "unknown decode": (lambda folder: write(folder, {"decode": None}), "point.decode must be one of"),
    "no heads": (lambda folder: write(folder, {"heads": []}), "point.heads"),
    "bad pair": (lambda folder: write(folder, {"heads": [[3]]}), "[3] is not a [layer, head] pair"),
    "negative head": (lambda folder: write(folder, {"heads": [[3, -1]]}), "not a [layer, head] pair"),
    "head twice": (lambda folder: write(folder, {"heads": [[3, 1], [3, 1]]}), "twice"),
    "scale zero": (lambda folder: write(folder, {"scale": 0}), "point.scale"),
    "prompt text": (lambda folder: write(folder, {"prompt": "{image}{query}"}), "point.prompt must be a list"),
    "prompt without query": (lambda folder: write(folder, {"prompt": ["{image}"]}), "{image} and {query} once"),
    "prompt over another span": (lambda folder: write(folder, {"over": "lines"}), "{lines} and {query} once"),
    "anchor without set": (lambda folder: write(folder, {"anchor": [3, 1]}), "anchor head goes with"),
    "set without anchor": (lambda folder: write(folder, {"combine": "anchor_set"}), "anchor head goes with"),
    "cell text": (lambda folder: write(folder, {"cell": "32"}), "point.cell"),
    "bad grid": (lambda folder: write(folder, {"skip_cells": {"32": [1]}}), "point.skip_cells"),
    "unknown fallback": (lambda folder: write(folder, {"fallback": "vote"}), "names 'vote'"),
    "bad threshold": (lambda folder: write(folder, {"found_threshold": True}), "point.found_threshold"),
    "bad threshold of nothing": (lambda folder: write(folder, {"refuse_above": "half"}), "point.refuse_above"),
    "box no object": (lambda folder: write(folder, {"box": 3}), "point.box must be null or an object of share"),
    "box of an unknown measure": (lambda folder: write(folder, {"box": {"grow": 2}}), "point.box must be null"),
    "box of no height": (lambda folder: write(folder, {"box": {"base_y": 0}}), "point.box.base_y must be a positive"),
    "zoom without factor": (lambda folder: write(folder, {"zoom": {"span": 0.4}}), "point.zoom needs factor"),
    "zoom to half a cell": (lambda folder: write(folder, {"zoom": {"factor": 2, "cells": 0.5}}), "positive whole"),
    "zoom true": (lambda folder: write(folder, {"zoom": {"factor": True}}), "point.zoom.factor must be a positive"),
    "bad geometry": (lambda folder: write(folder, geometry=[1, 2]), '"geometry"'),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_list_is_one_sentence(tmp_path: Path, case: str) -> None:
    spoil, words = BROKEN[case]
    spoil(tmp_path)
    with pytest.raises(HeadsError) as caught:
        read_heads(tmp_path / "heads.json")
    assert words in caught.value.message
    assert "heads.json" in caught.value.message
    assert caught.value.message.endswith(".")


def test_lists_count_for_their_own_weights_only(tmp_path: Path, ember: ModelConfig) -> None:
    assert load_heads(tmp_path, HASH, ember) is None
    write(tmp_path, {"heads": [[3, 8]]})
    assert load_heads(tmp_path, HASH, ember) is not None
    assert load_heads(tmp_path, "cd" * 32, ember) is None
    write(tmp_path, {"heads": [[3, 8]]}, weights=None)
    assert load_heads(tmp_path, HASH, ember) is not None
    write(tmp_path, {"heads": [[3, 8]]}, weights=None, geometry=[5120, 64, 24])
    assert load_heads(tmp_path, HASH, ember) is None


@pytest.mark.parametrize("head", [[3, 9], [4, 0], [99, 0]])
def test_heads_the_model_does_not_have(tmp_path: Path, ember: ModelConfig, head: list[int]) -> None:
    write(tmp_path, {"heads": [head]})
    with pytest.raises(HeadsError, match=r"heads 0 to 8 in the full-attention layers 3, 7, 11, 15\."):
        load_heads(tmp_path, HASH, ember)


def test_embers_lists_name_its_training_exactly(ember: ModelConfig) -> None:
    lists = read_heads(EMBER / "heads.json")
    lists.check(ember)
    for name in ("point", "line"):
        readout = lists.readouts[name]
        assert readout.heads == tuple((11, head) for head in range(9))
        # Trained as the sum over heads of q·k/24; the engine's scores are q·k/√64.
        assert readout.scale / ember.text.head_dim**0.5 == pytest.approx(1 / 24)
        assert readout.prompt[-1] == f"<|{name}|>"


def test_the_lists_of_the_27b_are_complete() -> None:
    lists = read_heads(BUNDLED / "qwen3.8-27b.json")
    assert lists.geometry == (5120, 64, 24)
    point, vote, end = (lists.readouts[name] for name in ("point", "vote", "end"))
    assert point.anchor == (39, 10)
    assert len(point.heads) == 96
    assert len(vote.heads) == 32
    assert (vote.max_keys, end.fallback) == (4554, "vote")
    every = [*point.heads, point.anchor, *vote.heads, *end.heads]
    assert all(layer % 4 == 3 and layer < 64 and head < 24 for layer, head in every)
    assert {r.scale for r in lists.readouts.values()} == {1.0}
