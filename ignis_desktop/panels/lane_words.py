"""What the Lanes panel says, made from the engine's snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.messages import (
    PAGE_FREE,
    PAGE_KEPT,
    PAGE_PARKED,
    PAGE_SHARED,
    EngineSnapshot,
    LaneSnapshot,
    WaitingSnapshot,
)
from ignis_desktop.panels.model_line import gibibytes
from ignis_desktop.widgets.figures import Figure
from ignis_desktop.widgets.lane_view import LaneView
from ignis_desktop.widgets.texts import tr
from ignis_desktop.widgets.waiting_table import WaitingRow

NO_DRAFTS = "—"
"""In the column of accepted drafts: this version makes none."""
_WINDOW = "window"
"""The ``client`` of what is asked in the window itself."""


def short_count(number: int) -> str:
    """ "9,999", "12.3K", "1.2M"."""
    if number < 10_000:
        return f"{number:,}"
    for size, unit in ((1_000, "K"), (1_000_000, "M"), (1_000_000_000, "G")):
        value = number / size
        if value < 999.5:
            return f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"
    return f"{number:.2g}"


def duration(seconds: float) -> str:
    """ "0.4 s", "12 s", "3 min"."""
    if seconds < 9.95:
        return tr("time.seconds", seconds=f"{max(0.0, seconds):.1f}")
    if seconds < 120:
        return tr("time.seconds", seconds=f"{seconds:.0f}")
    return tr("time.minutes", minutes=f"{seconds / 60:.0f}")


def client_name(client: str) -> str:
    return tr("lanes.this_window") if client == _WINDOW else client


def title_of(request: LaneSnapshot | WaitingSnapshot) -> str:
    """The prompt's first words, or what the request is when it has none."""
    return request.label or tr(f"lanes.kind_{request.kind or 'generate'}")


def who(request: LaneSnapshot | WaitingSnapshot) -> str:
    """ "Agent · 127.0.0.1 curl"."""
    parts = tr(f"class.{request.request_class or 'interactive'}"), client_name(request.client)
    return " · ".join(part for part in parts if part)


def lane_view(lane: LaneSnapshot, parked: LaneSnapshot | None = None) -> LaneView:
    """A lane's row. ``parked``: a request that waits to go on; it is shown while the lane it had is free."""
    shown = parked if lane.state == "idle" and parked is not None else lane
    if shown.state == "idle":
        return LaneView()
    tint = shown.request_class or "interactive"
    rate = ""
    if shown.state == "prefill" and shown.prompt_tokens:
        rate = f"{shown.prefilled / shown.prompt_tokens:.0%}"
    elif shown.state == "decode":
        rate = f"{shown.tokens_per_second:.{1 if shown.tokens_per_second < 99.95 else 0}f}"
    return LaneView(
        state=shown.state,
        request=shown.request_id,
        tint=tint,
        title=title_of(shown),
        detail=who(shown),
        rate=rate,
        context=f"{short_count(shown.cached)} / {short_count(shown.context)}",
        drafts=NO_DRAFTS if shown.kind == "generate" else "",
        parkable=shown is lane and tint == "agent" and shown.kind == "generate",
    )


def lane_tip(lane: LaneSnapshot) -> str:
    """Everything about the request on a lane, a line each."""
    if lane.state == "idle":
        return tr("lanes.tip_free")
    return "\n".join(
        (
            title_of(lane),
            who(lane),
            tr("lanes.tip_prompt", tokens=f"{lane.prompt_tokens:,}", cached=f"{lane.cached:,}"),
            tr("lanes.tip_context", context=f"{lane.context:,}", written=f"{lane.generated:,}"),
            tr("lanes.tip_pages", pages=f"{lane.pages:,}", seconds=duration(lane.seconds)),
        )
    )


def waiting_rows(now: EngineSnapshot, parked_since: Mapping[str, float]) -> list[WaitingRow]:
    """Parked requests, then those in the queue as far as the snapshot names them. ``parked_since``: by request."""
    rows = [
        WaitingRow(
            lane.request_id,
            lane.request_class or "agent",
            title_of(lane),
            short_count(lane.context),
            duration(now.time - parked_since.get(lane.request_id, now.time)),
            "pause",
            _tip(lane, tr("lanes.tip_parked", lane=lane.lane + 1)),
        )
        for lane in now.parked
    ]
    return rows + [
        WaitingRow(
            one.request_id,
            one.request_class,
            title_of(one),
            short_count(one.prompt_tokens),
            duration(one.seconds),
            "shield" if one.protected else "",
            _tip(one, tr("lanes.tip_protected") if one.protected else ""),
        )
        for one in now.waiting
    ]


