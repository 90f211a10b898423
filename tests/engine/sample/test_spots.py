"""Single values of per-lane buffers."""

from __future__ import annotations

import torch

from engine.sample.spots import Spots


def test_each_value_goes_to_its_place_and_nothing_else_changes() -> None:
    buffer = torch.zeros(4, 50)
    spots = Spots(buffer)
    spots.write([(2, 7, 1.5), (0, 49, -2.0)])
    spots.write([])
    spots.write([(3, 0, 4.0)])
    wanted = torch.zeros(4, 50)
    wanted[2, 7], wanted[0, 49], wanted[3, 0] = 1.5, -2.0, 4.0
    assert torch.equal(buffer, wanted)
    spots.write([(2, 7, 0.5)])
    wanted[2, 7] = 0.5
    assert torch.equal(buffer, wanted)
