"""Windows whose state an engine keeps, so that the next question about a text reads only itself."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

if TYPE_CHECKING:
    from engine.engine import Engine

SHARE = 4
"""One in so many of an engine's kept states may be a window: conversations and screens need theirs."""


class KeptWindows:
    """By what was read, least recently used first. Thread-safe. The engine may drop any of them to make room."""

    def __init__(self, engine: Engine) -> None:
        self.most = max(1, engine.config.retained_limit // SHARE)
        self._ids: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: bytes) -> str | None:
        with self._lock:
            if key in self._ids:
                self._ids.move_to_end(key)
            return self._ids.get(key)

    def put(self, engine: Engine, key: bytes, prefix: str) -> None:
        """Remembers a retained prefix and releases those that it takes the place of."""
        with self._lock:
            gone = [self._ids.pop(key)] if key in self._ids else []
            self._ids[key] = prefix
            while len(self._ids) > self.most:
                gone.append(self._ids.popitem(last=False)[1])
        for old in gone:
            engine.release(old)

    def forget(self, key: bytes, prefix: str) -> None:
        """The engine dropped it."""
        with self._lock:
            if self._ids.get(key) == prefix:
                del self._ids[key]


_KEPT: WeakKeyDictionary[Engine, KeptWindows] = WeakKeyDictionary()
_GUARD = threading.Lock()


def kept_windows(engine: Engine) -> KeptWindows:
    with _GUARD:
        kept = _KEPT.get(engine)
        if kept is None:
            kept = _KEPT[engine] = KeptWindows(engine)
        return kept


def key_of(ids: Sequence[int], layers: int) -> bytes:
    return blake2b(np.asarray([layers, *ids], np.int64).tobytes(), digest_size=16).digest()
