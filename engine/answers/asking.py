"""Putting a question to a readout: the prompt's token ids with its key span, and the scores that come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.answers.readouts import Combine, Readout
from engine.messages import (
    EngineError,
    Failed,
    Finished,
    HeadSpan,
    Prefilled,
    Prompt,
    ReadRequest,
    RequestClass,
    RequestError,
    RetainRequest,
    Scores,
    Usage,
)
from engine.stream import Stream
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from engine.engine import Engine

OnProgress = Callable[[int, int], None]
"""Called with (prompt tokens read, prompt tokens in all)."""
Cancelled = Callable[[], bool]

_POLL = 0.05


class CancelledError(EngineError):
    """The asker gave up."""

    status = 499


@dataclass(frozen=True)
class Terms:
    """On whose behalf and until when reads are made."""

    request_class: RequestClass = "interactive"
    client: str = ""
    deadline: float | None = None
    cancelled: Cancelled | None = None

    def read(self, prompt: Prompt, heads: HeadSpan, label: str, prefix: str | None = None) -> ReadRequest:
        """A fresh request for a prompt's heads; ``prefix`` is the retained state that the prompt follows."""
        from engine.engine import new_id

        return ReadRequest(
            id=new_id("read"),
            prompt=prompt,
            heads=heads,
            prefix=prefix,
            request_class=self.request_class,
            client=self.client,
            label=label,
            deadline=self.deadline,
        )


@dataclass(frozen=True)
class PromptParts:
    """Token ids around a readout's two places: ``before`` SUBJECT ``between`` QUERY ``after``."""

    before: list[int]
    between: list[int]
    after: list[int]


def prompt_parts(readout: Readout, tokenizer: Tokenizer) -> PromptParts:
    """A readout's prompt pieces as tokens; a piece that is exactly an added token becomes that token.

    Raises:
        EngineError: the query does not come after the subject, or nothing comes after the query to read at.
    """
    groups: list[list[int]] = [[]]
    order = []
    for piece in readout.prompt:
        if piece in (f"{{{readout.over}}}", "{query}"):
            order.append(piece)
            groups.append([])
        else:
            groups[-1] += tokenizer.encode(piece, allow_special=piece in tokenizer.added_tokens)
    if order[-1] != "{query}" or not groups[2]:
        raise EngineError(f"The prompt of head list {readout.name!r} must end with the query and a token to read at.")
    return PromptParts(*groups)


@dataclass(frozen=True)
class Reading:
    """The combined scores as probabilities: ``nothing`` that nothing answers, else one of the subject's keys."""

    keys: np.ndarray
    """float64 [keys], sums to 1."""
    nothing: float
    """0 for weights that have no key for it."""
    usage: Usage


def head_span(readout: Readout, start: int, end: int, columns: int = 0) -> HeadSpan:
    """The keys a readout wants: the subject's tokens [start, end) and, where there is one, the nothing key.

    Of a list with an anchor only the anchor's scores are read whole, of its set the best cells of a picture with
    ``columns`` cells in a row.
    """
    extra = () if readout.nothing is None else (start - 1 if readout.nothing == "before" else end,)
    if readout.anchor is None:
        return HeadSpan(readout.heads, start, end, extra)
    return HeadSpan((readout.anchor,), start, end, extra, readout.heads, columns)


def find_readout(engine: Engine, name: str, what: str, combines: Sequence[Combine] = ("sum",)) -> Readout:
    """The loaded model's head list ``name``. Raises ``RequestError`` when it has none that can be used."""
    heads = engine.loaded.heads
    readout = heads.readouts.get(name) if heads is not None else None
    if readout is None or readout.combine not in combines:
        raise RequestError(
            f"{engine.info.name} has no head list for {what} (heads.json); it cannot answer such questions.",
            code="no_heads",
        )
    return readout


def reading(readout: Readout, scores: np.ndarray, usage: Usage) -> Reading:
    """Combine the heads' scores [heads, keys (+ 1)] into one distribution."""
    if not np.isfinite(scores).all():
        raise EngineError("An attention head could not be read; the question was not answered.", code="readout_failed")
    combined = scores.astype(np.float64).sum(0) * readout.scale
    keys = combined if readout.nothing is None else combined[:-1]
    weights = np.exp(keys - keys.max())
    total = weights.sum()
    nothing = 0.0
    if readout.nothing is not None:
        margin = combined[-1] - keys.max() - np.log(total)
        nothing = float(np.exp(-np.logaddexp(0.0, -margin)))
    return Reading(weights / total, nothing, usage)


def is_found(readout: Readout, nothing: float, confidence: float) -> bool:
    """Whether a reading counts as an answer: something answers more likely than nothing does, and the answer is at
    least as sure as the head list's threshold, where it has one. Weights without a nothing key never refuse."""
    threshold = readout.found_threshold
    return nothing < readout.refuse_above and (threshold is None or confidence >= threshold)


def question_text(question: str) -> str:
    """The question in one line. Raises ``RequestError`` when there is none."""
    text = " ".join(question.split())
    if not text:
        raise RequestError("The question is empty.", code="empty_question", param="question")
    return text


def run(
    engine: Engine,
    request: ReadRequest | RetainRequest,
    on_progress: OnProgress | None = None,
    cancelled: Cancelled | None = None,
) -> tuple[Scores | None, Finished]:
    """Submit a request and wait for its end. Raises what it failed with, or ``CancelledError``."""
    if cancelled is not None and cancelled():  # asked before: a small request is done by the time it is taken back
        raise CancelledError("Cancelled.", code="cancelled")
    stream = engine.submit(request)
    return _wait(stream, on_progress, cancelled)


def run_all(
    engine: Engine, requests: Sequence[ReadRequest], cancelled: Cancelled | None = None, *, first_alone: bool = True
) -> list[tuple[Scores | None, Finished] | EngineError]:
    """Submit requests in waves and wait for them: the first alone, so that it leaves what the others start from (unless
    that is there already), then as many at a time as there are lanes.

    Returns what came of each, in order; a fault ends its own request only.

    Raises:
        CancelledError: ``cancelled`` said so; what was under way is cancelled too.
    """
    outcomes: list[tuple[Scores | None, Finished] | EngineError] = []
    width = 1 if first_alone else engine.config.lanes
    while len(outcomes) < len(requests):
        wave: list[Stream | EngineError] = []
        try:
            wave = engine.submit_all(requests[len(outcomes) : len(outcomes) + width])
            for stream in wave:
                try:
                    outcomes.append(stream if isinstance(stream, EngineError) else _wait(stream, None, cancelled))
                except CancelledError:
                    raise
                except EngineError as error:
                    outcomes.append(error)
        finally:
            for stream in wave:
                if not isinstance(stream, EngineError):
                    stream.cancel()
        width = engine.config.lanes
    return outcomes


def _wait(
    stream: Stream, on_progress: OnProgress | None, cancelled: Cancelled | None
) -> tuple[Scores | None, Finished]:
    scores: Scores | None = None
    try:
        while True:
            if cancelled is not None and cancelled():
                raise CancelledError("Cancelled.", code="cancelled")
            event = stream.get(None if cancelled is None else _POLL)
            if isinstance(event, Prefilled) and on_progress is not None:
                on_progress(event.done, event.total)
            elif isinstance(event, Scores):
                scores = event
            elif isinstance(event, Failed):
                raise event.error
            elif isinstance(event, Finished):
                if event.reason == "cancelled":
                    raise CancelledError("Cancelled.", code="cancelled")
                return scores, event
    finally:
        stream.cancel()  # nothing of it goes on when the asker leaves early, Ctrl-C included
