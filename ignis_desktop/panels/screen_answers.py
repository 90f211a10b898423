"""Shows the answer of a ``ScreenSession`` on the picture and in the question bar, or what is waited for."""

from __future__ import annotations

import numpy as np
from PySide6.QtGui import QImage

from engine.messages import EngineSnapshot
from ignis_desktop.panels import screen_words as words
from ignis_desktop.panels.screen_session import Asked, ScreenSession
from ignis_desktop.widgets.picture_marks import Mark
from ignis_desktop.widgets.picture_view import PictureView
from ignis_desktop.widgets.question_bar import QuestionBar
from ignis_desktop.widgets.texts import tr

_BRIGHTEST = 215
"""Grey level of the cell that most attention was on, of 255: the picture still shows through."""


class ScreenAnswers:
    """Draws only what is another than before: sessions say that something changed, not what."""

    def __init__(self, view: PictureView, bar: QuestionBar) -> None:
        self._view, self._bar = view, bar
        self._drawn: tuple[object, ...] = ()
        self._told: tuple[object, ...] = ()

    def forget(self) -> None:
        """The view shows another picture."""
        self._drawn = ()

    def show(self, session: ScreenSession, snapshot: EngineSnapshot) -> None:
        self._show_mark(session.shown)
        self._show_bar(session, snapshot)

    def _show_mark(self, asked: Asked | None) -> None:
        drawn = (asked, asked and asked.answer, asked and asked.stale)
        if _same(drawn, self._drawn):
            return
        fresh = asked is not None and asked.answer is not None and _same(drawn[:1], self._drawn[:1])
        self._drawn = drawn
        answer = asked.answer if asked is not None and not asked.stale else None
        self._view.set_heat(_grey(answer.heat) if answer is not None else None)
        mark = None
        if answer is not None and answer.found:
            mark = Mark(*answer.pixels, answer.uncertainty, answer.box)
        self._view.set_mark(mark, arrives=fresh)

    def _show_bar(self, session: ScreenSession, snapshot: EngineSnapshot) -> None:
        asked, bar = session.shown, self._bar
        bar.set_hint(tr("screen.hint") if session.stage == "ready" else tr("screen.hint_early"))
        failed = session.stage == "waiting" and snapshot.state == "failed"
        told: tuple[object, ...] = (session.stage, session.fault, failed)
        if asked is not None:
            told = (*told, asked.number, asked.answer, asked.fault, asked.desktop)
        begins, self._told = not _same(told, self._told), told
        if failed:
            if begins:
                bar.show_fault(words.work(session, snapshot), mend=False)
        elif session.stage in ("opening", "waiting", "encoding"):
            text = words.work(session, snapshot)
            if begins:
                bar.show_work(text, stops=session.stage != "waiting")
            bar.work.tell(*session.progress, text)
        elif begins:
            self._show_outcome(session, asked)

    def _show_outcome(self, session: ScreenSession, asked: Asked | None) -> None:
        bar = self._bar
        if session.stage == "failed":
            bar.show_fault(session.fault or tr("screen.stopped"), mend=True)
        elif asked is None:
            bar.show_answer("", tr("screen.encoded", time=words.milliseconds(session.encode_ms)), copies=False)
        elif asked.fault:
            bar.show_fault(asked.fault, mend=True)
        elif asked.answer is None:
            bar.show_work(tr("screen.asking", question=asked.question))
        elif asked.answer.found:
            bar.show_answer(words.place(asked), words.detail(asked), tip=words.place_tip(asked, session.picture))
        else:
            bar.show_answer(tr("screen.not_found"), words.missing(asked), "warn", copies=False)


def _same(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Whether two states are one. Answers hold arrays, which know no plain equality: they are one object or two."""
    pairs = zip(first, second, strict=False)
    plain = (bool, int, str, tuple)
    return len(first) == len(second) and all(a is b or (isinstance(a, plain) and a == b) for a, b in pairs)


def _grey(heat: np.ndarray) -> QImage:
    """Attention per cell (float32 [rows, columns]) as grey levels: the square root, since little is also something."""
    share = np.sqrt(heat / max(float(heat.max()), 1e-12))
    cells = np.ascontiguousarray((share * _BRIGHTEST).astype(np.uint8))
    rows, columns = cells.shape
    return QImage(cells.data, columns, rows, columns, QImage.Format.Format_Grayscale8).copy()
