"""What a lane starts from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from engine.checks import check_request
from engine.messages import GenerateRequest, SamplingParams
from tests.engine.schedule.both_ways import GREEDY, Stepped, kept


def test_a_prompt_that_was_kept_whole_ends_on_the_networks_device(tiny_folder: Path) -> None:
    """Last residuals are kept in host memory. Here is no card, so the device that holds no data stands for it."""
    stepped = Stepped(tiny_folder, False)
    first = GenerateRequest("first", kept(70), SamplingParams(max_tokens=2, **GREEDY))
    stepped.ask(first)
    stepped.run()
    job = check_request(replace(first, id="again"), stepped.engine.loaded, stepped.engine.config, lambda _: None)
    lanes = stepped.scheduler.lanes
    assert lanes.make_room(job)
    lanes._network = replace(lanes._network, device=torch.device("meta"))
    sequence, last = lanes.take(job)
    assert sequence.cached == 70
    assert last is not None
    assert last.device.type == "meta"
