"""Asking many questions over one state: the state is read once, questions go in waves, nothing is sampled.

The first reading runs alone and leaves a snapshot where the questions part; the others start from it, as many at a time
as there are lanes. A number's digits are chosen one after the other, each put into the prompt before the next is read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from engine.answers.asking import Cancelled, run_all
from engine.answers.decide.answers import Answer, Decision, number, softmax
from engine.answers.decide.prompts import Prompts, Reading, State, shared
from engine.answers.decide.questions import Choice, Multi, Noul, Number, Place, Question, Score
from engine.messages import EngineError, ReadRequest, RequestClass, RequestError, label_of

if TYPE_CHECKING:
    from engine.engine import Engine

CLOSE = 0.1
"""When the two best options are within this probability they are asked again in the other order, and the two readings
averaged: models lean to what stands first."""


def decide(
    engine: Engine,
    state: State,
    questions: Sequence[Question],
    *,
    request_class: RequestClass = "interactive",
    client: str = "",
    deadline: float | None = None,
    cancelled: Cancelled | None = None,
) -> Decision:
    """Answer all questions about ``state``.

    Raises:
        RequestError: no question, two under one id, or a prompt that does not fit the context.
        CancelledError: ``cancelled`` said so.
    """
    if not questions or len({question.id for question in questions}) < len(questions):
        raise RequestError("Ask at least one question, each under an id of its own.", code="bad_questions")
    begun = time.monotonic()
    asker = _Asker(engine, state, request_class, client, deadline, cancelled)
    asker.answer(questions)
    asker.decision.seconds = time.monotonic() - begun
    return asker.decision


class _Asker:
    def __init__(
        self,
        engine: Engine,
        state: State,
        request_class: RequestClass,
        client: str,
        deadline: float | None,
        cancelled: Cancelled | None,
    ) -> None:
        self.decision = Decision()
        self._engine = engine
        self._prompts = Prompts(engine.loaded, state)
        self._class: RequestClass = request_class
        self._client = client
        self._deadline = deadline
        self._cancelled = cancelled

    def answer(self, questions: Sequence[Question]) -> None:
        first = [reading for question in questions for reading in self._prompts.readings(question)]
        marked = shared([reading.prompt for reading in first])
        first = [replace(reading, prompt=prompt) for reading, prompt in zip(first, marked, strict=True)]
        results = self._read([_continued(r) if isinstance(r.question, Number | Place) else r for r in first])
        close = [
            (reading, result)
            for reading, result in zip(first, results, strict=True)
            if isinstance(result, np.ndarray) and self._is_close(reading, result)
        ]
        again = [self._prompts.reversed(reading, _texts(reading.question)) for reading, _ in close]
        marks = {reading.question.id: reading.prompt.marks for reading in first}
        again = [replace(r, prompt=replace(r.prompt, marks=marks[r.question.id])) for r in again]
        swapped = dict(zip([r.question.id for r in again], zip(again, self._read(again), strict=True), strict=True))
        for question in questions:
            own = [(r, found) for r, found in zip(first, results, strict=True) if r.question.id == question.id]
            if question.id in swapped:
                own.append(swapped[question.id])
            fault = next((found for _, found in own if isinstance(found, EngineError)), None)
            if fault is not None:
                self.decision.answers[question.id] = fault
            elif isinstance(question, Number | Place):
                self.decision.answers[question.id] = self._number(question, own[0][0], own[0][1])
            else:
                self.decision.answers[question.id] = _combined(question, own)

    def _is_close(self, reading: Reading, logprobs: np.ndarray) -> bool:
        question = reading.question
        lettered = isinstance(question, Choice) and not isinstance(question, Multi)
        lettered = lettered or (isinstance(question, Noul) and question.true is not None)
        if not lettered:
            return False
        best = np.sort(softmax(logprobs)[0])[-2:]
        return bool(best[1] - best[0] < CLOSE)

    def _number(
        self, question: Number | Place, reading: Reading, logprobs: np.ndarray | EngineError
    ) -> Answer | EngineError:
        digits: list[np.ndarray] = []
        mass = 1.0
        while isinstance(logprobs, np.ndarray):
            shares, held = softmax(logprobs)
            digits.append(shares)
            mass = min(mass, held)
            if len(digits) == question.digits:
                self.decision.output_tokens += question.digits
                if isinstance(question, Place):
                    return Answer(np.stack(digits), mass)
                value, uncertainty = number(digits, fraction=question.fraction)
                return Answer(np.stack(digits), mass, value, uncertainty)
            chain = self._prompts.digit(question, [int(place.argmax()) for place in digits])
            chain = replace(chain, prompt=replace(chain.prompt, marks=reading.prompt.marks))
            (logprobs,) = self._read([_continued(chain)])
        return logprobs

    def _read(self, readings: Sequence[Reading]) -> list[np.ndarray | EngineError]:
        """Log probabilities of each reading's labels, or what went wrong with it."""
        requests = [self._request(reading) for reading in readings]
        found: list[np.ndarray | EngineError] = []
        for outcome in run_all(self._engine, requests, self._cancelled):
            if isinstance(outcome, EngineError):
                found.append(outcome)
                continue
            scores, end = outcome
            self.decision.input_tokens += end.usage.prompt_tokens
            self.decision.cached_tokens += end.usage.cached_tokens
            assert scores is not None
            assert scores.labels is not None
            fine = np.isfinite(scores.labels).any() and not np.isnan(scores.labels).any()
            found.append(scores.labels if fine else EngineError("The labels could not be read.", code="readout_failed"))
        return found

    def _request(self, reading: Reading) -> ReadRequest:
        from engine.engine import new_id

        return ReadRequest(
            new_id("decide"),
            reading.prompt,
            labels=reading.tokens,
            request_class=self._class,
            client=self._client,
            label=label_of(reading.question.instructions),
            deadline=self._deadline,
        )


def _continued(reading: Reading) -> Reading:
    """With a mark at its end, where the next digit starts from."""
    prompt = reading.prompt
    return replace(reading, prompt=replace(prompt, marks=(*prompt.marks, len(prompt.ids))))


def _texts(question: Question) -> tuple[str, ...]:
    if isinstance(question, Choice):
        return question.texts
    assert isinstance(question, Noul)
    assert question.true is not None
    assert question.false is not None
    return question.true, question.false


def _combined(question: Question, own: Sequence[tuple[Reading, np.ndarray | EngineError]]) -> Answer:
    """The readings of one question as one answer."""
    shares: list[np.ndarray] = []
    mass = 1.0
    for reading, logprobs in own:
        assert isinstance(logprobs, np.ndarray)
        labelled, held = softmax(logprobs)
        mass = min(mass, held)
        if isinstance(question, Multi):
            shares.append(labelled[:1])
        else:
            placed = np.empty_like(labelled)
            placed[list(reading.order)] = labelled
            shares.append(placed)
    if isinstance(question, Multi):
        return Answer(np.concatenate(shares), mass)
    probabilities = np.mean(shares, axis=0)
    if isinstance(question, Noul):
        return Answer(probabilities[:1], mass)
    value = float(probabilities @ np.arange(len(probabilities))) if isinstance(question, Score) else None
    return Answer(probabilities, mass, value)
