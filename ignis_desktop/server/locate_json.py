"""What was located as JSON, the same over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

from engine.answers.locate import LocateAnswer, Ranked


def locate_json(found: LocateAnswer, within: str = "") -> dict[str, Any]:
    """Keys may be added, none is ever renamed. ``within``: JSON pointer of the records' array."""
    answer: dict[str, Any] = {
        "type": "locate",
        "found": found.found,
        "kind": found.kind,
        "segment": found.segment,
        "line": found.line,
        "value": found.value,
        "confidence": found.confidence,
        "ranking": [_ranked(rank) for rank in found.ranking],
        "timing_ms": {stage: round(ms, 3) for stage, ms in found.timing_ms.items()},
    }
    if found.pointers:
        answer["pointers"] = [within + pointer for pointer in found.pointers]
    if found.count is not None:
        answer["count"] = found.count
    if found.note:
        answer["note"] = found.note
    return answer


def _ranked(rank: Ranked) -> dict[str, Any]:
    return {"segment": rank.segment, "line": rank.line, "value": rank.value, "confidence": rank.confidence}
