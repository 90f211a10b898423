"""Checking a request at the door: whatever can never work is refused at once, with the reason.

Types are checked too: the loop trusts what it gets, and a fault in a round would end its neighbours' requests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from engine.config import EngineConfig, ModelConfig
from engine.loader import Loaded
from engine.memory.prefix_hash import prefix_chain
from engine.messages import (
    GenerateRequest,
    Guidance,
    HeadSpan,
    ImageInput,
    ReadRequest,
    Request,
    RequestClass,
    RequestError,
    RetainRequest,
    SamplingParams,
)
from engine.model.rope import prompt_positions
from engine.sample.guide import Guide, ThinkingBudget
from engine.schedule.job import Job, Picture
from engine.stream import Stream
from engine.text.thinking import CLOSING

MAX_LOGPROBS = 20
MAX_BIASES = 1024
ANSWER_SHARE = 0.25
"""Of the tokens that may be generated: what a thinking budget leaves to the answer at least."""


def check_request(request: Request, loaded: Loaded, engine: EngineConfig, cancel: Callable[[str], object]) -> Job:
    """A job that the scheduler can run, with a stream of its own, or ``RequestError``.

    ``cancel`` is what the stream's ``cancel`` calls.
    """
    config, context = loaded.config, loaded.info.context_length
    _check_envelope(request)
    ids = request.prompt.ids
    _check_ids("prompt", ids, config.text.vocab_size)
    if not ids:
        raise RequestError("The prompt is empty; send at least one token.", param="prompt")
    room = context - len(ids)
    if isinstance(request, GenerateRequest):
        request = replace(request, sampling=check_sampling(request.sampling, config.text.vocab_size))
        room -= request.sampling.max_tokens != 0
    if room < 0:
        raise RequestError(
            f"The prompt has {len(ids):,} tokens; the context holds {context:,} together with the answer. Shorten it.",
            code="context_length_exceeded",
            param="messages",
        )
    grids = _grids(request.prompt.images, config)
    positions, delta = prompt_positions(ids, grids, config.image_token_id)
    cap, ends, guide = 0, frozenset[int](), None
    if isinstance(request, GenerateRequest):
        sampling = request.sampling
        wanted = engine.generation_cap if sampling.max_tokens is None else sampling.max_tokens
        cap = min(wanted, context - len(ids))
        ends = frozenset(sampling.stop_ids) | (frozenset() if sampling.ignore_eos else loaded.end_ids)
        if request.guidance is not None:
            guide = _guide(request.guidance, loaded, cap)
            if request.guidance.grammar is not None:
                ends |= loaded.end_ids  # nothing else may follow where a grammar ends
    elif isinstance(request, ReadRequest):
        _check_read(request, config, len(ids) if request.prefix is None else context)
    elif request.layers is not None:
        _check_number("layers", request.layers, 1, config.text.num_layers, integral=True)
    job = Job(
        request,
        Stream(request.id, cancel),
        positions,
        delta,
        _pictures(ids, grids, config.image_token_id),
        cap,
        ends,
        guide,
        marks=_marks(request, engine.page_size),
    )
    if not _reusable(request):
        return job
    return replace(job, chain=prefix_chain(ids, engine.page_size, job.picture_keys))


def _guide(guidance: Guidance, loaded: Loaded, cap: int) -> Guide:
    """``cap``: most tokens that may be generated."""
    matcher = loaded.grammars.matcher(guidance.grammar) if guidance.grammar is not None else None
    budget = None
    if guidance.thinking_budget is not None:
        _check_number("thinking_budget", guidance.thinking_budget, 0, 2**31, integral=True)
        closing = loaded.tokenizer.encode(CLOSING, allow_special=True)
        most = cap - len(closing) - max(1, int(cap * ANSWER_SHARE))
        budget = ThinkingBudget(max(0, min(guidance.thinking_budget, most)), closing, loaded.tokenizer.token_bytes)
    return Guide(loaded.config.text.vocab_size, matcher, budget)


def _reusable(request: Request) -> bool:
    """Whether a part of the prompt that was read for somebody else may stand in for reading it."""
    if isinstance(request, GenerateRequest):
        return request.sampling.prompt_logprobs is None  # scoring a token takes reading it
    return isinstance(request, RetainRequest) or request.prefix is None


def _reads_all(request: ReadRequest) -> bool:
    """Whether a read runs all layers from the prompt's start: else its state is of no use to other prompts."""
    return request.prefix is None and bool(request.labels)


def _marks(request: Request, page_size: int) -> tuple[int, ...]:
    """Where chunks end and state is kept. Reading less than a page again is cheaper than a chunk's end."""
    marks, length = request.prompt.marks, len(request.prompt)
    whole = all(isinstance(mark, int) and not isinstance(mark, bool) for mark in marks)
    if not whole or list(marks) != sorted(set(marks)) or (marks and not 0 < marks[0] <= marks[-1] <= length):
        raise RequestError(f"Marks are ascending positions from 1 to the prompt's {length}.", param="marks")
    if isinstance(request, RetainRequest) or (isinstance(request, ReadRequest) and not _reads_all(request)):
        return ()
    return tuple(mark for mark in marks if mark >= page_size)


