"""Checking a request at the door: whatever can never work is refused at once, with the reason."""

from __future__ import annotations

import math

from engine.config import ModelConfig
from engine.loader import Loaded
from engine.messages import GenerateRequest, HeadSpan, ReadRequest, Request, RequestError, SamplingParams
from engine.model.rope import prompt_positions
from engine.schedule.job import Job, Picture
from engine.schedule.scheduler import Scheduler
from engine.stream import Stream

MAX_LOGPROBS = 20


def check_request(request: Request, stream: Stream, loaded: Loaded, scheduler: Scheduler) -> Job:
    """A job that the scheduler can run, or ``RequestError``."""
    config, context = loaded.config, scheduler.max_context
    ids = request.prompt.ids
    if not ids:
        raise RequestError("The prompt is empty; send at least one token.", param="prompt")
    vocabulary = config.text.vocab_size
    if min(ids) < 0 or max(ids) >= vocabulary:
        raise RequestError(f"Token ids must be 0 to {vocabulary - 1}.", param="prompt")
    room = context - len(ids)
    if room < (1 if isinstance(request, GenerateRequest) else 0):
        raise RequestError(
            f"The prompt has {len(ids):,} tokens; the context holds {context:,} together with the answer. Shorten it.",
            code="context_length_exceeded",
            param="messages",
        )
    grids = _grids(request, config)
    positions, delta = prompt_positions(ids, grids, config.image_token_id)
    cap, ends = 0, frozenset[int]()
    if isinstance(request, GenerateRequest):
        sampling = request.sampling
        check_sampling(sampling, vocabulary)
        wanted = scheduler.generation_cap if sampling.max_tokens is None else sampling.max_tokens
        cap = min(wanted, room)
        ends = frozenset(sampling.stop_ids) | (frozenset() if sampling.ignore_eos else loaded.end_ids)
    elif isinstance(request, ReadRequest):
        if request.heads is not None:
            _check_span(request.heads, config, len(ids) if request.prefix is None else context)
        elif not request.labels:
            raise RequestError("A read names heads, labels or both.")
        if any(not 0 <= label < vocabulary for label in request.labels):
            raise RequestError(f"Labels must be token ids from 0 to {vocabulary - 1}.", param="labels")
    job = Job(request, stream, positions, delta, _pictures(ids, grids, config.image_token_id), cap, ends)
    if not scheduler.fits(job):
        raise RequestError(
            f"The request needs {len(ids) + cap:,} tokens of context and the whole pool holds fewer; "
            "ask for a shorter answer or load with more kv_tokens.",
            code="context_length_exceeded",
        )
    return job


def check_sampling(params: SamplingParams, vocabulary: int) -> None:
    """Raises ``RequestError`` naming the parameter that is out of range."""
    checks = (
        ("temperature", 0 <= params.temperature <= 10, "0 to 10"),
        ("top_p", 0 < params.top_p <= 1, "above 0, at most 1"),
        ("top_k", params.top_k >= 0, "0 (all) or more"),
        ("min_p", 0 <= params.min_p <= 1, "0 to 1"),
        ("presence_penalty", -2 <= params.presence_penalty <= 2, "-2 to 2"),
        ("frequency_penalty", -2 <= params.frequency_penalty <= 2, "-2 to 2"),
        ("repetition_penalty", 0 < params.repetition_penalty <= 10, "above 0, at most 10"),
        ("max_tokens", params.max_tokens is None or params.max_tokens >= 0, "0 or more"),
        ("logprobs", params.logprobs is None or 0 <= params.logprobs <= MAX_LOGPROBS, f"0 to {MAX_LOGPROBS}"),
        (
            "prompt_logprobs",
            params.prompt_logprobs is None or 0 <= params.prompt_logprobs <= MAX_LOGPROBS,
            f"0 to {MAX_LOGPROBS}",
        ),
        ("seed", params.seed is None or -(2**63) <= params.seed < 2**64, "a 64-bit integer"),
        ("stop_ids", all(0 <= i < vocabulary for i in params.stop_ids), f"token ids from 0 to {vocabulary - 1}"),
    )
    for name, ok, allowed in checks:
        value = getattr(params, name)
        if not ok or (isinstance(value, float) and not math.isfinite(value)):
            raise RequestError(f"{name} must be {allowed}, not {value}.", param=name)


def _grids(request: Request, config: ModelConfig) -> list[tuple[int, int]]:
    images = request.prompt.images
    if not images:
        return []
    if config.vision is None:
        raise RequestError("This model takes no pictures.", code="no_vision")
    cell = config.vision.cell
    grids = []
    for image in images:
        width, height = image.size
        if width % cell or height % cell:
            raise RequestError(f"Pictures must be sized to multiples of {cell} pixels; use Engine.prepare_image.")
        grids.append((height // cell, width // cell))
    return grids


def _pictures(ids: tuple[int, ...], grids: list[tuple[int, int]], image_token: int) -> tuple[Picture, ...]:
    pictures, at = [], 0
    for index, (rows, columns) in enumerate(grids):
        start = ids.index(image_token, at)
        pictures.append(Picture(index, start, rows * columns))
        at = start + rows * columns
    return tuple(pictures)


def _check_span(span: HeadSpan, config: ModelConfig, length: int) -> None:
    full = set(config.text.full_layers)
    for layer, head in span.heads:
        if layer not in full or not 0 <= head < config.text.num_heads:
            raise RequestError(
                f"There is no readable head {head} in layer {layer}; only full-attention layers have any."
            )
    if not span.heads or not 0 <= span.start < span.end <= length or any(not 0 <= i < length for i in span.extra):
        raise RequestError("A head span needs heads and positions inside the prompt.")
