"""The typed questions of a decide request, checked before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from engine.answers.decide import Choice, Multi, Noul, Number, Question, Score
from engine.answers.decide.questions import QuestionError
from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.evidence import Evidence

Kind = Literal["auto", "log", "prose", "records"]
MAX_TOP = 5
DIGITS = 3
"""Digits of a number whose question does not say."""


@dataclass(frozen=True)
class LocateQuestion:
    """Which line, sentence or record of ``evidence`` answers."""

    id: str
    evidence: str | list[str]
    instructions: str
    kind: Kind
    top: int
    within: str = ""


@dataclass(frozen=True)
class PointQuestion:
    """Where on picture number ``image`` of the state something is; with ``box`` also how far it goes. ``chain``: by
    digits that are written one after the other, which any model does; else by attention heads."""

    id: str
    instructions: str
    image: int
    box: bool
    chain: bool = False


@dataclass(frozen=True)
class LabelQuestion:
    """One that labels answer, about what ``within`` names of the state."""

    asked: Question
    type: str
    within: str | None

    @property
    def id(self) -> str:
        return self.asked.id


Checked = LocateQuestion | PointQuestion | LabelQuestion


def fault(question: str, key: str, message: str, code: str = "invalid_value") -> ApiError:
    """A caller's fault in one question: the whole request is refused before any work."""
    return ApiError(
        422,
        f"Question {question!r}: {message}",
        code=code,
        param=f"questions.{question}.{key}",
        extra={"question": question},
    )


def check(evidence: Evidence, question: str, raw: Mapping[str, Any]) -> Checked:
    """Raises ``ApiError`` 422 naming the question and what is wrong with it."""
    kind = raw.get("type")
    make = _TYPES.get(kind) if isinstance(kind, str) else None
    if make is None:
        message = f"type {kind!r} is not answered by this version; it answers {', '.join(_TYPES)}."
        raise fault(question, "type", message, "unsupported_question_type")
    key = "instructions" if "instructions" in raw else "question"
    instructions = raw.get(key)
    if not isinstance(instructions, str) or not instructions.strip():
        raise fault(question, key, "instructions must say in words what to find or to decide.")
    try:
        return make(evidence, question, instructions.strip(), raw)
    except QuestionError as error:
        raise fault(question, error.param or "type", error.message, error.code) from None


def _locate(evidence: Evidence, question: str, instructions: str, raw: Mapping[str, Any]) -> LocateQuestion:
    kind = raw.get("kind", "auto")
    if kind not in get_args(Kind):
        raise fault(question, "kind", f"kind must be one of {', '.join(get_args(Kind))}, not {kind!r}.")
    top = _whole(question, raw, "top", 1, MAX_TOP, MAX_TOP)
    text = _read(evidence, question, raw)
    return LocateQuestion(question, text, instructions, kind, top, raw.get("within") or "")


def _point(evidence: Evidence, question: str, instructions: str, raw: Mapping[str, Any]) -> PointQuestion:
    method = raw.get("method", "head")
    if method not in ("head", "chain"):
        raise fault(question, "method", f"method must be head or chain, not {method!r}.")
    count = len(evidence.images)
    if count == 0:
        raise fault(question, "type", "the state has no picture to point on; send one as an image_url part.")
    image = _whole(question, raw, "image", 0, count - 1, count - 1)
    return PointQuestion(question, instructions, image, raw["type"] == "box", method == "chain")


def _noul(evidence: Evidence, question: str, instructions: str, raw: Mapping[str, Any]) -> LabelQuestion:
    texts = [raw.get("true"), raw.get("false")]
    if any(text is not None and not isinstance(text, str) for text in texts):
        raise fault(question, "true", "true and false are texts for the two answers.")
    return _labelled(evidence, Noul(question, instructions, *texts), raw)


def _options(kind: type[Choice]) -> Callable[[Evidence, str, str, Mapping[str, Any]], LabelQuestion]:
    def make(evidence: Evidence, question: str, instructions: str, raw: Mapping[str, Any]) -> LabelQuestion:
        key = "levels" if kind is Score and "levels" in raw else "options"
        options = raw.get(key)
        if isinstance(options, Mapping):
            names, texts = tuple(options), tuple(options.values())
        elif isinstance(options, list):
            names = texts = tuple(options)
        else:
            raise fault(question, key, f"{key} must be a list of texts, or an object of names with texts.")
        if not all(isinstance(text, str) for text in texts):
            raise fault(question, key, f"{key} must be texts.")
        return _labelled(evidence, kind(question, instructions, names, texts), raw)

    return make


def _number(evidence: Evidence, question: str, instructions: str, raw: Mapping[str, Any]) -> LabelQuestion:
    digits = raw.get("digits", DIGITS)
    if not isinstance(digits, int) or isinstance(digits, bool):
        raise fault(question, "digits", f"digits must be a whole number, not {digits!r}.")
    return _labelled(evidence, Number(question, instructions, digits, fraction=raw["type"] == "scalar"), raw)


def _labelled(evidence: Evidence, asked: Question, raw: Mapping[str, Any]) -> LabelQuestion:
    within = raw.get("within")
    if within is not None or not evidence.images:
        _read(evidence, asked.id, raw)
    else:
        try:
            _ = evidence.parts
        except ValueError as error:
            raise fault(asked.id, "state", str(error)) from None
    return LabelQuestion(asked, "noul" if raw["type"] == "boolean" else raw["type"], within)


def _read(evidence: Evidence, question: str, raw: Mapping[str, Any]) -> str | list[str]:
    within = raw.get("within")
    if within is not None and not isinstance(within, str):
        raise fault(question, "within", "within must be a JSON pointer, for instance /items.")
    try:
        return evidence.read(within)
    except ValueError as error:
        raise fault(question, "state" if within is None else "within", str(error)) from None


def _whole(question: str, raw: Mapping[str, Any], key: str, least: int, most: int, default: int) -> int:
    value = raw.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise fault(question, key, f"{key} must be a whole number from {least} to {most}, not {value!r}.")
    return value


_TYPES: dict[str, Callable[[Evidence, str, str, Mapping[str, Any]], Checked]] = {
    "noul": _noul,
    "boolean": _noul,
    "choice": _options(Choice),
    "score": _options(Score),
    "multi": _options(Multi),
    "number": _number,
    "scalar": _number,
    "locate": _locate,
    "point": _point,
    "box": _point,
}