def check_sampling(params: SamplingParams, vocabulary: int) -> SamplingParams:
    """The parameters in Python's own numbers. Raises ``RequestError`` naming the one that is out of range."""
    _check_number("temperature", params.temperature, 0, 10)
    _check_number("top_p", params.top_p, 0, 1, above=True)
    _check_number("min_p", params.min_p, 0, 1)
    _check_number("presence_penalty", params.presence_penalty, -2, 2)
    _check_number("frequency_penalty", params.frequency_penalty, -2, 2)
    _check_number("repetition_penalty", params.repetition_penalty, 0, 10, above=True)
    _check_number("top_k", params.top_k, 0, 2**31, integral=True)
    for name, least, most in (
        ("max_tokens", 0, 2**31),
        ("logprobs", 0, MAX_LOGPROBS),
        ("prompt_logprobs", 0, MAX_LOGPROBS),
        ("seed", -(2**63), 2**64 - 1),
    ):
        value = getattr(params, name)
        if value is not None:
            _check_number(name, value, least, most, integral=True)
    stop: object = params.stop
    if not isinstance(stop, tuple | list) or not all(isinstance(text, str) for text in stop):
        raise RequestError(f"stop must be a list of texts, not {params.stop!r}.", param="stop")
    _check_ids("stop_ids", params.stop_ids, vocabulary)
    _check_biases(params.logit_bias, vocabulary)
    numbers = {name: value.item() for name, value in vars(params).items() if isinstance(value, np.generic)}
    return replace(params, **numbers) if numbers else params


def _check_envelope(request: object) -> None:
    """What every kind of request has around its prompt."""
    if not isinstance(request, GenerateRequest | ReadRequest | RetainRequest):
        raise RequestError(f"A request is generate, read or retain, not {type(request).__name__}.")
    if not isinstance(request.id, str) or not request.id:
        raise RequestError(f"The id must be a text, not {request.id!r}.", param="id")
    if request.request_class not in get_args(RequestClass):
        raise RequestError(f"The class must be interactive or agent, not {request.request_class!r}.", param="class")
    if request.deadline is not None:
        _check_number("deadline", request.deadline, -math.inf, math.inf)


def _check_number(
    name: str, value: Any, least: float, most: float, *, above: bool = False, integral: bool = False
) -> None:
    """``value`` is a number from ``least`` (or ``above`` it) to ``most``; numpy's numbers are numbers too."""
    kinds = int | np.integer if integral else int | float | np.integer | np.floating
    number = isinstance(value, kinds) and not isinstance(value, bool)
    if number and (least < value if above else least <= value) and value <= most:
        return
    start = f"above {least}" if above else f"{least}"
    raise RequestError(
        f"{name} must be a {'whole ' if integral else ''}number from {start} to {most}, not {value!r}.", param=name
    )


def _check_ids(name: str, ids: Collection[int], vocabulary: int) -> None:
    whole = all(issubclass(kind, int | np.integer) and kind is not bool for kind in set(map(type, ids)))
    if not whole or (ids and not 0 <= min(ids) <= max(ids) < vocabulary):
        raise RequestError(f"Token ids must be whole numbers from 0 to {vocabulary - 1}.", param=name)


def _check_biases(biases: tuple[tuple[int, float], ...], vocabulary: int) -> None:
    ids = [token for token, _ in biases]
    _check_ids("logit_bias", ids, vocabulary)
    if len(biases) > MAX_BIASES or len(set(ids)) < len(ids):
        raise RequestError(f"logit_bias names at most {MAX_BIASES} tokens, each once.", param="logit_bias")
    for _, bias in biases:
        _check_number("logit_bias", bias, -100, 100)


def _check_read(request: ReadRequest, config: ModelConfig, length: int) -> None:
    if request.heads is not None:
        _check_span(request.heads, config, length)
    elif not request.labels:
        raise RequestError("A read names heads, labels or both.")
    _check_ids("labels", request.labels, config.text.vocab_size)


def _check_span(span: HeadSpan, config: ModelConfig, length: int) -> None:
    full = set(config.text.full_layers)
    for layer, head in (*span.heads, *span.peaks):
        if layer not in full or not 0 <= head < config.text.num_heads:
            raise RequestError(
                f"There is no readable head {head} in layer {layer}; only full-attention layers have any."
            )
    inside = 0 <= span.start < span.end <= length and all(0 <= i < length for i in span.extra)
    if not inside or not (span.heads or span.peaks):
        raise RequestError("A head span needs heads and positions inside the prompt.")
    if span.peaks and (span.columns < 1 or (span.end - span.start) % span.columns):
        raise RequestError("Peaks need the number of columns of the picture that the span's keys are.")


def _grids(images: Iterable[ImageInput], config: ModelConfig) -> list[tuple[int, int]]:
    """(rows, columns) in image tokens of each picture."""
    grids = []
    for image in images:
        if config.vision is None:
            raise RequestError("This model takes no pictures.", code="no_vision")
        cell = config.vision.cell
        width, height = image.size
        if width % cell or height % cell or not width or not height:
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
