"""How a snapshot is put into words, the same in every panel and in the status bar."""

from __future__ import annotations

from engine.messages import EngineSnapshot
from ignis_desktop.widgets.texts import tr


def is_ember(snapshot: EngineSnapshot) -> bool:
    return snapshot.model_id.startswith("ember")


def model_line(snapshot: EngineSnapshot) -> str:
    """ "Ember 0, CPU" once a model is loaded, else ""."""
    if snapshot.state not in ("ready", "draining") or not snapshot.model:
        return ""
    return f"{snapshot.model}, {device_name(snapshot)}"


def device_name(snapshot: EngineSnapshot) -> str:
    """The device without its details: "CPU" of "CPU, bfloat16, 2 threads"."""
    return snapshot.device.split(",")[0]


def loading_text(snapshot: EngineSnapshot) -> str:
    """What is going on while the model cannot answer, in one sentence."""
    if snapshot.state == "failed":
        return tr("state.failed_because", reason=snapshot.reason)
    if snapshot.state in ("draining", "closed"):
        return tr("state.closing")
    percent = f" {snapshot.progress:.0%}" if snapshot.progress is not None else ""
    return tr("state.loading_model", percent=percent)


def gibibytes(amount: int) -> str:
    return f"{amount / 2**30:.1f} GiB"


def status_parts(snapshot: EngineSnapshot, address: str) -> tuple[str, list[str]]:
    """(tone of the dot, parts of the status bar)."""
    busy = sum(lane.state != "idle" for lane in snapshot.lanes)
    tone = {"ready": "accent" if busy else "good", "failed": "bad"}.get(snapshot.state, "warn")
    parts = [tr(f"state.{snapshot.state}")]
    if snapshot.state == "failed":
        parts.append(snapshot.reason)
    elif snapshot.state == "ready":
        parts.append(tr("status.model_on", model=snapshot.model, device=device_name(snapshot)))
        parts.append(tr("status.lanes", busy=busy, count=len(snapshot.lanes)))
        waiting = snapshot.queued_interactive + snapshot.queued_agent
        if waiting:
            parts.append(tr("status.waiting", count=waiting))
        parts.append(tr("status.rate", rate=f"{snapshot.decode_tokens_per_second:.0f}" if busy else "0"))
    elif snapshot.progress is not None:
        parts.append(f"{snapshot.progress:.0%}")
    parts.append(address)
    if snapshot.resident_bytes:
        parts.append(gibibytes(snapshot.resident_bytes))
    return tone, parts
