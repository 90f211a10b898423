"""Where on a screenshot something is: the picture is encoded once, each question costs only its own words."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from engine.answers.asking import Cancelled, OnProgress, Terms, find_readout, is_found, question_text, run, run_all
from engine.answers.looks import Framed, Look
from engine.answers.readouts import Readout
from engine.answers.zoom import Crop, combine, crops, worth_it
from engine.messages import (
    EngineError,
    Finished,
    ImageInput,
    PrefixGoneError,
    Prompt,
    RequestClass,
    RequestError,
    RetainRequest,
    Scores,
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
    """Share of the attention on the chosen cell and its neighbours, or of the heads that agree; of both looks together
    where there was a second."""
    uncertainty: float
    """Standard deviation around the point, in the picture's pixels."""
    box: tuple[float, float, float, float]
    """Left, top, right and bottom of the thing in the picture's pixels, as far as attention tells: cells are coarse."""
    ms: float
    """From asking to the answer; of questions asked together, each one's share."""
    heat: np.ndarray
    """float32 [rows, columns], attention on each cell of the picture; sums to 1."""
    input_tokens: int
    cached_tokens: int
    looks: int = 1
    """Pictures looked at: 1, and one for each crop of a second look."""


@dataclass
class _Asked:
    """One question on its way."""

    query: str
    look: Look | None = None
    error: EngineError | None = None
    seconds: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0


