"""Measured results, one file a kind and day; what they mean stands in ../RESULTS.md."""

from __future__ import annotations

import time
from pathlib import Path


def result_file(kind: str) -> Path:
    """Where today's result of a kind is kept."""
    return Path(__file__).parent / f"{kind}-{time.strftime('%Y-%m-%d')}.json"
