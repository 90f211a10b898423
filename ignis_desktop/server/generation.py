"""Running generations for a route: submit, read, note what they used."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace

from fastapi import Request

from engine.messages import (
    EngineError,
    Event,
    Finished,
    GenerateRequest,
    Guidance,
    Prefilled,
    Prompt,
    PromptScored,
    RequestClass,
    SamplingParams,
    TokenLogprob,
    Tokens,
    Usage,
    label_of,
)
from ignis_desktop.server.bridge import EventReader, client_watch, expect_success, submit_all
from ignis_desktop.server.guard import client_name
from ignis_desktop.server.sse import KEEP_ALIVE_SECONDS
from ignis_desktop.server.state import ServerState, state_of
from ignis_desktop.server.workers import deadline_passed


@dataclass(frozen=True)
class Piece:
    """What an answer has gained since it was last asked."""

    ids: list[int]
    text: str
    logprobs: list[TokenLogprob]


@dataclass
class Answer:
    """What one stream has brought so far."""

    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    prompt_logprobs: tuple[TokenLogprob | None, ...] = ()
    finished: Finished | None = None
    _seen_ids: int = 0
    _seen_texts: int = 0

    def take(self, event: Event) -> None:
        """Raises ``ApiError`` when the event ends the stream without an answer."""
        expect_success(event)
        if isinstance(event, Tokens):
            self.ids += event.ids
            self.texts.append(event.text)
            self.logprobs += event.logprobs
        elif isinstance(event, PromptScored):
            self.prompt_logprobs = event.logprobs
        elif isinstance(event, Finished):
            self.finished = event

    def news(self) -> Piece:
        """What ``take`` has added since the last call."""
        piece = Piece(
            self.ids[self._seen_ids :], "".join(self.texts[self._seen_texts :]), self.logprobs[self._seen_ids :]
        )
        self._seen_ids, self._seen_texts = len(self.ids), len(self.texts)
        return piece

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def end(self) -> Finished:
        assert self.finished is not None, "read to its end first"
        return self.finished


class Run:
    """The generations of one HTTP request, one or several a prompt."""

    def __init__(
        self,
        http: Request,
        request_class: RequestClass,
        requests: Sequence[GenerateRequest],
        param: str,
        *,
        siblings: int = 1,
    ) -> None:
        """
        Args:
            param: the body's field that holds the prompt.
            siblings: so many requests, one after the other, have the same prompt. The first of them reads it; the
                others follow when it is read, and take it over.

        Raises what ``Engine.submit`` does.
        """
        self._http = http
        self._state: ServerState = state_of(http)
        self._class = request_class
        self.answers = [Answer() for _ in requests]
        http.scope["ignis.record"].note(request_class=request_class)
        self._siblings = siblings
        self._places = list(range(0, len(requests), siblings))
        """The answer that each stream brings."""
        self._following = {place: requests[place + 1 : place + siblings] for place in self._places if siblings > 1}
        """Requests that wait until the prompt of the first of them is read."""
        try:
            streams = submit_all(self._state.engine, requests[::siblings])
        except EngineError as error:
            if error.param in ("messages", "prompt"):
                error.param = param
            raise
        self.reader = EventReader(streams, self._state.doorbell)
        self._state.readers.add(self.reader)

    async def collect(self) -> list[Answer]:
        """All answers, whole. Raises ``ClientGone`` when the client leaves; the engine's work ends with it."""
        async with client_watch(self._http, self.leave):
            try:
                while not self.reader.ended:
                    self._take(await self.reader.batch(KEEP_ALIVE_SECONDS))
            finally:
                self.close()
        return self.answers

    async def batches(self) -> AsyncGenerator[list[tuple[int, Event]], None]:
        """Events as they come, all there are at a time; [] after every fifteen seconds of silence.

        A stream may take as long as it likes, but not stay silent for longer than the deadline.
        """
        deadline = self._state.settings.deadline
        heard = time.monotonic()
        try:
            while not self.reader.ended:
                batch = await self.reader.batch(KEEP_ALIVE_SECONDS)
                if batch:
                    heard = time.monotonic()
                elif time.monotonic() - heard > deadline:
                    raise deadline_passed(deadline)
                yield self._take(batch)
        finally:
            self.close()

    def _take(self, batch: list[tuple[int, Event]]) -> list[tuple[int, Event]]:
        """Give events to their answers: (answer, event) for each (stream, event)."""
        taken = [(self._places[stream], event) for stream, event in batch]
        for place, event in taken:
            self.answers[place].take(event)
            read = isinstance(event, Tokens | Finished) or (isinstance(event, Prefilled) and event.done == event.total)
            if read and (followers := self._following.pop(place, ())):
                self._places += range(place + 1, place + 1 + len(followers))
                self.reader.add(submit_all(self._state.engine, followers))
        return taken

    def leave(self) -> None:
        """The client is gone."""
        self.reader.leave()

    def close(self) -> None:
        """End what still runs and note what was used. May be called again."""
        if self.reader not in self._state.readers:
            return
        self._state.readers.discard(self.reader)
        self.reader.cancel()
        ends = [answer.finished for answer in self.answers if answer.finished is not None]
        total = total_usage(
            [answer.finished for answer in self.answers[:: self._siblings] if answer.finished is not None]
        )
        self._http.scope["ignis.record"].note(
            prompt_tokens=total.prompt_tokens,
            cached_tokens=total.cached_tokens,
            output_tokens=sum(len(answer.ids) for answer in self.answers),
            tokens_per_second=sum(timings_json(end)["tokens_per_second"] for end in ends),
        )
        for end in ends:
            self._state.metrics.observe_generation(self._class, end)


