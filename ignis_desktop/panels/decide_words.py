"""Answers of a decide request as bars and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ignis_desktop.panels.decide_request import kind_of
from ignis_desktop.widgets.answer_bars import Answered, Bar
from ignis_desktop.widgets.figures import share_text
from ignis_desktop.widgets.texts import tr


def answered(questions: Mapping[str, Mapping[str, Any]], answers: Mapping[str, Any]) -> list[Answered]:
    """What came of each question, in their order."""
    return [_one(name, questions[name], answers[name]) for name in questions if name in answers]


def _one(name: str, question: Mapping[str, Any], answer: Mapping[str, Any]) -> Answered:
    asked = str(question.get("instructions") or question.get("question") or name)
    if "error" in answer:
        return Answered(name, asked, fault=str(answer["error"]["message"]))
    verdict, bars = _MAKERS[kind_of(question)](question, answer)
    return Answered(name, asked, verdict, bars=tuple(bars), mass=answer.get("label_mass"))


def _noul(question: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, list[Bar]]:
    yes = float(answer["noul"])
    words = str(question.get("true") or tr("decide.yes")), str(question.get("false") or tr("decide.no"))
    return words[yes < 0.5], [Bar(words[0], yes, yes >= 0.5), Bar(words[1], 1 - yes, yes < 0.5)]


def _choice(_: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, list[Bar]]:
    best = answer["choice"]
    return best, [Bar(name, share, name == best) for name, share in answer["probabilities"].items()]


def _score(_: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, list[Bar]]:
    best, shares = answer["level"], answer["probabilities"]
    verdict = tr("decide.expected", level=best, score=f"{answer['score']:.2f}", most=len(shares) - 1)
    return verdict, [Bar(name, share, name == best) for name, share in shares.items()]


def _multi(_: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, list[Bar]]:
    chosen = answer["chosen"]
    bars = [Bar(name, share, name in chosen) for name, share in answer["probabilities"].items()]
    return ", ".join(chosen) or tr("decide.none_chosen"), bars


def _number(_: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, list[Bar]]:
    value, spread = answer["value"], float(answer["uncertainty"])
    shown = f"{value:,}" if isinstance(value, int) else f"{value:g}"
    bars = []
    for place, digits in enumerate(answer["digits"], start=1):
        best = max(range(10), key=lambda digit: digits[digit])
        bars.append(Bar(tr("decide.digit", place=place, digit=best), digits[best], True))
    return tr("decide.plus_minus", value=shown, spread=f"{spread:.3g}"), bars


def _locate(_: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, list[Bar]]:
    found = bool(answer["found"])
    verdict = f"{tr('log.line', line=answer['line'])}: {answer['value'].strip()}" if found else tr("decide.not_there")
    bars = [
        Bar(f"{rank['line']}  {rank['value'].strip()}", rank["confidence"], found and place == 0)
        for place, rank in enumerate(answer["ranking"])
    ]
    return verdict, bars


def _point(_: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, list[Bar]]:
    sure = float(answer["confidence"])
    if not answer["found"]:
        return tr("decide.not_on_picture"), [Bar(tr("decide.confidence"), sure)]
    x, y = answer["pixels"]
    verdict = tr("decide.pixels", x=x, y=y, spread=f"{float(answer['uncertainty']):.0f}")
    return verdict, [Bar(tr("decide.confidence"), sure, True)]


def _box(_: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[str, list[Bar]]:
    sure = float(answer["confidence"])
    if not answer["found"]:
        return tr("decide.not_on_picture"), [Bar(tr("decide.confidence"), sure)]
    edges = {name: answer[name] for name in ("x0", "y0", "x1", "y1")}
    return tr("decide.box", **edges), [Bar(tr("decide.confidence"), sure, True)]


_MAKERS = {
    "noul": _noul,
    "choice": _choice,
    "score": _score,
    "multi": _multi,
    "number": _number,
    "locate": _locate,
    "point": _point,
    "box": _box,
}


def summary(response: Mapping[str, Any]) -> str:
    """ "3 answers in 0.42 s · 180 tokens read, 120 from cache"."""
    usage = response["usage"]
    parts = [tr("decide.took", time=f"{response['ms'] / 1000:.2f}")]
    parts.append(tr("decide.usage", read=f"{usage['input_tokens']:,}", cached=f"{usage['cached_tokens']:,}"))
    return " · ".join(parts)


def headline(questions: Mapping[str, Mapping[str, Any]], response: Mapping[str, Any]) -> str:
    """A request of the history in a few words: its first question and that one's answer."""
    first = answered(questions, response["answers"])[0]
    bar = next((bar for bar in first.bars if bar.picked), None)
    sure = f" ({share_text(bar.share)})" if bar is not None else ""
    return f"{first.question[:48]} → {(first.verdict or first.fault)[:32]}{sure}"
