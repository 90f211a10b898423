"""The questions that labels answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.answers.decide.labels import MOST
from engine.messages import RequestError

MOST_DIGITS = 9
PLACE_DIGITS = 3


class QuestionError(RequestError):
    """A question that cannot be asked as it stands. ``question`` is its id."""

    status = 422

    def __init__(self, question: str, message: str, *, code: str, param: str) -> None:
        super().__init__(message, code=code, param=param)
        self.question = question


@dataclass(frozen=True)
class Noul:
    """Whether something holds: yes or no, or two texts of one's own."""

    id: str
    instructions: str
    true: str | None = None
    false: str | None = None

    def __post_init__(self) -> None:
        _check_instructions(self.id, self.instructions)
        if (self.true is None) != (self.false is None):
            raise QuestionError(
                self.id, "Give texts for both true and false, or for neither.", code="bad_options", param="options"
            )


@dataclass(frozen=True)
class Choice:
    """One of 2 to 256 options. ``names`` are what the answer is given in, ``texts`` what the model reads."""

    id: str
    instructions: str
    names: tuple[str, ...]
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_instructions(self.id, self.instructions)
        _check_options(self.id, self.names, self.texts)


@dataclass(frozen=True)
class Score(Choice):
    """One of 2 to 256 levels in order, lowest first."""


@dataclass(frozen=True)
class Multi(Choice):
    """Which of the options hold, each judged alone."""


@dataclass(frozen=True)
class Number:
    """A whole number of ``digits`` digits or, as a ``fraction``, 0.… with so many decimals."""

    id: str
    instructions: str
    digits: int
    fraction: bool = False

    def __post_init__(self) -> None:
        _check_instructions(self.id, self.instructions)
        if not 1 <= self.digits <= MOST_DIGITS:
            raise QuestionError(
                self.id,
                f"digits must be 1 to {MOST_DIGITS}, not {self.digits}.",
                code="bad_digits",
                param="digits",
            )


@dataclass(frozen=True)
class Place:
    """Where something is on the state's picture: of its middle ``x`` and ``y``, or of its ``box`` the four edges, each
    three digits from 000 (left, top) to 999 (right, bottom), written one after the other in one chain."""

    id: str
    instructions: str
    box: bool = False

    def __post_init__(self) -> None:
        _check_instructions(self.id, self.instructions)

    @property
    def names(self) -> tuple[str, ...]:
        return ("x0", "y0", "x1", "y1") if self.box else ("x", "y")

    @property
    def digits(self) -> int:
        return PLACE_DIGITS * len(self.names)


Question = Noul | Choice | Number | Place


def _check_instructions(question: str, instructions: str) -> None:
    if not instructions.strip():
        raise QuestionError(
            question, "instructions must say in words what to decide.", code="empty_question", param="instructions"
        )


def _check_options(question: str, names: Sequence[str], texts: Sequence[str]) -> None:
    if not 2 <= len(names) == len(texts) <= MOST:
        raise QuestionError(
            question, f"A question has 2 to {MOST} options, not {len(names)}.", code="bad_options", param="options"
        )
    if len(set(names)) < len(names):
        raise QuestionError(question, "Two options have the same name.", code="bad_options", param="options")
    if not all(text.strip() for text in texts):
        raise QuestionError(question, "An option is empty.", code="bad_options", param="options")