def generate_request(
    http: Request,
    prompt: Prompt,
    sampling: SamplingParams,
    request_class: RequestClass,
    label: str,
    *,
    stream: bool,
    guidance: Guidance | None = None,
) -> GenerateRequest:
    """A request for the engine. Only answers that are sent whole have a deadline: see ``Run.batches``."""
    return GenerateRequest(
        id=uuid.uuid4().hex,
        prompt=prompt,
        sampling=sampling,
        guidance=guidance,
        request_class=request_class,
        client=client_name(http.scope),
        label=label_of(label),
        deadline=None if stream else time.monotonic() + state_of(http).settings.deadline,
    )


def with_siblings(request: GenerateRequest, count: int) -> list[GenerateRequest]:
    """Requests for ``count`` answers to the same prompt; a seed that was given makes one for each."""
    requests = [request]
    for number in range(1, count):
        seed = request.sampling.seed
        if seed is not None:
            seed = seed + number if seed + number < 2**64 else seed + number - 2**64
        requests.append(replace(request, id=uuid.uuid4().hex, sampling=replace(request.sampling, seed=seed)))
    return requests


def total_usage(ends: Sequence[Finished], siblings: int = 1) -> Usage:
    """What all answers used. The prompt of each ``siblings`` answers in a row counts once."""
    return Usage(
        prompt_tokens=sum(end.usage.prompt_tokens for end in ends[::siblings]),
        cached_tokens=sum(end.usage.cached_tokens for end in ends[::siblings]),
        output_tokens=sum(end.usage.output_tokens for end in ends),
    )


def usage_json(usage: Usage, reasoning_tokens: int | None = None) -> dict[str, object]:
    """OpenAI's usage object."""
    body: dict[str, object] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.prompt_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
    if reasoning_tokens is not None:
        body["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
    return body


def timings_json(end: Finished) -> dict[str, float | int]:
    """What a client may want to show beside an answer; ``seed`` repeats it."""
    rate = end.usage.output_tokens / end.decode_seconds if end.decode_seconds > 0 else 0.0
    return {
        "queue_ms": round(end.queue_seconds * 1000, 3),
        "prefill_ms": round(end.prefill_seconds * 1000, 3),
        "decode_ms": round(end.decode_seconds * 1000, 3),
        "tokens_per_second": round(rate, 2),
        "seed": end.seed,
    }


def finish_reason(end: Finished) -> str:
    """OpenAI's name for why an answer ended."""
    return "length" if end.reason == "length" else "stop"
