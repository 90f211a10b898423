"""A log, its answers and the work on it in words."""

from __future__ import annotations

from ignis_desktop.log_file import Asked, LogFile
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.work_line import span_text

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_STAGES = ("fold", "read", "choose")


def size_text(size: int) -> str:
    """ "198 MB" as people say it: in binary steps, with one digit while small."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            amount = size / unit
            return f"{amount:,.0f} {name}" if amount >= 10 else f"{amount:,.1f} {name}"
    return f"{size} B"


def count_text(count: int) -> str:
    """ "61 M", "1.2 M", "340 K", "812": an estimate has no more digits than it deserves."""
    for unit, name in ((1_000_000, "M"), (1_000, "K")):
        if count >= unit:
            amount = count / unit
            return f"{amount:,.0f} {name}" if amount >= 10 else f"{amount:,.1f} {name}"
    return str(count)


def facts(log: LogFile) -> str:
    """ "2,025,693 lines · 191 MiB · about 61 M tokens · folded to 3 templates"."""
    parts = [tr("log.lines" if log.lines != 1 else "log.one_line", count=f"{log.lines:,}"), size_text(log.size)]
    if log.tokens is not None:
        parts.append(tr("log.tokens", count=count_text(log.tokens)))
    if log.is_folded:
        count = len(log.templates)
        parts.append(tr("log.folded" if count != 1 else "log.folded_one", count=f"{count:,}"))
    return " · ".join(parts)


def stages_text(asked: Asked) -> str:
    """ "fold 0.8 s · read 1.2 s · choose 0.1 s"."""
    named = [(name, asked.stages[name]) for name in _STAGES if name in asked.stages]
    return " · ".join(tr(f"log.stage_{name}", time=_milliseconds(ms)) for name, ms in named)


def note_text(asked: Asked) -> str:
    """How many lines answer, when that was asked, and what was not read."""
    counted = tr("log.counted", count=f"{asked.count:,}") if asked.count is not None else ""
    return " ".join(filter(None, (counted, asked.note)))


def _milliseconds(ms: float) -> str:
    if ms < 100:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 90_000 else span_text(ms / 1000)
