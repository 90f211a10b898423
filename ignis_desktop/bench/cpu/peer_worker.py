"""``python -m ignis_desktop.bench.cpu.peer_worker JSON``: transformers with the same weights, threads and compute type.

It gets its weights from the engine's reader, unpacked as the engine unpacks them, and runs as its documentation says:
``generate``, greedy, with its own cache and its default attention. Neither its thread settings nor its kernels are held
back: what it falls back to without optional packages is what this machine's users get.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch  # before the engine, whose setting for idle threads is not transformers'
from transformers import GenerationConfig, Qwen3_5Config, Qwen3_5ForConditionalGeneration
from transformers.generation.streamers import BaseStreamer

from engine.checkpoint.catalogue import resolve_model
from engine.checkpoint.reader import open_checkpoint
from ignis_desktop.bench.cpu.lines import answer, claim_output, say


class _Clock(BaseStreamer):
    """When each token of a batch was there, the prompt's own arrival first."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: Any) -> None:
        self.times.append(time.perf_counter())

    def end(self) -> None:
        pass


class PeerWorker:
    """Loads when made."""

    def __init__(self, model: str | None, dtype: str, threads: int) -> None:
        torch.set_num_threads(threads)
        began = time.perf_counter()
        with open_checkpoint(resolve_model(None if model is None else Path(model).expanduser()).path) as checkpoint:
            raw = {key: value for key, value in checkpoint.config.items() if key != "quantization_config"}
            self.model = Qwen3_5ForConditionalGeneration(Qwen3_5Config.from_dict(raw))
            self.model = self.model.to(getattr(torch, dtype)).eval()
            weights = self.model.state_dict()
            for name in checkpoint.names():
                checkpoint.copy_into(name, weights[name])
        self.about = {"load_seconds": time.perf_counter() - began}

    def decode(self, prompts: list[list[int]], tokens: int) -> dict[str, Any]:
        """Greedy answers to a batch of equally long prompts: tokens a second after the first, and what was written."""
        times, ids = self._generate(prompts, tokens)
        return {"tokens_per_second": len(prompts) * (tokens - 1) / (times[-1] - times[1]), "ids": ids}

    def prefill(self, ids: list[int]) -> dict[str, Any]:
        """Seconds to the first token."""
        times, _ = self._generate([ids], 1)
        return {"seconds": times[1] - times[0]}

    def _generate(self, prompts: list[list[int]], tokens: int) -> tuple[list[float], list[list[int]]]:
        clock = _Clock()
        given = torch.tensor(prompts)
        config = GenerationConfig(do_sample=False, max_new_tokens=tokens, pad_token_id=0, eos_token_id=None)
        with torch.inference_mode():
            written = self.model.generate(
                input_ids=given, attention_mask=torch.ones_like(given), generation_config=config, streamer=clock
            )
        return clock.times, written[:, given.shape[1] :].tolist()


def main(argument: str) -> int:
    output = claim_output()
    warnings.simplefilter("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        worker = PeerWorker(**json.loads(argument))
    except Exception as fault:
        say(output, {"error": f"transformers cannot run this model: {type(fault).__name__}: {fault}"})
        return 1
    say(output, worker.about)
    answer(output, {"decode": worker.decode, "prefill": worker.prefill})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
