"""Requests through the engine's own door: raw prompts, greedy answers, and how fast they were written."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.messages import EngineError, Failed, Finished, GenerateRequest, Prompt, SamplingParams, TokenLogprob, Tokens
from ignis_desktop.bench.stats import median

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.stream import Stream
    from engine.text.tokenizer import Tokenizer

CLIENT = "bench"
PAUSE = 0.005
"""Seconds between two looks at whether something has ended."""


@dataclass(frozen=True)
class Written:
    ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...]
    end: Finished


@lru_cache(maxsize=2)
def text_ids(tokenizer: Tokenizer) -> list[int]:
    """Ids of tokens that stand for text."""
    special = {tokenizer.token_id(text) for text in tokenizer.added_tokens}
    return [i for i, piece in enumerate(tokenizer.token_bytes) if piece and i not in special]


def prompt(engine: Engine, seed: object, tokens: int) -> Prompt:
    """Random text tokens, the same for the same seed; without marks, so that nothing of them is kept."""
    return Prompt(tuple(random.Random(f"prompt {seed}").choices(text_ids(engine.tokenizer), k=tokens)))


def ask_all(engine: Engine, prompts: Sequence[Prompt], tokens: int, *, logprobs: int | None = None) -> list[Stream]:
    """Greedy answers of exactly so many tokens, asked for together so that they share their rounds. Raises
    ``EngineError``."""
    from engine.engine import new_id

    params = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True, logprobs=logprobs)
    streams: list[Stream] = []
    faults: list[EngineError] = []
    for outcome in engine.submit_all([GenerateRequest(new_id("bench"), p, params, client=CLIENT) for p in prompts]):
        if isinstance(outcome, EngineError):
            faults.append(outcome)
        else:
            streams.append(outcome)
    if faults:
        for stream in streams:
            stream.cancel()
        raise faults[0]
    return streams


def read(stream: Stream) -> Written:
    """A stream to its end. Raises the ``EngineError`` it ended with."""
    ids: list[int] = []
    logprobs: list[TokenLogprob] = []
    for event in stream:
        if isinstance(event, Tokens):
            ids += event.ids
            logprobs += event.logprobs
        elif isinstance(event, Failed):
            raise event.error
        elif isinstance(event, Finished):
            return Written(tuple(ids), tuple(logprobs), event)
    raise EngineError("The answer had no end.")


def rest(streams: Sequence[Stream]) -> None:
    """Sleep until all have ended, without waking for what comes: a reader that is woken for each token takes the
    interpreter from the engine. Answers must be shorter than a stream's buffer."""
    while not all(stream.ended for stream in streams):
        time.sleep(PAUSE)


def round_seconds(engine: Engine, lanes: int, context: int, tokens: int, seed: object = 0) -> float:
    """About the seconds of one round of so many lanes after ``context`` tokens each, by the engine's own clock."""
    streams = ask_all(engine, [prompt(engine, f"{seed} {lane}", context) for lane in range(lanes)], tokens)
    rest(streams)
    ends = [read(stream).end for stream in streams]
    return median([end.decode_seconds / (end.usage.output_tokens - 1) for end in ends])