def _tip(request: LaneSnapshot | WaitingSnapshot, note: str) -> str:
    return "\n".join(line for line in (title_of(request), who(request), note) if line)


def waiting_summary(now: EngineSnapshot) -> str:
    """ "1 interactive, 6 agents, 1 parked"; nothing when nobody waits."""
    counts = (
        ("lanes.count_interactive", now.queued_interactive),
        ("lanes.count_agent", now.queued_agent),
        ("lanes.count_parked", len(now.parked)),
    )
    parts = [tr(key, count=f"{count:,}") for key, count in counts if count]
    hidden = now.queued_interactive + now.queued_agent - len(now.waiting)
    if hidden > 0:
        parts.append(tr("lanes.count_hidden", count=f"{hidden:,}"))
    return ", ".join(parts)


def page_summary(now: EngineSnapshot) -> str:
    return tr("lanes.pages_used", used=f"{now.pages_total - now.pages_free:,}", total=f"{now.pages_total:,}")


def page_kinds(now: EngineSnapshot) -> list[tuple[str, str]]:
    """(kind, words with their count) for the legend of the page map."""
    pages = now.page_map
    held = {"interactive": 0, "agent": 0}
    for lane in now.lanes:
        held[lane.request_class or "interactive"] += pages.count(lane.lane + 1)
    counts = {
        **held,
        "shared": pages.count(PAGE_SHARED),
        "kept": pages.count(PAGE_KEPT),
        "parked": pages.count(PAGE_PARKED),
        "free": pages.count(PAGE_FREE),
    }
    return [(kind, f"{tr(f'pages.{kind}')} {count:,}") for kind, count in counts.items()]


def page_tip(page: int, code: int, lanes: Sequence[LaneSnapshot]) -> str:
    """Whose page it is."""
    if 0 < code <= len(lanes):
        lane = lanes[code - 1]
        owner = tr("pages.of_lane", lane=code, who=title_of(lane) if lane.state != "idle" else tr("lanes.free"))
    else:
        kinds = {PAGE_SHARED: "shared", PAGE_KEPT: "kept", PAGE_PARKED: "parked"}
        owner = tr(f"pages.tip_{kinds.get(code, 'free')}")
    return tr("pages.tip", page=f"{page:,}", owner=owner)


def figures(now: EngineSnapshot) -> list[Figure]:
    """The panel's totals."""
    reuse = now.reuse
    lookups = reuse.hits + reuse.misses
    tier = tr("lanes.off")
    if reuse.host_total:
        tier = f"{reuse.host_used / 2**30:.1f} / {gibibytes(reuse.host_total)}"
    texts: tuple[tuple[str, str], ...] = (
        ("decode", f"{now.decode_tokens_per_second:,.0f}"),
        ("prefill", f"{now.prefill_tokens_per_second:,.0f}"),
        ("reused", f"{reuse.hits / lookups:.0%}" if lookups else "—"),
        ("cached", short_count(reuse.cached_tokens)),
        ("kept", f"{reuse.kept:,}"),
        ("spilled", f"{reuse.spills:,} / {reuse.restores:,}"),
        ("parked", f"{reuse.parks:,} / {reuse.resumes:,}"),
    )
    found = [Figure(value, tr(f"figure.{name}"), _figure_tip(name, now)) for name, value in texts]
    fill = reuse.host_used / reuse.host_total if reuse.host_total else None
    return [*found, Figure(tier, tr("figure.tier"), _figure_tip("tier", now), fill)]


def _figure_tip(name: str, now: EngineSnapshot) -> str:
    reuse = now.reuse
    return tr(
        f"figure.tip_{name}",
        hits=f"{reuse.hits:,}",
        lookups=f"{reuse.hits + reuse.misses:,}",
        tokens=f"{reuse.cached_tokens:,}",
        evictions=f"{reuse.evictions:,}",
        pages=f"{reuse.kept_pages:,}",
        disk=gibibytes(reuse.disk_used),
    )
