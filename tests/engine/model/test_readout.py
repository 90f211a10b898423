"""Reading attention heads against transformers' own queries and keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from transformers.models.qwen3_5 import modeling_qwen3_5

from engine.messages import HeadSpan
from engine.model.decoder import Readout, Run
from tests.engine.model.oracle import SHAPES, Pair, make_pair, picture, text, tokens_of

PICTURES = [picture(1, 3, 5)]
IDS = [*text(1, 40), *tokens_of(3, 5), *text(2, 90)]


@contextmanager
def rotated_heads() -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Collects (q [Hq, T, D], k [Hkv, T, D]) after rotary of each full-attention layer that transformers runs."""
    original, found = modeling_qwen3_5.apply_rotary_pos_emb, []

    def spy(*args: Tensor, **kwargs: int) -> tuple[Tensor, Tensor]:
        q, k = original(*args, **kwargs)
        found.append((q[0], k[0]))
        return q, k

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modeling_qwen3_5, "apply_rotary_pos_emb", spy)
        yield found


def dense_scores(pair: Pair, heads: list[tuple[int, int]]) -> Tensor:
    """q · k / √D of each head's last query with every key: [heads, T]."""
    with rotated_heads() as found:
        pair.reference(IDS, PICTURES)
    layers = pair.config.text.full_layers
    assert len(found) == len(layers)
    group = pair.config.text.num_heads // pair.config.text.num_kv_heads
    rows = []
    for layer, head in heads:
        q, k = found[layers.index(layer)]
        rows.append(k[head // group] @ q[head, -1] * q.shape[-1] ** -0.5)
    return torch.stack(rows)


def heads_of(pair: Pair) -> list[tuple[int, int]]:
    """Every head of every full-attention layer, last layer first: the answer keeps the asker's order."""
    config = pair.config.text
    return [(layer, head) for layer in reversed(config.full_layers) for head in range(config.num_heads)]


@pytest.mark.parametrize(
    ("start", "end", "extra", "cuts"),
    [
        (0, len(IDS), (), ()),
        (13, 77, (), (50, 64)),
        (41, 56, (0, 146, 12), (48, 130)),
        (0, 1, (146,), (146,)),
        (7, 7, (3,), ()),
    ],
)
def test_scores(pair: Pair, start: int, end: int, extra: tuple[int, ...], cuts: tuple[int, ...]) -> None:
    """Also where the keys came with earlier chunks, and in a pass of one column."""
    heads = heads_of(pair)
    readout = Readout(0, HeadSpan(tuple(heads), start, end, extra))
    pair.prefill(IDS, PICTURES, cuts=cuts, readouts=[readout])
    dense = dense_scores(pair, heads)
    assert dense.abs().max() > 0.5
    wanted = dense[:, [*range(start, end), *extra]]
    assert readout.scores.shape == wanted.shape
    assert (readout.scores - wanted).abs().max() <= 2e-5


def test_fewer_layers_read_the_same(pair: Pair) -> None:
    """A pass that stops after the last layer asked about gives the same bits."""
    first = pair.config.text.full_layers[0]
    heads = tuple((first, head) for head in range(pair.config.text.num_heads))
    early, full = (Readout(0, HeadSpan(heads, 5, 130, (0,))) for _ in range(2))
    pair.prefill(IDS, PICTURES, cuts=(70,), layers=first + 1, readouts=[early])
    pair.prefill(IDS, PICTURES, cuts=(70,), readouts=[full])
    assert torch.equal(early.scores, full.scores)


def test_readouts_of_several_runs_in_one_pass(grouped: Pair) -> None:
    decoder = grouped.network.decoder
    heads = tuple(heads_of(grouped)[:4])
    prompts = [text(1, 33), text(2, 70)]
    alone = []
    for prompt in prompts:
        readout = Readout(0, HeadSpan(heads, 2, 30))
        grouped.prefill(prompt, readouts=[readout])
        alone.append(readout.scores)
    together = [
        Readout(1, HeadSpan(heads, 2, 30)),
        Readout(0, HeadSpan(heads, 2, 30)),
        Readout(0, HeadSpan(heads, 9, 11)),
    ]
    for slot in (2, 3):
        grouped.network.state.clear(slot)
    runs = [Run(2, 0, 33, 0, range(10)), Run(3, 33, 70, 0, range(10, 20))]
    positions = torch.tensor([*range(33), *range(70)]).expand(3, -1)
    with torch.inference_mode():
        decoder.forward(decoder.embed(torch.tensor(prompts[0] + prompts[1])), positions, runs, readouts=together)
    assert (together[0].scores - alone[1]).abs().max() <= 1e-5
    assert (together[1].scores - alone[0]).abs().max() <= 1e-5
    assert (together[2].scores - alone[0][:, 7:9]).abs().max() <= 1e-5


def test_peaks_are_the_best_cells(pair: Pair) -> None:
    """Beside whole rows, of a picture's keys that came with an earlier chunk."""
    heads = heads_of(pair)
    columns, rows = 5, 3
    start = 41
    whole = Readout(0, HeadSpan(tuple(heads), start, start + rows * columns))
    peaks = Readout(0, HeadSpan(tuple(heads[:2]), start, start + rows * columns, (0,), tuple(heads), columns))
    pair.prefill(IDS, PICTURES, cuts=(70,), readouts=[whole, peaks])
    assert (peaks.scores[:, :-1] - whole.scores[:2]).abs().max() <= 1e-5
    padded = torch.nn.functional.pad(whole.scores.view(-1, rows, columns), (1, 1, 1, 1), value=float("-inf"))
    for number, cell in enumerate(peaks.cells.tolist()):
        row, column = divmod(cell, columns)
        assert cell == whole.scores[number].argmax()
        near = [(1, 1), (1, 0), (1, 2), (0, 1), (2, 1)]
        wanted = torch.stack([padded[number, row + down, column + across] for down, across in near])
        torch.testing.assert_close(peaks.peaks[number], wanted, atol=1e-5, rtol=0)


def test_what_was_not_read_is_not_a_number() -> None:
    """A layer that a pass does not reach leaves no zeros behind that could pass for scores."""
    pair = make_pair("plain")
    last = pair.config.text.full_layers[-1]
    readout = Readout(0, HeadSpan(((last, 0),), 41, 56, (), ((last, 1),), 5))
    pair.prefill(IDS, PICTURES, layers=last, readouts=[readout])
    assert readout.scores.isnan().all()
    assert readout.peaks.isnan().all()


WIDE = {"heads": 24, "kv_heads": 4, "head_dim": 256, "rotary": 0.25, "layers": 4}
"""The 27B's attention: 24 query and 4 KV heads of 256, rotary on the first 64 dimensions."""


def test_the_27bs_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, rows and peaks, over the picture and over the text."""
    monkeypatch.setitem(SHAPES, "wide", WIDE)
    pair = make_pair("wide", seed=4)
    text_config = pair.config.text
    assert (text_config.num_heads, text_config.num_kv_heads, text_config.head_dim) == (24, 4, 256)
    assert text_config.rope.dim == 64
    heads = heads_of(pair)
    assert len(heads) == 24
    dense = dense_scores(pair, heads)
    picture_span = Readout(0, HeadSpan(tuple(heads), 41, 56, (0,), tuple(heads), 5))
    text_span = Readout(0, HeadSpan(tuple(heads), 0, len(IDS)))
    pair.prefill(IDS, PICTURES, cuts=(48, 130), readouts=[picture_span, text_span])
    assert (text_span.scores - dense).abs().max() <= 2e-5
    assert (picture_span.scores - dense[:, [*range(41, 56), 0]]).abs().max() <= 2e-5
    assert torch.equal(picture_span.cells, dense[:, 41:56].argmax(-1))
    assert (picture_span.peaks[:, 0] - dense[:, 41:56].amax(-1)).abs().max() <= 2e-5
