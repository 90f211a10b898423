"""Screenshots kept encoded between questions: a bounded number, the least recently used closed first."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ignis_desktop.capture.coordinates import CoordinateMap
from ignis_desktop.server.errors import ApiError

if TYPE_CHECKING:
    from engine.answers.point import Screen


@dataclass
class StoredScreen:
    screen: Screen
    coordinates: CoordinateMap
    created: float = field(default_factory=time.time)
    questions: int = 0


class ScreenStore:
    """Thread-safe; ``add`` and ``remove`` free the engine's prefix of what they drop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._screens: OrderedDict[str, StoredScreen] = OrderedDict()

    def add(self, stored: StoredScreen) -> None:
        with self._lock:
            self._screens[stored.screen.id] = stored
            surplus = [self._screens.popitem(last=False)[1] for _ in range(len(self._screens) - self._limit)]
        for old in surplus:
            old.screen.close()

    def get(self, screen_id: str) -> StoredScreen:
        """Raises ``ApiError`` 404 when there is no such screen (any more)."""
        with self._lock:
            stored = self._screens.get(screen_id)
            if stored is None:
                raise _unknown(screen_id)
            self._screens.move_to_end(screen_id)
            return stored

    def remove(self, screen_id: str) -> None:
        with self._lock:
            stored = self._screens.pop(screen_id, None)
        if stored is None:
            raise _unknown(screen_id)
        stored.screen.close()

    def close(self) -> None:
        with self._lock:
            surplus = list(self._screens.values())
            self._screens.clear()
        for old in surplus:
            old.screen.close()


def _unknown(screen_id: str) -> ApiError:
    return ApiError(
        404,
        f"There is no screen {screen_id[:40]!r}: it was deleted, or newer screens took its place. Post it again.",
        code="screen_not_found",
        param="id",
    )
