"""Where a thread's time goes: named functions are timed, each without those that it calls."""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any


class Phases:
    """Times functions by name while installed (``with``); a microsecond a call. Threads other than ``thread`` are left
    alone; None times them all, each with a stack of its own."""

    def __init__(self, thread: int | None = None) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self.first: dict[str, float] = {}
        """When each was called first, on ``time.perf_counter``'s clock."""
        self._thread = thread
        self._local = threading.local()
        self._lock = threading.Lock()
        self._undo: list[Callable[[], None]] = []

    def watch(self, name: str, owner: Any, attribute: str) -> bool:
        """Time ``owner.attribute`` (an object's method, a class's, a module's function) under ``name`` until the block
        ends. False when there is no such thing: what is measured may have changed its shape."""
        function = getattr(owner, attribute, None)
        if not callable(function):
            return False
        own = vars(owner).get(attribute)

        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            if self._thread is not None and threading.get_ident() != self._thread:
                return function(*given, **named)
            return self._timed(name, function, given, named)

        setattr(owner, attribute, timed)

        def undo() -> None:
            if own is None:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, own)

        self._undo.append(undo)
        return True

    def __enter__(self) -> Phases:
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            self._undo.pop()()

    def _timed(self, name: str, function: Callable[..., Any], given: Any, named: Any) -> Any:
        inner: list[float] = getattr(self._local, "inner", [])
        self._local.inner = inner
        inner.append(0.0)
        began = time.perf_counter()
        try:
            return function(*given, **named)
        finally:
            taken = time.perf_counter() - began
            own = taken - inner.pop()
            if inner:
                inner[-1] += taken
            with self._lock:
                self.seconds[name] += own
                self.calls[name] += 1
                self.first.setdefault(name, began)
