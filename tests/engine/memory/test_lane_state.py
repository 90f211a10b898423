"""Slots of recurrent state: what one lane does is no other's business."""

from __future__ import annotations

import pytest
import torch

from engine.config import TextConfig
from engine.memory.lane_state import LaneState
from engine.memory.sizes import state_bytes

SLOTS = 6
GROUPS = [[0], [2, 3, 4], [5, 0, 3], [1, 2, 4], [0, 1, 2, 3, 4, 5]]


@pytest.fixture
def state(text: TextConfig) -> LaneState:
    """Every slot holds its own number."""
    state = LaneState(text, SLOTS, torch.device("cpu"), torch.bfloat16)
    for layer in range(len(text.gdn_layers)):
        for slot in range(SLOTS):
            for part in state.at(layer, slot):
                part.fill_(slot + 1)
    return state


def contents(state: LaneState, text: TextConfig) -> list[float]:
    """The number in each slot; NaN where a slot holds more than one."""
    found = []
    for slot in range(SLOTS):
        parts = [part.float() for layer in range(len(text.gdn_layers)) for part in state.at(layer, slot)]
        values = torch.cat([part.flatten() for part in parts]).unique()
        found.append(values.item() if len(values) == 1 else float("nan"))
    return found


def test_a_new_buffer_is_a_sequence_start(text: TextConfig) -> None:
    assert contents(LaneState(text, SLOTS, torch.device("cpu"), torch.float32), text) == [0.0] * SLOTS


def test_clear_and_copy(state: LaneState, text: TextConfig) -> None:
    state.clear(2)
    state.copy_to(5, state, 0)
    assert contents(state, text) == [6.0, 2.0, 0.0, 4.0, 5.0, 6.0]
    # A copy, not an alias.
    state.clear(5)
    assert contents(state, text) == [6.0, 2.0, 0.0, 4.0, 5.0, 0.0]


def test_a_shelf_holds_copies(state: LaneState, text: TextConfig) -> None:
    """To it and back, every byte of the one slot and of no other."""
    shelf = state.shelf(3)
    assert shelf.dtype == state.dtype == torch.bfloat16
    assert shelf.nbytes == 3 * state.slot_bytes
    for number in range(3):
        shelf.clear(number)
    for part in state.slot(4):
        part.copy_(torch.randn(part.shape))
    before = [part.clone() for part in state.slot(4)]
    state.copy_to(4, shelf, 1)
    state.clear(4)
    for number in (0, 2):
        assert not any(part.any() for part in shelf.slot(number))
    shelf.copy_to(1, state, 0)
    assert all(map(torch.equal, state.slot(0), before))
    assert contents(state, text)[1:] == [2.0, 3.0, 4.0, 0.0, 6.0]


@pytest.mark.parametrize("slots", GROUPS, ids=str)
def test_lanes_of_a_round(state: LaneState, text: TextConfig, slots: list[int]) -> None:
    """Read, change, store back: exactly the named slots change, each by its own row."""
    for layer in range(len(text.gdn_layers)):
        recurrent, conv = state.recurrent(layer, slots), state.conv(layer, slots)
        assert recurrent.shape == (len(slots), text.gdn_value_heads, text.gdn_key_dim, text.gdn_value_dim)
        assert recurrent.dtype == torch.float32
        assert conv.shape == (len(slots), text.conv_width - 1, text.gdn_channels)
        assert conv.dtype == torch.bfloat16
        for row, slot in enumerate(slots):
            assert (recurrent[row] == slot + 1).all()
            assert (conv[row] == slot + 1).all()
        recurrent *= 10
        state.store_recurrent(layer, slots, recurrent)
        state.store_conv(layer, slots, conv * 10)
    expected = [(slot + 1) * (10.0 if slot in slots else 1.0) for slot in range(SLOTS)]
    assert contents(state, text) == expected


def test_side_by_side_slots_are_read_without_a_copy(state: LaneState) -> None:
    assert state.recurrent(1, [2, 3]).data_ptr() == state.at(1, 2)[1].data_ptr()
    assert state.conv(1, [2, 3]).data_ptr() == state.at(1, 2)[0].data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_size_is_what_the_plan_counts(text: TextConfig, dtype: torch.dtype) -> None:
    state = LaneState(text, SLOTS, torch.device("cpu"), dtype)
    assert state.nbytes == SLOTS * state_bytes(text, dtype.itemsize)
