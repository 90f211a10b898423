"""Finding words in a whole log, block by block, in a thread of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ignis_desktop.jobs import Job
from ignis_desktop.log_file import LogFile, Rows
from ignis_desktop.widgets.text_query import TextQuery

MOST = 100_000
"""Rows that are kept; who finds more wants other words."""


@dataclass(frozen=True)
class Found:
    query: TextQuery
    rows: Rows
    more: bool
    """Whether the search ended early because there were ``MOST``."""


def find(log: LogFile, query: TextQuery, job: Job) -> Found:
    """Raises ``EngineError`` when the file can no longer be read, or when the job is cancelled."""
    parts: list[Rows] = [np.zeros(0, np.int64)]
    count = 0
    for block in log.blocks():
        rows = query.rows(block.data.decode("utf-8", "replace"), MOST - count + 1) + block.first
        parts.append(rows[rows < block.first + block.count])
        count += len(parts[-1])
        job.tell(block.done, log.size)
        if count > MOST:
            break
    return Found(query, np.concatenate(parts)[:MOST], count > MOST)
