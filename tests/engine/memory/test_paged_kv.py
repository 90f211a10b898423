"""Keys and values in pages: what is read is what was written, wherever the pages stand."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.config import ModelConfig, TextConfig
from engine.memory.paged_kv import PagedKV
from engine.memory.sizes import kv_token_bytes
from tests.engine.model.oracle import hf_config

SIZE, PAGES = 4, 12


@dataclass(frozen=True)
class Run:
    length: int
    past: int
    pages: list[int]


def make(text: TextConfig) -> PagedKV:
    return PagedKV(text, PAGES, SIZE, torch.device("cpu"), torch.float32)


def rows_for(text: TextConfig, count: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (count, text.num_kv_heads, text.head_dim)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


@settings(deadline=None)
@given(st.permutations(range(PAGES)), st.lists(st.integers(1, 7), min_size=1, max_size=5), st.booleans())
def test_lanes_written_in_turns_read_back_whole(order: list[int], steps: list[int], in_order: bool) -> None:
    """Two lanes, chunk by chunk in one pass each, on pages of any order."""
    text = ModelConfig.from_dict(hf_config(layers=8, kv_heads=2, head_dim=32).to_dict()).text
    steps = steps[:3]
    pages = [list(range(6)), list(range(6, 12))] if in_order else [order[:6], order[6:]]
    kv = make(text)
    layers = len(text.full_layers)
    written: list[list[list[tuple[Tensor, Tensor]]]] = [[[], []] for _ in range(layers)]
    past = [0, 0]
    for number, step in enumerate(steps):
        lengths = [step, 8 - step]
        rows = kv.rows([Run(lengths[lane], past[lane], pages[lane]) for lane in range(2)])
        assert len(rows) == 8
        for layer in range(layers):
            keys, values = rows_for(text, 8, 100 * number + layer)
            kv.write(layer, rows, keys, values)
            parts = zip(keys.split(lengths), values.split(lengths), strict=True)
            for lane, part in enumerate(parts):
                written[layer][lane].append(part)
        past = [past[lane] + lengths[lane] for lane in range(2)]
        for layer in range(layers):
            for lane in range(2):
                keys, values = kv.read(layer, pages[lane], past[lane])
                assert torch.equal(keys, torch.cat([k for k, _ in written[layer][lane]]))
                assert torch.equal(values, torch.cat([v for _, v in written[layer][lane]]))


def test_pages_side_by_side_are_read_without_a_copy(text: TextConfig) -> None:
    kv = make(text)
    first = kv.read(0, [3], 1)[0].data_ptr()
    assert kv.read(0, [3, 4, 5], 9)[0].data_ptr() == first
    # Only pages that are used count: the lane's later pages may stand anywhere.
    assert kv.read(0, [3, 4, 9], 8)[0].data_ptr() == first
    assert kv.read(0, [3, 4, 9], 9)[0].data_ptr() != first
    # First and last fit a run, the middle does not.
    assert kv.read(0, [3, 9, 5], 9)[0].data_ptr() != first


def test_copy_page(text: TextConfig) -> None:
    kv = make(text)
    run = Run(2 * SIZE, 0, [2, 7])
    rows = kv.rows([run])
    for layer in range(len(text.full_layers)):
        kv.write(layer, rows, *rows_for(text, 2 * SIZE, layer))
    kv.copy_page(7, 1)
    kv.write(0, rows[SIZE:], *rows_for(text, SIZE, 9))
    for layer in range(len(text.full_layers)):
        keys, values = rows_for(text, 2 * SIZE, layer)
        copied_keys, copied_values = kv.read(layer, [2, 1], 2 * SIZE)
        assert torch.equal(copied_keys, keys)
        assert torch.equal(copied_values, values)


@pytest.mark.parametrize("tokens", [1, SIZE])
def test_copies_out_and_in(text: TextConfig, tokens: int) -> None:
    """A whole page or its first tokens, in all layers, and no other page."""
    kv = make(text)
    for page in range(PAGES):
        kv.page(page).copy_(torch.randn(kv.page(page).shape))
    before = [kv.page(page).clone() for page in range(PAGES)]
    out = kv.host_pages(2)
    assert out.shape == (2, len(text.full_layers), 2, SIZE, text.num_kv_heads, text.head_dim)
    assert out[0].nbytes == kv.page_bytes
    out.fill_(-1.0)
    kv.copy_out(3, out[1, :, :, :tokens])
    assert torch.equal(out[1, :, :, :tokens], before[3][:, :, :tokens])
    assert (out[1, :, :, tokens:] == -1).all()
    assert (out[0] == -1).all()
    kv.copy_in(out[1, :, :, :tokens], 8)
    for page in range(PAGES):
        expected = before[page].clone()
        if page == 8:
            expected[:, :, :tokens] = before[3][:, :, :tokens]
        assert torch.equal(kv.page(page), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_size_is_what_the_plan_counts(text: TextConfig, dtype: torch.dtype) -> None:
    kv = PagedKV(text, PAGES, SIZE, torch.device("cpu"), dtype)
    assert kv.nbytes == PAGES * SIZE * kv_token_bytes(text, "float32" if dtype == torch.float32 else "bf16")


def test_packed_rows_hold_codes_and_scales_of_their_own(text: TextConfig) -> None:
    kv = PagedKV(text, PAGES, SIZE, torch.device("cpu"), torch.bfloat16, "fp8")
    assert kv.nbytes == PAGES * SIZE * kv_token_bytes(text, "fp8")
    heads, dim = text.num_kv_heads, text.head_dim
    written = []
    for layer in range(len(text.full_layers)):
        scales = kv.scales(layer)
        assert scales is not None
        for codes, scale in zip(kv.layer(layer), scales, strict=True):
            assert codes.shape == (PAGES * SIZE, heads, dim)
            assert scale.shape == (PAGES * SIZE, heads)
            fresh = torch.randn(codes.shape).to(torch.float8_e4m3fn), torch.rand(scale.shape)
            codes.view(torch.uint8).copy_(fresh[0].view(torch.uint8))
            scale.copy_(fresh[1])
            written.append((codes, scale, *fresh))
    for codes, scale, expected, expected_scale in written:
        assert torch.equal(codes.view(torch.uint8), expected.view(torch.uint8))
        assert torch.equal(scale, expected_scale)
    before = kv.page(2).clone()
    kv.copy_page(2, 5)
    assert torch.equal(kv.page(5), before)
    assert kv.dtype == torch.uint8


def test_rows_of_the_compute_type_have_no_scales(text: TextConfig) -> None:
    kv = PagedKV(text, PAGES, SIZE, torch.device("cpu"), torch.float32)
    assert kv.scales(0) is None
    assert kv.layer(0)[0].dtype == kv.dtype
