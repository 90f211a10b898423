"""What a row of the Lanes panel says, and where its parts lie."""

from __future__ import annotations

from dataclasses import dataclass

from ignis_desktop.widgets.lane_history import Span
from ignis_desktop.widgets.texts import tr

ROW_HEIGHT = 37
"""With the line under it."""
STRIP_HEIGHT = 18
_RATE, _CONTEXT, _DRAFTS = 56, 124, 56


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the parts of a row lie, as (left edge, width); the heading over the rows uses the same."""

    words: tuple[int, int]
    strip: tuple[int, int]
    rate: tuple[int, int]
    context: tuple[int, int]
    drafts: tuple[int, int]

    @classmethod
    def of(cls, width: int) -> Columns:
        words = min(340, max(180, round(width * 0.29)))
        rate = width - _RATE - _CONTEXT - _DRAFTS
        return cls(
            (0, words),
            (words, max(1, rate - words - 4)),
            (rate, _RATE),
            (rate + _RATE, _CONTEXT),
            (rate + _RATE + _CONTEXT, _DRAFTS),
        )


@dataclass(frozen=True, slots=True)
class LaneView:
    """What a row says; every text is ready to be shown."""

    state: str = "idle"
    request: str = ""
    tint: str = ""
    title: str = ""
    detail: str = ""
    rate: str = ""
    context: str = ""
    drafts: str = ""
    parkable: bool = False

    @property
    def live(self) -> bool:
        return self.state in ("prefill", "decode")


def span_text(span: Span, now: float) -> str:
    """What a lane did for how long, for a tool tip."""
    state, who = tr(f"lanes.state_{span.state}"), tr(f"class.{span.tint}")
    return tr("lanes.span", state=state, who=who, seconds=f"{min(span.end, now) - span.start:.1f}")
