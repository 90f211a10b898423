"""What clients of a mixed load do, each once: every kind of request that the engine takes, and every way of ending it.

An act returns what became of it, or raises ``WrongError`` with what should not have happened.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from engine.engine import new_id
from engine.messages import (
    BusyError,
    DeadlineError,
    EngineError,
    Failed,
    Finished,
    GenerateRequest,
    Guidance,
    Prompt,
    RequestClass,
    RequestError,
    SamplingParams,
    Tokens,
)
from engine.text.grammar import answer_grammar
from ignis_desktop.bench.cpu import material
from ignis_desktop.bench.gpu import door
from ignis_desktop.bench.words import PATTERN

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.stream import Stream

DONE, CANCELLED, LATE, REFUSED = "done", "cancelled", "late", "refused"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["book", "film", "song"]},
        "known": {"type": "boolean"},
        "parts": {"type": "array", "items": {"enum": ["one", "two", "three"]}, "minItems": 2, "maxItems": 4},
    },
    "required": ["kind", "known", "parts"],
    "additionalProperties": False,
}
"""Of which every answer is short, whatever the weights are."""
SAMPLING: tuple[dict[str, Any], ...] = (
    {"temperature": 0.0},
    {"temperature": 0.8, "top_k": 20},
    {"temperature": 0.7, "top_p": 0.9, "min_p": 0.02},
    {"temperature": 1.0, "top_k": 40, "presence_penalty": 1.2, "frequency_penalty": 0.3, "repetition_penalty": 1.1},
    {"temperature": 0.6, "top_k": 20, "logit_bias": ((5, 2.0), (6, -2.0)), "logprobs": 3},
)
SECONDS = 300.0
"""A request that takes longer hangs."""


class WrongError(Exception):
    """The engine did what it must not do."""


@dataclass(frozen=True)
class Sizes:
    """How long prompts and answers and how large pictures are: what fits the device that serves them."""

    short: int = 48
    long: int = 4096
    answer: int = 96
    side: int = 768
    log_lines: int = 300


@dataclass
class Actor:
    """Carries out acts on one engine. ``random`` decides all of them."""

    engine: Engine
    sizes: Sizes
    random: random.Random

    def chat(self) -> str:
        """A short conversation: its beginning may be kept, and others start from it."""
        system = sentence(random.Random(self.random.randrange(4)), self.sizes.short)
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": sentence(self.random, self.random.randint(4, self.sizes.short))},
        ]
        return self._whole(self.engine.chat_prompt(messages), self._params(), self._class())

    def long(self) -> str:
        """A prompt of many chunks."""
        length = self.random.randint(self.sizes.long // 4, self.sizes.long)
        return self._whole(door.prompt(self.engine, self.random.random(), length), self._params(), self._class())

    def grammar(self) -> str:
        """JSON of a schema, with penalties or without."""
        prompt = self.engine.chat_prompt([{"role": "user", "content": sentence(self.random, 12)}])
        params = replace(self._params(), ignore_eos=False, max_tokens=200, logit_bias=())
        held = Guidance(answer_grammar(self.engine.tokenizer, schema=SCHEMA))
        text, end = self._read(self._submit(prompt, params, self._class(), guidance=held))
        if end.reason == "stop":
            try:
                found = json.loads(text)
            except ValueError:
                raise WrongError(f"an answer held to a schema is no JSON: {text[:80]!r}") from None
            if found["kind"] not in ("book", "film", "song"):
                raise WrongError(f"an answer does not fit its schema: {text[:80]!r}")
        elif end.reason != "length":
            raise WrongError(f"an answer held to a schema ended with {end.reason}")
        return DONE

    def cancel(self) -> str:
        """Cancelled in the queue, while it is read or while it is written."""
        length = self.random.choice((self.sizes.short, self.sizes.long))
        stream = self._submit(door.prompt(self.engine, self.random.random(), length), self._params(), self._class())
        until = time.monotonic() + 0.5 * self.random.random() ** 2
        while time.monotonic() < until and not stream.ended:
            stream.get(timeout=0.01)
        stream.cancel()
        return self._ended(stream)

    def storm(self) -> str:
        """Many at once, all cancelled at once, in any order."""
        count = 2 * len(self.engine.snapshot().lanes) + 8
        prompts = [door.prompt(self.engine, self.random.random(), self.sizes.short) for _ in range(count)]
        requests = [self._request(p, self._params(), self._class()) for p in prompts]
        streams = [s for s in self.engine.submit_all(requests) if not isinstance(s, EngineError)]
        time.sleep(0.2 * self.random.random())
        for stream in self.random.sample(streams, len(streams)):
            stream.cancel()
        ends = [self._ended(stream) for stream in streams]
        return CANCELLED if CANCELLED in ends else DONE

    def deadline(self) -> str:
        """Whose time is up before it is done, mostly."""
        when = time.monotonic() + 0.4 * self.random.random()
        stream = self._submit(
            door.prompt(self.engine, self.random.random(), self.sizes.long // 2),
            self._params(),
            self._class(),
            deadline=when,
        )
        return self._ended(stream)

    def park(self) -> str:
        """An agent's answer that is interrupted for others on the way, and must be whole all the same."""
        params = self._params()
        prompt = door.prompt(self.engine, self.random.random(), self.sizes.short)
        stream = self._submit(prompt, params, "agent")
        begun = stream.get(timeout=SECONDS)
        if begun is not None and not stream.ended:
            self.engine.park(stream.request_id)
        self._count(self._read(stream)[1], params)
        return DONE

    def picture(self) -> str:
        """A question about a picture of any size."""
        width, height = (self.random.randint(self.sizes.side // 4, self.sizes.side) for _ in range(2))
        picture = self.engine.prepare_image(noise(self.random, width, height))
        parts = [{"type": "image", "image": picture}, {"type": "text", "text": sentence(self.random, 8)}]
        return self._whole(self.engine.chat_prompt([{"role": "user", "content": parts}]), self._params(), self._class())

    def decide(self) -> str:
        """Labels read, nothing written."""
        from engine.answers.decide import Choice, Noul, Number, decide

        questions: list[Noul | Choice | Number] = [
            Noul("late", "Is it late in the year?"),
            Choice("place", "Where does it happen?", ("garden", "harbour", "office"), ("one", "a port", "an office")),
            Number("count", "How many are there?", 2),
        ]
        state = sentence(self.random, self.random.randint(self.sizes.short, 4 * self.sizes.short))
        found = decide(self.engine, state, questions, request_class=self._class(), client=door.CLIENT)
        faults = [answer for answer in found.answers.values() if isinstance(answer, EngineError)]
        if faults:
            raise faults[0]
        return DONE

    def locate(self) -> str:
        """A line found in a log by its heads."""
        from engine.answers.locate import locate

        lines = self.random.randint(4, self.sizes.log_lines)
        text = material.log(lines, self.random.randrange(1 << 30))
        answer = locate(self.engine, text, "which line says that the disk is full?", client=door.CLIENT)
        if not 0 <= answer.confidence <= 1:
            raise WrongError(f"a line was found with a confidence of {answer.confidence}")
        return DONE

    def screen(self) -> str:
        """A picture kept, and asked several times at once."""
        from engine.answers.point import Screen

        image = noise(self.random, self.sizes.side, self.sizes.side * 2 // 3)
        opened = Screen.open(self.engine, self.engine.prepare_image(image), client=door.CLIENT)
        try:
            for answer in opened.points(["the Save button", "the search field"], client=door.CLIENT):
                if isinstance(answer, EngineError):
                    raise answer
                if not (np.isfinite(answer.pixels).all() and np.isfinite(answer.heat).all()):
                    raise WrongError("a point is not a number")
        finally:
            opened.close()
        return DONE

    # --- helpers ---------------------------------------------------------------------------------------------

    def _class(self) -> RequestClass:
        return self.random.choice(("interactive", "agent"))

    def _params(self) -> SamplingParams:
        return SamplingParams(
            **self.random.choice(SAMPLING),
            max_tokens=self.random.randint(1, self.sizes.answer),
            seed=self.random.randrange(1 << 31),
            ignore_eos=True,
        )

    def _request(self, prompt: Prompt, params: SamplingParams, kind: RequestClass, **more: Any) -> GenerateRequest:
        return GenerateRequest(new_id("soak"), prompt, params, request_class=kind, client=door.CLIENT, **more)

    def _submit(self, prompt: Prompt, params: SamplingParams, kind: RequestClass, **more: Any) -> Stream:
        return self.engine.submit(self._request(prompt, params, kind, **more))

    def _whole(self, prompt: Prompt, params: SamplingParams, kind: RequestClass) -> str:
        self._count(self._read(self._submit(prompt, params, kind))[1], params)
        return DONE

    def _count(self, end: Finished, params: SamplingParams) -> None:
        if end.reason != "length" or end.usage.output_tokens != params.max_tokens:
            raise WrongError(
                f"an answer of {params.max_tokens} tokens ended with {end.reason} after {end.usage.output_tokens}"
            )

    def _read(self, stream: Stream) -> tuple[str, Finished]:
        """Text and end. Raises what the request failed with, and ``WrongError`` for one that hangs."""
        texts = []
        until = time.monotonic() + SECONDS
        while True:
            event = stream.get(timeout=max(until - time.monotonic(), 0.0))
            if event is None:
                stream.cancel()
                raise WrongError(f"nothing came for {SECONDS:.0f} s")
            if isinstance(event, Tokens):
                texts.append(event.text)
            elif isinstance(event, Failed):
                raise event.error
            elif isinstance(event, Finished):
                return "".join(texts), event

    def _ended(self, stream: Stream) -> str:
        """How a request ended that was cancelled or had little time; a fault is raised."""
        try:
            _, end = self._read(stream)
        except DeadlineError:
            return LATE
        return CANCELLED if end.reason == "cancelled" else DONE


@dataclass(frozen=True)
class Act:
    name: str
    weight: float
    run: Callable[[Actor], str]


def acts_of(engine: Engine) -> list[Act]:
    """What can be asked of the loaded model."""
    info = engine.info
    return [
        Act("chat", 8, Actor.chat),
        Act("long prompt", 3, Actor.long),
        Act("grammar", 2, Actor.grammar),
        Act("cancel", 4, Actor.cancel),
        Act("storm", 0.3, Actor.storm),
        Act("deadline", 1, Actor.deadline),
        Act("park", 1, Actor.park),
        Act("decide", 1, Actor.decide),
        *([Act("picture", 1, Actor.picture)] if info.vision else []),
        *([Act("locate", 0.5, Actor.locate)] if info.locate else []),
        *([Act("screen", 0.5, Actor.screen)] if info.point else []),
    ]


def outcome(act: Act, actor: Actor) -> tuple[str, str]:
    """(what became of it, what is wrong: "" for nothing)."""
    try:
        return act.run(actor), ""
    except BusyError:
        return REFUSED, ""
    except (RequestError, EngineError, WrongError) as fault:
        return "", f"{act.name}: {fault}"
    except Exception as fault:  # one client's end must not be the others'
        return "", f"{act.name}: {type(fault).__name__}: {fault}"


def sentence(drawn: random.Random, words: int) -> str:
    return " ".join(drawn.choice(PATTERN[place % len(PATTERN)]) for place in range(max(words, 1))) + "."


def noise(drawn: random.Random, width: int, height: int) -> Image.Image:
    """A picture that was never seen before, in blocks as screens have them."""
    generator = np.random.default_rng(drawn.getrandbits(64))
    small = generator.integers(0, 256, (max(height // 16, 1), max(width // 16, 1), 3), dtype=np.uint8)
    return Image.fromarray(small).resize((max(width, 1), max(height, 1)), Image.Resampling.NEAREST)
