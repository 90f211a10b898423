"""Recurrent and convolution state of the Gated DeltaNet layers, in slots."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.config import TextConfig
from engine.memory.sizes import state_bytes


class LaneState:
    """Buffers for ``slots`` sequences, reserved once."""

    def __init__(
        self,
        config: TextConfig,
        slots: int,
        device: torch.device,
        dtype: torch.dtype,
        *,
        blank: bool = True,
        pin: bool = False,
    ) -> None:
        """
        Args:
            blank: every slot is as at a sequence's start; else memory that is not written yet is not touched either.
            pin: page-locked host memory, which a GPU can read and write on its own (``device`` is the CPU then).
        """
        self.config = config
        layers, heads = len(config.gdn_layers), config.gdn_value_heads
        recurrent = (layers, slots, heads, config.gdn_key_dim, config.gdn_value_dim)
        conv = (layers, slots, config.conv_width - 1, config.gdn_channels)
        self._recurrent = torch.empty(recurrent, device=device, dtype=torch.float32, pin_memory=pin)
        self._conv = torch.empty(conv, device=device, dtype=dtype, pin_memory=pin)
        if blank:
            self._recurrent.zero_()
            self._conv.zero_()

    def __len__(self) -> int:
        """Slots."""
        return self._conv.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """The compute type."""
        return self._conv.dtype

    @property
    def nbytes(self) -> int:
        return self._recurrent.nbytes + self._conv.nbytes

    @property
    def buffers(self) -> tuple[Tensor, Tensor]:
        """Convolution [L, slots, W − 1, C] and recurrence [L, slots, H, Dk, Dv], as they are."""
        return self._conv, self._recurrent

    @property
    def slot_bytes(self) -> int:
        return state_bytes(self.config, self.dtype.itemsize)

    def clear(self, slot: int) -> None:
        """A slot as at a sequence's start."""
        self._recurrent[:, slot].zero_()
        self._conv[:, slot].zero_()

    def shelf(self, slots: int) -> LaneState:
        """Slots of the same shape in host memory, page-locked when these are on a GPU, to be copied to first."""
        cpu, pin = torch.device("cpu"), self._conv.is_cuda
        return LaneState(self.config, slots, cpu, self._conv.dtype, blank=False, pin=pin)

    def copy_to(self, slot: int, other: LaneState, other_slot: int) -> None:
        """Copy a slot to one of these or of other buffers, here or on another device (then on the current stream)."""
        copy_between(self._recurrent[:, slot], other._recurrent[:, other_slot])
        copy_between(self._conv[:, slot], other._conv[:, other_slot])

    def slot(self, slot: int) -> tuple[Tensor, Tensor]:
        """Views (convolution [L, W − 1, C], recurrence [L, H, Dk, Dv]) of one slot in all layers."""
        return self._conv[:, slot], self._recurrent[:, slot]

    def at(self, layer: int, slot: int) -> tuple[Tensor, Tensor]:
        """Views (convolution [W − 1, C], recurrence [H, Dk, Dv]) of one slot; writing to them changes the slot."""
        return self._conv[layer, slot], self._recurrent[layer, slot]

    def recurrent(self, layer: int, slots: Sequence[int]) -> Tensor:
        """float32 [B, H, Dk, Dv]: a view when the slots stand side by side, else a copy to be stored back."""
        return _select(self._recurrent[layer], slots)

    def conv(self, layer: int, slots: Sequence[int]) -> Tensor:
        """[B, W − 1, C], likewise."""
        return _select(self._conv[layer], slots)

    def store_recurrent(self, layer: int, slots: Sequence[int], value: Tensor) -> None:
        _store(self._recurrent[layer], slots, value)

    def store_conv(self, layer: int, slots: Sequence[int], value: Tensor) -> None:
        _store(self._conv[layer], slots, value)


def copy_between(source: Tensor, target: Tensor) -> None:
    """Copy [N, …] whose N parts are each contiguous. Between devices part by part: as a whole, torch would allocate a
    contiguous buffer for it on the GPU."""
    if source.device == target.device:
        target.copy_(source)
        return
    for part, place in zip(source, target, strict=True):
        place.copy_(part, non_blocking=True)


def _side_by_side(slots: Sequence[int]) -> bool:
    return all(slot == slots[0] + i for i, slot in enumerate(slots))


def _select(buffer: Tensor, slots: Sequence[int]) -> Tensor:
    if _side_by_side(slots):
        return buffer[slots[0] : slots[0] + len(slots)]
    return buffer[list(slots)]


def _store(buffer: Tensor, slots: Sequence[int], value: Tensor) -> None:
    if _side_by_side(slots):
        target = buffer[slots[0] : slots[0] + len(slots)]
        if target.data_ptr() != value.data_ptr():
            target.copy_(value)
    else:
        buffer[list(slots)] = value
