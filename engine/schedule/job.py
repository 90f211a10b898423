"""A request that was checked and may wait in the queue, and the same request once it holds a lane."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import Tensor

from engine.messages import (
    Event,
    GenerateRequest,
    HeadSpan,
    LaneSnapshot,
    ReadRequest,
    Request,
    RetainRequest,
    TokenLogprob,
    Usage,
)
from engine.stream import Stream
from engine.text.stream import TextStream


@dataclass(frozen=True)
class Picture:
    """A picture's place in the prompt: its tokens are ``[start, start + count)``."""

    index: int
    start: int
    count: int


@dataclass(frozen=True)
class Job:
    """A checked request. ``positions`` is int64 [3, T] of the request's own tokens, counted from 0."""

    request: Request
    stream: Stream
    positions: Tensor
    rope_delta: int
    pictures: tuple[Picture, ...]
    cap: int
    """Most tokens that may be generated."""
    end_ids: frozenset[int]
    queued: float = field(default_factory=time.monotonic)

    @property
    def kind(self) -> str:
        return {GenerateRequest: "generate", ReadRequest: "read", RetainRequest: "retain"}[type(self.request)]

    @property
    def span(self) -> HeadSpan | None:
        return self.request.heads if isinstance(self.request, ReadRequest) else None

    @property
    def layers(self) -> int | None:
        """Layers this request needs; None is all."""
        if isinstance(self.request, RetainRequest):
            return self.request.layers
        if isinstance(self.request, ReadRequest) and self.request.heads and not self.request.labels:
            return 1 + max(layer for layer, _ in self.request.heads.heads)
        return None


class Sequence:
    """A request on a lane."""

    def __init__(self, job: Job, lane: int, pages: list[int], *, past: int = 0, rope_delta: int = 0) -> None:
        self.job = job
        self.request = job.request
        self.lane = lane
        self.pages = pages
        self.base = past
        """Tokens that were there before the request's own: the retained prefix it continues."""
        self.context = past
        """Tokens in the lane's state."""
        self.positions = job.positions + (past + rope_delta)
        self.rope_delta = job.rope_delta + rope_delta
        self.prompt = job.request.prompt.ids
        self.embedded: dict[int, Tensor] = {}
        """Image tokens by picture number, once encoded."""
        self.encoding: Iterator[Tensor | None] | None = None
        self.prompt_logprobs: list[TokenLogprob | None] = []
        self.text: TextStream | None = None
        self.seed = 0
        self.last_token = -1
        self.generated = 0
        self.started = time.monotonic()
        self.first_token: float | None = None

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def read(self) -> int:
        """The request's own prompt tokens read so far."""
        return min(self.context - self.base, len(self.prompt))

    @property
    def decoding(self) -> bool:
        return self.first_token is not None

    def emit(self, event: Event) -> bool:
        return self.job.stream.put(event)

    def usage(self) -> Usage:
        return Usage(self.base + len(self.prompt), self.base, self.generated)

    def snapshot(self, now: float) -> LaneSnapshot:
        request = self.request
        rate = 0.0
        if self.first_token is not None and now > self.first_token:
            rate = (self.generated - 1) / (now - self.first_token)
        return LaneSnapshot(
            lane=self.lane,
            state="decode" if self.decoding else "prefill",
            request_id=request.id,
            request_class=request.request_class,
            client=request.client,
            label=request.label,
            kind=self.job.kind,  # type: ignore[arg-type]
            prompt_tokens=self.base + len(self.prompt),
            prefilled=self.base + self.read,
            generated=self.generated,
            context=self.context,
            tokens_per_second=rate,
            seconds=now - self.started,
        )
