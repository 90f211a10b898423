"""The disk tier: kept states that memory had no room for, in files that outlive the process."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from pathlib import Path

from engine.memory import disk_files
from engine.memory.disk_files import DamagedError, Entry
from engine.memory.prefix_hash import Pictures, longest_match
from engine.memory.stored import StoredState

_QUEUE_BYTES = 512 << 20
"""States that wait to be written, in memory; one is always let in, whatever its size."""
_log = logging.getLogger(__name__)


class DiskTier:
    """Files of kept states up to ``limit`` bytes, least recently used first out.

    A thread of its own writes them; the engine's only hands copies over, and keeps what does not fit the queue to
    itself. Threads that submit requests read them.
    """

    def __init__(self, folder: Path, *, limit: int, block: int, identity: str, queue_bytes: int = _QUEUE_BYTES) -> None:
        """
        Args:
            folder: gets a folder inside that is this user's alone.
            limit: bytes that all files may have together.
            block: tokens of a block of the keys' chains.
            identity: everything the numbers depend on: the weights' content hash, compute type, device, format.

        Raises:
            ConfigError: the folder cannot be used.
        """
        self.folder = disk_files.private_folder(folder)
        self._limit = limit
        self._block = block
        self._identity = identity
        self._queue_bytes = queue_bytes
        self._changed = threading.Condition()
        found = disk_files.scan(self.folder, identity=identity, block=block)
        self._entries = OrderedDict((entry.key, entry) for entry in found)
        self._used = sum(entry.nbytes for entry in found)
        self._make_room(0)
        self._waiting: deque[StoredState] = deque()
        self._pending: dict[bytes, int] = {}
        """Bytes by key of what waits or is being written."""
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="disk tier", daemon=True)
        self._thread.start()

    @property
    def used_bytes(self) -> int:
        return self._used

    # --- writing -----------------------------------------------------------------------------------------------

    def wants(self, key: bytes, nbytes: int) -> bool:
        """Whether a state of about this size should be offered: it is not there yet, fits, and the queue is not
        behind."""
        with self._changed:
            if key in self._entries:
                self._entries.move_to_end(key)
                return False
            pending = sum(self._pending.values())
            room = not self._pending or pending + nbytes <= self._queue_bytes
            return not self._closed and key not in self._pending and nbytes <= self._limit and room

    def offer(self, state: StoredState) -> None:
        """Queue a state that is wanted. Never waits for the disk."""
        with self._changed:
            if not self._closed and state.key not in self._pending:
                self._waiting.append(state)
                self._pending[state.key] = state.nbytes
                self._changed.notify_all()

    def close(self, timeout: float = 10.0) -> None:
        """Take nothing more, and give the queue some time to empty. What is not written by then is lost, no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def wait_idle(self, timeout: float) -> bool:
        """Whether everything offered was written (or given up) in that time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending, timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                state = self._waiting.popleft()
            try:
                self._write(state)
            except OSError as error:
                _log.warning("a state could not be written to the disk tier: %s", error)
                disk_files.remove(self.folder, state.key)
            except Exception:
                _log.exception("the disk tier failed to write a state")
                disk_files.remove(self.folder, state.key)
            with self._changed:
                del self._pending[state.key]
                self._changed.notify_all()

    def _write(self, state: StoredState) -> None:
        self._make_room(state.nbytes)
        entry = disk_files.write(self.folder, state, identity=self._identity, block=self._block)
        with self._changed:
            self._entries[entry.key] = entry
            self._used += entry.nbytes
        self._make_room(0)

    def _make_room(self, nbytes: int) -> None:
        while True:
            with self._changed:
                if not self._entries or self._used + nbytes <= self._limit:
                    return
                first = next(iter(self._entries))
            self._discard(first)

    def _discard(self, key: bytes) -> None:
        with self._changed:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._used -= entry.nbytes
        # Not under the lock, on which the engine's thread may wait.
        disk_files.remove(self.folder, key)

    # --- reading -----------------------------------------------------------------------------------------------

    def fetch(
        self,
        ids: Sequence[int],
        chain: Sequence[bytes],
        pictures: Pictures = (),
        *,
        limit: int,
        longer_than: int = 0,
    ) -> StoredState | None:
        """Read the longest stored prefix of a prompt (see ``Keeper.find``) with more than ``longer_than`` tokens.

        Reads and checks a whole file: not for the engine's thread. A file that is not what was written is removed.
        """
        while True:
            with self._changed:
                longest = sorted(self._entries.values(), key=lambda entry: -entry.tokens)
            candidates = ((e.tokens, e.key, e.complete, e) for e in longest if e.tokens > longer_than)
            entry = longest_match(candidates, ids, chain, self._block, pictures, limit)
            if entry is None:
                return None
            state = self._read(entry)
            if state is not None:
                return state

    def _read(self, entry: Entry) -> StoredState | None:
        try:
            state = disk_files.read(self.folder, entry)
        except (OSError, DamagedError) as error:
            _log.warning("a state of the disk tier is dropped: %s", error)
            self._discard(entry.key)
            return None
        disk_files.touch(self.folder, entry.key)
        with self._changed:
            if entry.key in self._entries:
                self._entries.move_to_end(entry.key)
        return state
