"""How questions and answers about a screen are put into words."""

from __future__ import annotations

import sys

from engine.messages import EngineSnapshot
from ignis_desktop.panels.model_line import loading_text
from ignis_desktop.panels.screen_session import Asked, ScreenSession
from ignis_desktop.screen_picture import Picture
from ignis_desktop.widgets.question_list import QuestionRow
from ignis_desktop.widgets.texts import tr

SHELL = "PowerShell" if sys.platform == "win32" else "curl"


def copies() -> dict[str, str]:
    """What an answer can be copied as."""
    return {
        "coordinates": tr("screen.copy_coordinates"),
        "Python": tr("screen.copy_as", name="Python"),
        SHELL: tr("screen.copy_as", name=SHELL),
    }


def milliseconds(amount: float) -> str:
    """ "41 ms", "2.4 s"."""
    return f"{amount:.0f} ms" if amount < 1000 else f"{amount / 1000:.1f} s"


def work(session: ScreenSession, snapshot: EngineSnapshot) -> str:
    if session.stage == "opening":
        return tr("screen.opening")
    if session.stage == "waiting":
        return loading_text(snapshot)
    done, total = session.progress
    if total <= 1:
        return tr("screen.starting")
    return tr("screen.encoding", done=f"{done:,}", total=f"{total:,}")


def place(asked: Asked) -> str:
    return f"{asked.desktop[0]}, {asked.desktop[1]}"


def place_tip(asked: Asked, picture: Picture | None) -> str:
    """Both kinds of coordinates, where they differ."""
    assert asked.answer is not None
    if picture is None or picture.target is None:
        return tr("screen.in_picture")
    x, y = asked.answer.pixels
    return tr("screen.on_desktop", x=int(x), y=int(y))


def detail(asked: Asked) -> str:
    answer = asked.answer
    assert answer is not None
    parts = [
        tr("screen.sure", share=f"{answer.confidence:.0%}"),
        tr("screen.within", pixels=f"{answer.uncertainty:.0f}"),
        milliseconds(answer.ms),
    ]
    return " · ".join(parts)


def missing(asked: Asked) -> str:
    answer = asked.answer
    assert answer is not None
    return f"“{asked.question}” · {milliseconds(answer.ms)}"


def row(asked: Asked) -> QuestionRow:
    if asked.fault:
        return QuestionRow(asked.number, asked.question, tr("screen.fault"), "", "bad", asked.fault)
    if asked.answer is None:
        return QuestionRow(asked.number, asked.question, tr("screen.waiting"), "")
    if asked.stale:
        return QuestionRow(asked.number, asked.question, tr("screen.stale"), "", "disabled", tr("screen.stale_tip"))
    took = milliseconds(asked.answer.ms)
    if not asked.answer.found:
        return QuestionRow(asked.number, asked.question, tr("screen.row_not_found"), took, "warn")
    return QuestionRow(asked.number, asked.question, place(asked), took)
