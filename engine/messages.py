"""Everything that crosses the engine's door: requests in, events and snapshots out.

All of it is frozen: a message may be read from any thread and never changes after it was made.
Times are seconds on ``time.monotonic``'s clock, durations are seconds, sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

RequestClass = Literal["interactive", "agent"]
EngineState = Literal["empty", "planning", "loading", "ready", "draining", "closed", "failed"]
FinishReason = Literal["stop", "length", "cancelled", "error"]
RequestKind = Literal["", "generate", "read", "retain"]
LaneState = Literal["idle", "prefill", "decode", "parked"]

PAGE_FREE, PAGE_PARKED, PAGE_SHARED, PAGE_KEPT = 0, 253, 254, 255
"""Bytes of ``EngineSnapshot.page_map`` that are no lane's."""


class EngineError(Exception):
    """A fault with one clear sentence that says what to do. ``status`` is the HTTP status it maps to."""

    status = 500

    def __init__(self, message: str, *, code: str = "engine_error", param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.param = param


class RequestError(EngineError):
    """The caller's fault: a request that can never work as it stands (HTTP 400)."""

    status = 400


class BusyError(EngineError):
    """The queue is full or the engine is not ready; trying again later may work (HTTP 503)."""

    status = 503

    def __init__(self, message: str, *, retry_after: float = 1.0, code: str = "busy") -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class DeadlineError(EngineError):
    """The request's time was up (HTTP 504)."""

    status = 504


class PrefixGoneError(RequestError):
    """The retained prefix was dropped to make room; retain it again (HTTP 409)."""

    status = 409

    def __init__(self, prefix: str) -> None:
        super().__init__(f"The retained prefix {prefix!r} is gone; encode it again.", code="prefix_gone")


@dataclass(frozen=True)
class ImageInput:
    """One decoded picture. ``rgb`` is uint8 [height, width, 3], already sized for the model (multiples of
    patch × merge); ``digest`` is the hash of its content; ``scale`` maps model pixels to the original's:
    ``original = model_pixel × scale`` per axis (x, y)."""

    rgb: np.ndarray
    digest: bytes
    original_size: tuple[int, int]
    """(width, height) of the picture as given."""

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) as the model sees it."""
        return self.rgb.shape[1], self.rgb.shape[0]

    @property
    def scale(self) -> tuple[float, float]:
        return self.original_size[0] / self.size[0], self.original_size[1] / self.size[1]


@dataclass(frozen=True)
class Prompt:
    """Token ids with pictures. Each picture stands in ``ids`` as its full run of image tokens, in order."""

    ids: tuple[int, ...]
    images: tuple[ImageInput, ...] = ()
    marks: tuple[int, ...] = ()
    """Positions (tokens before them) at which other prompts are likely to branch off: the state there is kept for
    reuse. Ascending, each from 1 to ``len(ids)``."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class SamplingParams:
    """How to choose each token. Defaults change nothing; the checkpoint's own defaults
    (generation_config.json) are filled in by the caller through ``Engine.sampling_defaults``."""

    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps all."""
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    """(token, what is added to its logit), each token once."""
    seed: int | None = None
    """None draws one; the one used is reported in ``Finished.seed``."""
    max_tokens: int | None = None
    """None: what the context and the configured generation cap allow."""
    stop: tuple[str, ...] = ()
    """Strings that end the text; none of them is emitted."""
    stop_ids: tuple[int, ...] = ()
    """Token ids that end the text besides the model's own end tokens."""
    ignore_eos: bool = False
    logprobs: int | None = None
    """None: no log probabilities; n ≥ 0: the chosen token's and the n most likely ones'."""
    prompt_logprobs: int | None = None
    """The same for the prompt's own tokens (text completions with ``echo``)."""


@dataclass(frozen=True)
class Guidance:
    """What an answer is held to besides sampling."""

    grammar: str | None = None
    """What it must match as a whole, reasoning included; see ``engine.text.grammar``."""
    thinking_budget: int | None = None
    """Tokens after which the reasoning block that the prompt opened is closed; less where the answer would have no
    room."""


@dataclass(frozen=True)
class GenerateRequest:
    """Generate text after a prompt, on a lane of its own."""

    id: str
    prompt: Prompt
    sampling: SamplingParams = SamplingParams()
    guidance: Guidance | None = None
    request_class: RequestClass = "interactive"
    client: str = ""
    """Who asks, as the panels show it (address, "chat panel", …)."""
    label: str = ""
    """First words of the prompt, as the panels show it."""
    deadline: float | None = None
    """Monotonic time after which the request is given up."""


