"""``python -m ignis_desktop.bench.cpu.engine_worker JSON``: the engine, measured through its door."""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from typing import Any

import psutil

from engine.messages import Failed, Finished, GenerateRequest, Prompt, SamplingParams, Tokens
from engine.stream import Stream
from ignis_desktop.bench.cpu import material
from ignis_desktop.bench.cpu.lines import answer, claim_output, say
from ignis_desktop.bench.stats import overlap_rate
from ignis_desktop.cli.options import EngineOptions


class EngineWorker:
    """Loads when made."""

    def __init__(self, options: EngineOptions) -> None:
        from engine.device import choose_device, choose_dtype, choose_threads
        from engine.engine import Engine

        config = options.config()
        began = time.perf_counter()
        self.engine = Engine(config)
        self.engine.start()
        self.engine.wait_ready()
        now, info = self.engine.snapshot(), self.engine.info
        assert now.memory_plan is not None
        self.about = {
            "load_seconds": time.perf_counter() - began,
            "resident_bytes": psutil.Process().memory_info().rss,
            "model": now.model,
            "device": now.device,
            "threads": choose_threads(config),
            "dtype": str(choose_dtype(config, choose_device(config))).removeprefix("torch."),
            "context": info.context_length,
            "lanes": len(now.lanes),
            "locate": info.locate,
            "point": info.point,
        }
        tokenizer = self.engine.tokenizer
        special = {tokenizer.token_id(text) for text in tokenizer.added_tokens}
        self._text_ids = [i for i, piece in enumerate(tokenizer.token_bytes) if piece and i not in special]

    def prompt(self, seed: int, tokens: int) -> dict[str, Any]:
        """Ids of random text tokens: nothing of them was read before."""
        return {"ids": random.Random(seed).choices(self._text_ids, k=tokens)}

    def decode(self, prompts: list[list[int]], tokens: int) -> dict[str, Any]:
        """Greedy answers to all prompts at once: tokens a second while all are being written, and what was written."""
        streams = [self._submit(prompt, tokens) for prompt in prompts]
        times: list[list[float]] = [[] for _ in streams]
        ids: list[list[int]] = [[] for _ in streams]
        readers = [threading.Thread(target=_read, args=args) for args in zip(streams, times, ids, strict=True)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        if any(len(written) < tokens for written in ids):
            raise RuntimeError("an answer is shorter than was asked for")
        return {"tokens_per_second": overlap_rate(times), "ids": ids}

    def prefill(self, ids: list[int]) -> dict[str, Any]:
        """Seconds from when the engine takes up the prompt to its first token."""
        for event in self._submit(ids, 1):
            if isinstance(event, Finished):
                return {"seconds": event.prefill_seconds}
            if isinstance(event, Failed):
                raise event.error
        raise RuntimeError("the answer had no end")

    def screen(self, seed: int) -> dict[str, Any]:
        """Seconds to the first answer about a new screenshot, its file decoded too, and to the next one."""
        from engine.answers.point import Screen

        data = material.screenshot(seed)
        began = time.perf_counter()
        screen = Screen.open(self.engine, self.engine.prepare_image(data))
        try:
            screen.point("the Save button")
            first = time.perf_counter()
            screen.point("the search field")
            return {"first_seconds": first - began, "next_seconds": time.perf_counter() - first}
        finally:
            screen.close()

    def folds(self) -> dict[str, Any]:
        """Whether this program folds a log before it reads it: its own timing says."""
        from engine.answers.locate import locate

        answer = locate(self.engine, material.log(40), "which line says that the disk is full?")
        return {"folds": "fold" in answer.timing_ms}

    def log(self, characters: int) -> dict[str, Any]:
        """Seconds of folding a log of that size, of the first question about it and of the next."""
        from engine.answers.locate import locate

        text = material.log(characters // material.LINE_CHARACTERS)
        began = time.perf_counter()
        found = locate(self.engine, text, "which line says that the disk is full?")
        first = time.perf_counter()
        locate(self.engine, text, "which line says that the certificate has expired?")
        return {
            "characters": len(text),
            "fold_seconds": found.timing_ms["fold"] / 1e3,
            "first_seconds": first - began,
            "next_seconds": time.perf_counter() - first,
        }

    def _submit(self, prompt: list[int], tokens: int) -> Stream:
        from engine.engine import new_id

        sampling = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True)
        return self.engine.submit(GenerateRequest(new_id("bench"), Prompt(tuple(prompt)), sampling, client="bench"))


def _read(stream: Stream, times: list[float], ids: list[int]) -> None:
    for event in stream:
        if isinstance(event, Tokens):
            ids += event.ids
            times += [time.perf_counter()] * len(event.ids)


def main(argument: str) -> int:
    output = claim_output()
    try:
        worker = EngineWorker(EngineOptions(**json.loads(argument)))
    except Exception as fault:
        say(output, {"error": str(fault)})
        return 1
    say(output, worker.about)
    handlers = (worker.prompt, worker.decode, worker.prefill, worker.screen, worker.folds, worker.log)
    answer(output, {handler.__name__: handler for handler in handlers})
    worker.engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
