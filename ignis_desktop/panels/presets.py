"""Named ways of sampling. Values are ``SamplingParams`` fields put over the checkpoint's own defaults."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "model": {},
    "precise": {"temperature": 0.3, "top_p": 0.9},
    "creative": {"temperature": 1.0, "top_p": 0.95, "min_p": 0.05},
    "greedy": {"temperature": 0.0},
}


def sampling_of(preset: str) -> dict[str, Any]:
    """Fields of a preset; a name from a newer version changes nothing."""
    return dict(PRESETS.get(preset, {}))