@dataclass(frozen=True)
class HeadSpan:
    """Attention heads to read at the last prompt position: ``heads`` are (layer, query head) pairs,
    keys are the prompt positions ``[start, end)`` followed by the single positions ``extra``."""

    heads: tuple[tuple[int, int], ...]
    start: int
    end: int
    extra: tuple[int, ...] = ()
    peaks: tuple[tuple[int, int], ...] = ()
    """Heads of which only the best of the keys ``[start, end)`` is wanted. These keys are a picture's cells, row by
    row, ``columns`` to a row: the best cell's neighbours come with it."""
    columns: int = 0

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers that are read, ascending."""
        return tuple(sorted({layer for layer, _ in (*self.heads, *self.peaks)}))


@dataclass(frozen=True)
class ReadRequest:
    """Prefill a prompt and read attention scores and/or label logits at its last position; no token is
    generated. With ``prefix`` (the id of a ``RetainRequest`` that finished) the prompt holds only what follows the
    prefix, while the positions in ``heads`` count from the prefix's start."""

    id: str
    prompt: Prompt
    heads: HeadSpan | None = None
    labels: tuple[int, ...] = ()
    """Token ids whose log probabilities are wanted at the last position."""
    prefix: str | None = None
    request_class: RequestClass = "interactive"
    client: str = ""
    label: str = ""
    deadline: float | None = None


@dataclass(frozen=True)
class RetainRequest:
    """Prefill a prompt and keep its state under ``id`` until released: questions fork from it."""

    id: str
    prompt: Prompt
    layers: int | None = None
    """Run only the first so many layers: enough for reads of heads in them, and cheaper. None is all."""
    request_class: RequestClass = "interactive"
    client: str = ""
    label: str = ""
    deadline: float | None = None


Request = GenerateRequest | ReadRequest | RetainRequest


@dataclass(frozen=True)
class Usage:
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class TokenLogprob:
    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Started:
    """The request holds a lane; its prefill begins."""

    queue_seconds: float


@dataclass(frozen=True)
class Prefilled:
    """Prompt tokens read so far, once per chunk."""

    done: int
    total: int


@dataclass(frozen=True)
class PromptScored:
    """Log probabilities of the prompt's own tokens (first is None: nothing comes before it)."""

    logprobs: tuple[TokenLogprob | None, ...]


@dataclass(frozen=True)
class Tokens:
    """What one round added to one request. ``text`` is complete UTF-8 and may be empty while a character or a
    possible stop string is incomplete; ``logprobs`` has one entry a token when asked for."""

    ids: tuple[int, ...]
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True)
class Peaks:
    """Each peak head's best cell. Scores are q·k/√d before any softmax."""

    cells: np.ndarray
    """int64 [heads], counted from the span's start, row by row."""
    scores: np.ndarray
    """float32 [heads, 5]: of the cell, then of its neighbours to the left, to the right, above and below; -inf where
    the picture ends."""


@dataclass(frozen=True)
class Scores:
    """A ReadRequest's answer. ``heads``: float32 [number of heads, span + extra], q·k/√d before any softmax, in
    the order of ``HeadSpan``; ``labels``: float32 [number of labels], natural log probabilities over the vocabulary."""

    heads: np.ndarray | None = None
    labels: np.ndarray | None = None
    peaks: Peaks | None = None


@dataclass(frozen=True)
class Finished:
    reason: FinishReason
    usage: Usage
    seed: int = 0
    stop: str | None = None
    """The stop string that ended the text, if one did."""
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    queue_seconds: float = 0.0


@dataclass(frozen=True)
class Failed:
    """The request ended with a fault; nothing follows."""

    error: EngineError


Event = Started | Prefilled | PromptScored | Tokens | Scores | Finished | Failed


@dataclass(frozen=True)
class MemoryLine:
    name: str
    """Stable identifier: weights, kv_pool, lane_state, retained, workspace, …"""
    bytes: int
    why: str
    """How the figure comes about, in words and numbers."""
    tier: Literal["main", "host", "disk"] = "main"
    """"main": part of the budget and of ``total``. "host" (pinned memory beside a GPU) and "disk" count for neither."""