class Screen:
    """One encoded screenshot. Questions may be asked from any thread; :meth:`close` frees its state."""

    def __init__(
        self, engine: Engine, image: ImageInput, readout: Readout, screen_id: str, source: Image.Image | None = None
    ) -> None:
        self.id = screen_id
        self.encode_ms = 0.0
        self.input_tokens = 0
        self.width, self.height = image.original_size
        self._engine = engine
        self._encoding = threading.Lock()
        self._closed = False
        self._readout = readout
        self._framed = Framed(engine, readout, image)
        self._cell = image.size[0] // self._framed.grid[1]
        self._source: Image.Image | None = None
        """What second looks see, in the picture's own pixels; None where there are none."""
        if readout.zoom is not None:
            shown = source if source is not None else Image.fromarray(image.rgb)
            self._source = shown if shown.size == image.original_size else shown.resize(image.original_size)

    @classmethod
    def open(
        cls,
        engine: Engine,
        image: ImageInput,
        *,
        source: Image.Image | None = None,
        request_class: RequestClass = "interactive",
        client: str = "",
        deadline: float | None = None,
        on_progress: OnProgress | None = None,
        cancelled: Cancelled | None = None,
    ) -> Screen:
        """Encode a screenshot (from ``Engine.prepare_image``) and keep it for questions.

        Args:
            source: the picture as given, RGB: second looks show its own pixels. Without it they enlarge what the model
                sees.

        Raises:
            RequestError: the model has no head list for points.
        """
        from engine.engine import new_id

        readout = find_readout(engine, "point", "points on a screen", ("sum", "anchor_set"))
        screen = cls(engine, image, readout, new_id("screen"), source)
        screen._encode(Terms(request_class, client, deadline, cancelled), on_progress)
        return screen

    @property
    def zooms(self) -> bool:
        """Whether questions may take a second look."""
        return self._source is not None

    def point(
        self,
        question: str,
        *,
        request_class: RequestClass = "interactive",
        client: str = "",
        deadline: float | None = None,
        cancelled: Cancelled | None = None,
    ) -> PointAnswer:
        """Where ``question`` points to. A screen whose state was dropped to make room is encoded again first.

        Raises:
            RequestError: the question is empty or too long, the screen was closed.
        """
        (answer,) = self.points(
            [question], request_class=request_class, client=client, deadline=deadline, cancelled=cancelled
        )
        if isinstance(answer, EngineError):
            raise answer
        return answer

    def points(
        self,
        questions: Sequence[str],
        *,
        request_class: RequestClass = "interactive",
        client: str = "",
        deadline: float | None = None,
        cancelled: Cancelled | None = None,
    ) -> list[PointAnswer | EngineError]:
        """Where each question points to, asked as many at a time as there are lanes. A fault is its question's alone.

        Raises:
            RequestError: a question is empty, the screen was closed.
            CancelledError: ``cancelled`` said so.
        """
        if self._closed:
            raise RequestError("The screen was closed; open it again.", code="screen_closed")
        begun = time.monotonic()
        asked = [_Asked(question_text(question)) for question in questions]
        terms = Terms(request_class, client, deadline, cancelled)
        self._first_looks(asked, terms)
        if self._source is not None:
            self._second_looks(asked, self._source, terms)
        each = (time.monotonic() - begun) * 1e3 / max(1, len(asked))
        return [self._answer(one, each) for one in asked]

    def close(self) -> None:
        self._closed = True
        self._engine.release(self.id)

    # --- looking ---------------------------------------------------------------------------------------------

    def _first_looks(self, asked: Sequence[_Asked], terms: Terms) -> None:
        left = self._ask(asked, terms)
        if not left:
            return
        with self._encoding:  # one thread encodes, others that came meanwhile find it done
            left = self._ask(left, terms)
            if left:
                self._encode(terms, None)
                left = self._ask(left, terms)
        for one in left:
            one.error = PrefixGoneError(self.id)

    def _ask(self, asked: Sequence[_Asked], terms: Terms) -> list[_Asked]:
        """Read the screen for each question. Returns those for which its state was gone."""
        requests = [
            terms.read(Prompt(self._framed.question(one.query)), self._framed.span, label_of(one.query), self.id)
            for one in asked
        ]
        gone = []
        outcomes = run_all(self._engine, requests, terms.cancelled, first_alone=False)
        for one, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, PrefixGoneError):
                gone.append(one)
            else:
                one.look = self._look(one, self._framed, outcome)
        return gone

    def _second_looks(self, asked: Sequence[_Asked], source: Image.Image, terms: Terms) -> None:
        zoom, limits = self._readout.zoom, self._engine.loaded.image_limits()
        assert zoom is not None
        most = limits.max_pixels // limits.cell**2
        planned: list[tuple[_Asked, Crop, Framed]] = []
        for one in asked:
            if one.look is None or not worth_it(zoom, one.look):
                continue
            for crop in crops(zoom, one.look, source.size, self._cell, most):
                picture = self._engine.prepare_image(crop.cut(source))
                planned.append((one, crop, Framed(self._engine, self._readout, picture)))
        requests = [terms.read(framed.whole(one.query), framed.span, label_of(one.query)) for one, _, framed in planned]
        found: dict[int, list[Look]] = {}
        for (one, crop, framed), outcome in zip(
            planned, run_all(self._engine, requests, terms.cancelled, first_alone=False), strict=True
        ):
            look = self._look(one, framed, outcome)
            if look is not None:
                rows, columns = framed.grid
                per_cell = (crop.x1 - crop.x0) / columns, (crop.y1 - crop.y0) / rows
                found.setdefault(id(one), []).append(look.shown_at(crop.x0, crop.y0, per_cell))
                one.seconds += 1
        for one in asked:
            if one.look is not None and one.error is None and id(one) in found:
                one.look = combine(one.look, found[id(one)], self._readout)

    def _look(self, one: _Asked, framed: Framed, outcome: tuple[Scores | None, Finished] | EngineError) -> Look | None:
        """The look that a request brought, in the picture's pixels where it is the whole picture's; a fault is the
        question's."""
        try:
            if isinstance(outcome, EngineError):
                raise outcome
            scores, finished = outcome
            assert scores is not None
            one.input_tokens += finished.usage.prompt_tokens
            one.cached_tokens += finished.usage.cached_tokens
            look = framed.look(scores)
        except EngineError as error:
            one.error = one.error or error
            return None
        if framed is not self._framed:
            return look
        rows, columns = framed.grid
        return look.shown_at(0, 0, (self.width / columns, self.height / rows))

    def _answer(self, one: _Asked, ms: float) -> PointAnswer | EngineError:
        look = one.look
        if one.error is not None or look is None:
            return one.error or EngineError("The question was not answered.", code="readout_failed")
        box = look.box.within(self.width, self.height)
        return PointAnswer(
            found=is_found(self._readout, look.nothing, look.confidence),
            pixels=(look.x, look.y),
            normalized=(look.x / self.width, look.y / self.height),
            confidence=look.confidence,
            uncertainty=look.spread,
            box=(box.x0, box.y0, box.x1, box.y1),
            ms=ms,
            heat=look.heat.astype(np.float32),
            input_tokens=one.input_tokens,
            cached_tokens=one.cached_tokens,
            looks=1 + one.seconds,
        )

    # --- encoding --------------------------------------------------------------------------------------------

    def _encode(self, terms: Terms, on_progress: OnProgress | None) -> None:
        begun = time.monotonic()
        request = RetainRequest(
            id=self.id,
            prompt=self._framed.prefix,
            layers=1 + self._readout.layers[-1],
            request_class=terms.request_class,
            client=terms.client,
            label=f"{self.width}×{self.height} screenshot",
            deadline=terms.deadline,
        )
        try:
            _, finished = run(self._engine, request, on_progress, terms.cancelled)
        except BaseException:
            self._engine.release(self.id)  # it may have been retained just before the asker gave up
            raise
        if self._closed:  # while it was being encoded again
            self._engine.release(self.id)
        self.input_tokens = finished.usage.prompt_tokens
        self.encode_ms = (time.monotonic() - begun) * 1e3
