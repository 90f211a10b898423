"""What looking ahead is worth on this machine, and whether it changes anything.

    python -m tests.bench.lookahead MODEL [--tokens 300] [--device cuda] [--threads N]

The same requests with every round launched after the last one's tokens were told ("after"), after they are known
("early") and before ("ahead"), in turn; beside them the bare replay of the round's graph. They are a conversation's:
what stands after an answer is kept, and a token may end it. Tokens and log probabilities must be the same, and so must
be what the next turn makes of states that were kept after answers that ended unforeseen.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from engine import Engine
from engine.messages import EngineError, GenerateRequest, Prompt, SamplingParams
from engine.schedule.round import Round
from engine.schedule.scheduler import Scheduler
from ignis_desktop.bench.gpu.door import Written, read

WAYS = {"after": (False, False), "early": (True, False), "ahead": (True, True)}
"""Lookahead; rounds may take their tokens on the device."""
GREEDY: dict[str, Any] = {"temperature": 0.0}
SAMPLED: dict[str, Any] = {"temperature": 0.8, "top_k": 20, "top_p": 0.95, "presence_penalty": 1.0, "seed": 7}
SCORED: dict[str, Any] = {**GREEDY, "logprobs": 3}
KINDS = {"greedy": GREEDY, "sampled": SAMPLED, "with log probabilities": SCORED}
REPEATS = 3
PROMPT = 96


class Open(Engine):
    """An engine whose scheduler can be reached."""

    scheduler: Scheduler

    def _load(self) -> Scheduler:
        self.scheduler = super()._load()
        return self.scheduler

    def go(self, way: str) -> None:
        """While nothing runs."""
        self.scheduler._lookahead, on_device = WAYS[way]
        Round.feeds_itself = property(lambda _: on_device)  # type: ignore[method-assign,assignment]
        self.scheduler.lanes.keeper.clear()

    def ask(self, requests: Sequence[GenerateRequest]) -> list[Written]:
        streams = []
        for outcome in self.submit_all(requests):
            if isinstance(outcome, EngineError):
                raise outcome
            streams.append(outcome)
        return [read(stream) for stream in streams]


def request(name: str, prompt: Prompt, tokens: int, **options: Any) -> GenerateRequest:
    params = SamplingParams(**{"max_tokens": tokens, "ignore_eos": True, **options})
    return GenerateRequest(name, prompt, params, client="bench")


def prompt(lane: int) -> Prompt:
    return Prompt(tuple((lane * 31 + n * 7 + n * n * 3) % 250 for n in range(PROMPT)), marks=(PROMPT,))


def bare(engine: Open, lanes: int) -> float | None:
    """Milliseconds of one replay; None where rounds are not captured."""
    captured = engine.scheduler._round_buffers._graphs.get(lanes)
    if captured is None:
        return None
    times = []
    for _ in range(10):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(4):
            captured.graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 4)
    return statistics.median(times)


def rounds(engine: Open, lanes: int, tokens: int, kind: str) -> bool:
    """One line of the table. Returns whether all ways wrote the same."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    written: dict[str, list[object]] = {}
    never = engine.scheduler._network.config.text.vocab_size - 1
    options = {**KINDS[kind], "stop_ids": (never,), "logit_bias": ((never, -100.0),)}
    for _ in range(REPEATS):
        for way in WAYS:
            engine.go(way)
            answers = engine.ask([request(f"r{n}", prompt(n), tokens, **options) for n in range(lanes)])
            written[way] = [(answer.ids, answer.logprobs) for answer in answers]
            times[way].append(1e3 * max(answer.end.decode_seconds for answer in answers) / (tokens - 1))
    same = written["after"] == written["early"] == written["ahead"]
    floor = bare(engine, lanes)
    line = []
    for way, found in times.items():
        time = statistics.median(found)
        gap = "" if floor is None else f" (gap {time - floor:.2f} = {1 - floor / time:.1%})"
        line.append(f"{way} {time:.3f} ms{gap}")
    if floor is not None:
        line.append(f"replay {floor:.3f} ms")
    print(f"{lanes} lanes, {kind}: {', '.join(line)}{'' if same else '; NOT THE SAME TOKENS'}", flush=True)
    return same


def turns(engine: Open, lanes: int) -> bool:
    """Answers that end with a token nobody foresaw, each at another round, and what the next turns compute from the
    states kept after them. Who ended is a neighbour for a round more, which may change the last bits of the others:
    their tokens are compared, and log probabilities where there is one lane."""
    engine.go("after")
    dry = engine.ask([request(f"dry{n}", prompt(n), 40, **SAMPLED) for n in range(lanes)])
    stops = [
        next(token for place, token in enumerate(ids) if place >= 9 + 3 * n and token not in ids[:place])
        for n, ids in enumerate(answer.ids for answer in dry)
    ]
    found = {}
    for way in WAYS:
        engine.go(way)
        ended = engine.ask(
            [request(f"turn{n}", prompt(n), 60, stop_ids=(stop,), **SAMPLED) for n, stop in enumerate(stops)]
        )
        prompts = [(*prompt(n).ids, *answer.ids, *prompt(lanes + n).ids) for n, answer in enumerate(ended)]
        more = engine.ask(
            [request(f"next{n}", Prompt(ids, marks=(PROMPT,)), 20, **SCORED) for n, ids in enumerate(prompts)]
        )
        found[way] = (
            [(answer.ids, answer.end.reason) for answer in ended],
            [(answer.ids, answer.end.usage.cached_tokens, answer.logprobs if lanes == 1 else ()) for answer in more],
        )
    same = found["after"] == found["early"] == found["ahead"]
    starts = ", ".join(str(cached) for _, cached, _ in found["ahead"][1])
    print(f"next turns of {lanes} lanes start from {starts} tokens:", "the same" if same else f"NOT THE SAME: {found}")
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, default=None)
    given = parser.parse_args()
    engine = Open.load(given.model, device=given.device, threads=given.threads)
    try:
        lanes = engine.config.lanes
        same = [rounds(engine, count, given.tokens, kind) for count in (1, lanes) for kind in KINDS]
        same += [turns(engine, count) for count in (1, lanes)]
        return 0 if all(same) else 1
    finally:
        engine.close()


if __name__ == "__main__":
    sys.exit(main())