@dataclass(frozen=True)
class MemoryPlan:
    kind: Literal["vram", "host"]
    budget: int
    """What the engine may hold: free memory less the headroom, or what was set."""
    total: int
    """What it will hold: all lines of the tier "main"."""
    lines: tuple[MemoryLine, ...]
    other: int = 0
    """What other processes hold of the same memory."""
    headroom: int = 0
    """Free memory that is left to other programs on purpose."""
    capacity: int = 0
    """The whole memory. It is ``other`` + ``headroom`` + ``budget``."""


@dataclass(frozen=True)
class LaneSnapshot:
    lane: int
    state: LaneState = "idle"
    request_id: str = ""
    request_class: RequestClass | None = None
    client: str = ""
    label: str = ""
    kind: RequestKind = ""
    prompt_tokens: int = 0
    prefilled: int = 0
    generated: int = 0
    context: int = 0
    """Tokens in the lane's context now."""
    tokens_per_second: float = 0.0
    seconds: float = 0.0
    """Since the lane was taken."""
    cached: int = 0
    """Prompt tokens that were not read again."""
    pages: int = 0
    """KV pages it holds, shared ones included."""


@dataclass(frozen=True)
class WaitingSnapshot:
    """A request that waits for a lane."""

    request_id: str
    request_class: RequestClass
    client: str = ""
    label: str = ""
    kind: RequestKind = ""
    prompt_tokens: int = 0
    seconds: float = 0.0
    protected: bool = False
    """Others may pass only where that does not delay it."""


@dataclass(frozen=True)
class ReuseSnapshot:
    """What is kept of earlier requests, and what that has saved. Counts are since the model was loaded."""

    kept: int = 0
    """Snapshots and retained prefixes that can be forked now, wherever their pages are."""
    kept_pages: int = 0
    """KV pages that nothing but these hold."""
    hits: int = 0
    misses: int = 0
    """Requests that found a kept prefix, or none."""
    cached_tokens: int = 0
    """Prompt tokens that were not read again."""
    evictions: int = 0
    spills: int = 0
    """Kept or parked states moved to the host tier."""
    restores: int = 0
    parks: int = 0
    resumes: int = 0
    host_total: int = 0
    """Bytes of the host tier."""
    host_used: int = 0
    disk_used: int = 0
    """Bytes of the disk tier; 0 when it is off."""


@dataclass(frozen=True)
class EngineSnapshot:
    """Everything that panels, /v1/engine and the status bar show; they derive nothing from elsewhere."""

    state: EngineState
    reason: str = ""
    """Why it failed, in words, when ``state`` is "failed"; what is being done while loading."""
    progress: float | None = None
    """0–1 while loading."""
    model: str = ""
    """Display name, e.g. "Ember 0"."""
    model_id: str = ""
    """Name on the API, e.g. "ember"."""
    device: str = ""
    """E.g. "CPU, bfloat16, 2 threads"."""
    context_length: int = 0
    lanes: tuple[LaneSnapshot, ...] = ()
    parked: tuple[LaneSnapshot, ...] = ()
    """Requests that gave their lane (its number is the one they had) to an interactive one and go on later."""
    waiting: tuple[WaitingSnapshot, ...] = ()
    """The first of those that wait, in the order of their classes; the counts below are of all."""
    queued_interactive: int = 0
    queued_agent: int = 0
    memory_plan: MemoryPlan | None = None
    pages_total: int = 0
    pages_free: int = 0
    page_map: bytes = b""
    """One byte a page: ``PAGE_FREE``, a lane's number + 1, ``PAGE_SHARED`` (several owners), ``PAGE_KEPT`` (kept state
    only), ``PAGE_PARKED``."""
    retained: int = 0
    reuse: ReuseSnapshot = ReuseSnapshot()
    decode_tokens_per_second: float = 0.0
    prefill_tokens_per_second: float = 0.0
    rounds: int = 0
    tokens_generated: int = 0
    tokens_prefilled: int = 0
    requests_finished: int = 0
    requests_failed: int = 0
    requests_cancelled: int = 0
    resident_bytes: int = 0
    """This process's resident memory."""
    time: float = 0.0


@dataclass(frozen=True)
class ModelInfo:
    """What a loaded model is and can do."""

    id: str
    name: str
    context_length: int
    vocabulary_size: int
    vision: bool
    locate: bool
    point: bool
    thinking: bool
    parameters: int
    content_hash: str
    formats: tuple[tuple[str, int], ...] = field(default=())
    """(format, number of tensors) of the checkpoint."""


def label_of(text: str, words: int = 8) -> str:
    """First words of a prompt, for the panels."""
    parts: Sequence[str] = text.split(maxsplit=words)
    return " ".join(parts[:words])
