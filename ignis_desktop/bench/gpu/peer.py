"""The same geometry in transformers on the same card: what a round's tokens are compared with."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import torch

PROMPT, WRITTEN = 256, 12


def transformers_step(text: Mapping[str, Any], lanes: int, device: str = "cuda") -> float:
    """Median seconds of one decoding step of ``lanes`` sequences as transformers runs it, weights random in BF16.

    Args:
        text: the model's ``text_config`` of config.json.

    Raises:
        ImportError: transformers is not installed, or too old for the architecture.
    """
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    config = Qwen3_5TextConfig(**text)
    with torch.device("meta"):
        model = Qwen3_5ForCausalLM(config).bfloat16()
    model = model.to_empty(device=device).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.02)
    # What is computed rather than learned has to be made again.
    model.model.rotary_emb = type(model.model.rotary_emb)(config).to(device)
    with torch.inference_mode():
        ids = torch.randint(0, config.vocab_size, (lanes, PROMPT), device=device)
        state = model(ids, use_cache=True, logits_to_keep=1)
        token = state.logits[:, -1:].argmax(-1)
        times = []
        for _ in range(WRITTEN):
            _finish(device)
            started = time.perf_counter()
            state = model(token, past_key_values=state.past_key_values, use_cache=True)
            token = state.logits[:, -1:].argmax(-1)
            _finish(device)
            times.append(time.perf_counter() - started)
    return statistics.median(times[2:])


def _finish(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
