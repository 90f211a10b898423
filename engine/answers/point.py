"""Where on a screenshot something is: the picture is encoded once, each question costs only its own words."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.answers.asking import (
    Cancelled,
    OnProgress,
    find_readout,
    head_span,
    is_found,
    prompt_parts,
    question_text,
    reading,
    run,
)
from engine.answers.heads import Readout
from engine.messages import (
    ImageInput,
    PrefixGoneError,
    Prompt,
    ReadRequest,
    RequestClass,
    RequestError,
    RetainRequest,
    label_of,
)

if TYPE_CHECKING:
    from engine.engine import Engine


@dataclass(frozen=True)
class PointAnswer:
    found: bool
    pixels: tuple[float, float]
    """x, y in the picture as given."""
    normalized: tuple[float, float]
    confidence: float
    """Share of the attention on the chosen cell and its neighbours."""
    uncertainty: float
    """Standard deviation around the point, in the picture's pixels."""
    ms: float
    heat: np.ndarray
    """float32 [rows, columns], attention on each cell of the picture; sums to 1."""
    input_tokens: int
    cached_tokens: int


class Screen:
    """One encoded screenshot. Questions may be asked from any thread; :meth:`close` frees its state."""

    def __init__(self, engine: Engine, image: ImageInput, readout: Readout, screen_id: str) -> None:
        self.id = screen_id
        self.encode_ms = 0.0
        self.input_tokens = 0
        self.width, self.height = image.original_size
        self._engine = engine
        self._encoding = threading.Lock()
        self._closed = False
        self._image = image
        self._readout = readout
        parts, config = prompt_parts(readout, engine.tokenizer), engine.loaded.config
        assert config.vision is not None
        self._grid = image.size[1] // config.vision.cell, image.size[0] // config.vision.cell
        self._cell = config.vision.cell
        self._start = len(parts.before)
        self._end = self._start + self._grid[0] * self._grid[1]
        tokens = [config.image_token_id] * (self._end - self._start)
        self._prefix = Prompt((*parts.before, *tokens, *parts.between), (image,))
        self._after = parts.after

    @classmethod
    def open(
        cls,
        engine: Engine,
        image: ImageInput,
        *,
        request_class: RequestClass = "interactive",
        client: str = "",
        deadline: float | None = None,
        on_progress: OnProgress | None = None,
        cancelled: Cancelled | None = None,
    ) -> Screen:
        """Encode a screenshot (from ``Engine.prepare_image``) and keep it for questions.

        Raises:
            RequestError: the model has no head list for points.
        """
        from engine.engine import new_id

        screen = cls(engine, image, find_readout(engine, "point", "points on a screen"), new_id("screen"))
        screen._encode(request_class, client, deadline, on_progress, cancelled)
        return screen

    def point(
        self,
        question: str,
        *,
        request_class: RequestClass = "interactive",
        client: str = "",
        deadline: float | None = None,
        cancelled: Cancelled | None = None,
    ) -> PointAnswer:
        """Where ``question`` points to. A screen whose state was dropped to make room is encoded again first."""
        from engine.engine import new_id

        if self._closed:
            raise RequestError("The screen was closed; open it again.", code="screen_closed")
        begun = time.monotonic()
        query = question_text(question)
        ids = (*self._engine.tokenizer.encode(query), *self._after)

        def request() -> ReadRequest:
            return ReadRequest(
                id=new_id("point"),
                prompt=Prompt(ids),
                heads=head_span(self._readout, self._start, self._end),
                prefix=self.id,
                request_class=request_class,
                client=client,
                label=label_of(query),
                deadline=deadline,
            )

        try:
            scores, finished = run(self._engine, request(), cancelled=cancelled)
        except PrefixGoneError:
            with self._encoding:  # one thread encodes, others that came meanwhile find it done
                try:
                    scores, finished = run(self._engine, request(), cancelled=cancelled)
                except PrefixGoneError:
                    self._encode(request_class, client, deadline, None, cancelled)
                    scores, finished = run(self._engine, request(), cancelled=cancelled)
        assert scores is not None
        assert scores.heads is not None
        answer = reading(self._readout, scores.heads, finished.usage)
        heat = answer.keys.reshape(self._grid)
        place = place_of(heat, self._cell)
        confidence = place.share * (1 - answer.nothing)
        scale = self._image.scale
        x, y = place.x * scale[0], place.y * scale[1]
        return PointAnswer(
            found=is_found(self._readout, answer.nothing, confidence),
            pixels=(x, y),
            normalized=(x / self.width, y / self.height),
            confidence=confidence,
            uncertainty=place.spread * (scale[0] + scale[1]) / 2,
            ms=(time.monotonic() - begun) * 1e3,
            heat=heat.astype(np.float32),
            input_tokens=finished.usage.prompt_tokens,
            cached_tokens=finished.usage.cached_tokens,
        )

    def close(self) -> None:
        self._closed = True
        self._engine.release(self.id)

    def _encode(
        self,
        request_class: RequestClass,
        client: str,
        deadline: float | None,
        on_progress: OnProgress | None,
        cancelled: Cancelled | None,
    ) -> None:
        begun = time.monotonic()
        request = RetainRequest(
            id=self.id,
            prompt=self._prefix,
            layers=1 + self._readout.layers[-1],
            request_class=request_class,
            client=client,
            label=f"{self.width}×{self.height} screenshot",
            deadline=deadline,
        )
        try:
            _, finished = run(self._engine, request, on_progress, cancelled)
        except BaseException:
            self._engine.release(self.id)  # it may have been retained just before the asker gave up
            raise
        if self._closed:  # while it was being encoded again
            self._engine.release(self.id)
        self.input_tokens = finished.usage.prompt_tokens
        self.encode_ms = (time.monotonic() - begun) * 1e3


@dataclass(frozen=True)
class Place:
    """A point in the model's pixels with its share of the attention and its spread (standard deviation)."""

    x: float
    y: float
    share: float
    spread: float


def place_of(mass: np.ndarray, cell: int) -> Place:
    """The cell with most attention, refined to the expectation over it and its neighbours.

    Args:
        mass: float64 [rows, columns], not all 0.
        cell: pixels a side.
    """
    row, column = divmod(int(mass.argmax()), mass.shape[1])
    rows = np.arange(max(row - 1, 0), min(row + 2, mass.shape[0]))
    columns = np.arange(max(column - 1, 0), min(column + 2, mass.shape[1]))
    near = mass[np.ix_(rows, columns)]
    share = float(near.sum())
    weights = near / share
    centre_x, centre_y = (columns + 0.5) * cell, (rows + 0.5) * cell
    x, y = float(weights.sum(0) @ centre_x), float(weights.sum(1) @ centre_y)
    variance = float(weights.sum(0) @ (centre_x - x) ** 2 + weights.sum(1) @ (centre_y - y) ** 2)
    # Even all attention on one cell says no more than "somewhere in this cell": a uniform spread over it is added.
    return Place(x, y, share, float(np.sqrt(variance / 2 + cell**2 / 12)))
