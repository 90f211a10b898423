"""A request that was checked and may wait in the queue, and the same request once it holds a lane or is parked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import Tensor

from engine.messages import (
    Event,
    GenerateRequest,
    HeadSpan,
    ImageInput,
    LaneSnapshot,
    ReadRequest,
    Request,
    RequestKind,
    RetainRequest,
    TokenLogprob,
    Usage,
    WaitingSnapshot,
)
from engine.sample.guide import Guide
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
    guide: Guide | None = None
    """What its answer is held to."""
    chain: tuple[bytes, ...] = ()
    """Hashes of the prompt's whole blocks (``engine.memory.prefix_hash``); empty when nothing may be reused."""
    marks: tuple[int, ...] = ()
    """Prompt positions at which the state is kept; chunks end there."""
    queued: float = field(default_factory=time.monotonic)

    @property
    def kind(self) -> RequestKind:
        kinds: dict[type, RequestKind] = {GenerateRequest: "generate", ReadRequest: "read", RetainRequest: "retain"}
        return kinds[type(self.request)]

    @property
    def picture_keys(self) -> tuple[tuple[int, bytes], ...]:
        """(position, content) of each picture, as prefix hashes take them."""
        images = self.request.prompt.images
        return tuple((picture.start, _picture_key(images[picture.index])) for picture in self.pictures)

    @property
    def most_reused(self) -> int:
        """Prompt tokens that kept state may stand in for: a read reads its last token itself."""
        return len(self.request.prompt) - (not isinstance(self.request, GenerateRequest))

    @property
    def keeps_end(self) -> bool:
        """Whether the state after its answer is kept."""
        return bool(self.marks and self.chain)

    @property
    def stop_strings(self) -> bool:
        return isinstance(self.request, GenerateRequest) and any(self.request.sampling.stop)

    @property
    def label(self) -> WaitingSnapshot:
        """What panels show of it."""
        request = self.request
        return WaitingSnapshot(
            request_id=request.id,
            request_class=request.request_class,
            client=request.client,
            label=request.label,
            kind=self.kind,
            prompt_tokens=len(request.prompt),
        )

    @property
    def span(self) -> HeadSpan | None:
        return self.request.heads if isinstance(self.request, ReadRequest) else None

    @property
    def layers(self) -> int | None:
        """Layers this request needs; None is all."""
        if isinstance(self.request, RetainRequest):
            return self.request.layers
        if isinstance(self.request, ReadRequest) and self.request.heads and not self.request.labels:
            return 1 + self.request.heads.layers[-1]
        return None


class Sequence:
    """A request on a lane, or parked."""

    def __init__(
        self, job: Job, lane: int, pages: list[int], *, base: int = 0, cached: int = 0, rope_delta: int = 0
    ) -> None:
        self.job = job
        self.request = job.request
        self.lane = lane
        self.pages = pages
        self.base = base
        """Tokens that were there before the request's own: the retained prefix it names."""
        self.cached = cached
        """The request's own prompt tokens that stood in kept state already."""
        self.context = base + cached
        """Tokens in the lane's state."""
        self.positions = job.positions + (base + rope_delta)
        self.rope_delta = job.rope_delta + rope_delta
        self.prompt = job.request.prompt.ids
        self.embedded: dict[int, Tensor] = {}
        """Image tokens by picture number, once encoded."""
        self.encoding: Iterator[Tensor | None] | None = None
        self.prompt_logprobs: list[TokenLogprob | None] = []
        self.text: TextStream | None = None
        self.seed = 0
        self.generated: list[int] = []
        self.parkable = False
        """Whether it gives its lane to an interactive request when one waits."""
        self.sampling: object | None = None
        """What the sampler knew of it, while it is parked."""
        self.logits: Tensor | None = None
        """float32 [1, V] that its next token is still to be chosen from: its mask was late."""
        self.started = time.monotonic()
        self.active = self.started
        """When it last advanced."""
        self.first_token: float | None = None

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def read(self) -> int:
        """The request's own prompt tokens that stand in the state."""
        return min(self.context - self.base, len(self.prompt))

    @property
    def decoding(self) -> bool:
        return self.first_token is not None

    @property
    def begun(self) -> bool:
        """Something of its prompt was read on this lane."""
        return self.context > self.base + self.cached or bool(self.embedded) or self.encoding is not None

    def emit(self, event: Event) -> bool:
        return self.job.stream.put(event)

    def usage(self) -> Usage:
        return Usage(self.base + len(self.prompt), self.base + self.cached, len(self.generated))

    def snapshot(self, now: float, *, parked: bool = False) -> LaneSnapshot:
        request = self.request
        rate = 0.0
        if self.first_token is not None and now > self.first_token:
            rate = (len(self.generated) - 1) / (now - self.first_token)
        return LaneSnapshot(
            lane=self.lane,
            state="parked" if parked else "decode" if self.decoding else "prefill",
            request_id=request.id,
            request_class=request.request_class,
            client=request.client,
            label=request.label,
            kind=self.job.kind,
            prompt_tokens=self.base + len(self.prompt),
            prefilled=self.base + self.read,
            generated=len(self.generated),
            # The round that is under way is not counted before its token is known.
            context=min(self.context, self.base + len(self.prompt) + max(len(self.generated) - 1, 0)),
            tokens_per_second=rate,
            seconds=now - self.started,
            cached=self.base + self.cached,
            pages=len(self.pages),
        )


def _picture_key(image: ImageInput) -> bytes:
    """Content and size as the model sees it: the same file at another size is another picture."""
    width, height = image.size
    return image.digest + width.to_bytes(4, "little") + height.to_bytes(4, "little")
