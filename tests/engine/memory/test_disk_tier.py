"""The disk tier: a bounded folder of kept states, filled in the background, that outlives the process."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.memory import disk_files
from engine.memory.disk_tier import DiskTier
from engine.memory.prefix_hash import prefix_chain, tail_hash
from engine.memory.stored import StoredState
from tests.engine.memory.test_disk_files import same, state
from tests.engine.memory.world import SIZE

PROMPT = list(range(11))
CHAIN = prefix_chain(PROMPT, SIZE)


def prefix(tokens: int, *, last: bool = False) -> StoredState:
    """A state of the prompt's first tokens; all of about the same size."""
    return replace(state(tokens, last=last, tokens=tokens), key=tail_hash(CHAIN, PROMPT, tokens, SIZE))


@contextmanager
def tier(folder: Path, limit: int = 1 << 20, *, identity: str = "weights", **options: int) -> Iterator[DiskTier]:
    found = DiskTier(folder, limit=limit, block=SIZE, identity=identity, **options)
    try:
        yield found
    finally:
        found.close()
        assert not any(thread.name == "disk tier" and thread.is_alive() for thread in threading.enumerate())


def put(disk: DiskTier, *states: StoredState) -> None:
    """Offer states and wait until they are written."""
    for what in states:
        assert disk.wants(what.key, what.nbytes)
        disk.offer(what)
        assert disk.wait_idle(10)


def fetch(disk: DiskTier, limit: int = 11, longer_than: int = 0) -> StoredState | None:
    return disk.fetch(PROMPT, CHAIN, limit=limit, longer_than=longer_than)


def test_the_longest_prefix_comes_back(tmp_path: Path) -> None:
    with tier(tmp_path) as disk:
        put(disk, prefix(3), prefix(8), replace(prefix(9), key=b"another prefix.."))
        for limit, longer_than, expected in (
            (11, 0, 8),
            (7, 0, 3),
            (2, 0, None),
            (11, 7, 8),
            (11, 8, None),
            (7, 3, None),
        ):
            found = fetch(disk, limit, longer_than)
            assert (found and found.tokens) == expected
            assert found is None or same(found, prefix(found.tokens))


def test_all_of_a_prompt_needs_its_last_column(tmp_path: Path) -> None:
    with tier(tmp_path) as disk:
        put(disk, prefix(11), prefix(8))
        found = fetch(disk)
        assert found is not None
        assert found.tokens == 8
    with tier(tmp_path / "other") as disk:
        put(disk, prefix(11, last=True))
        found = fetch(disk)
        assert found is not None
        assert same(found, prefix(11, last=True))


def test_it_outlives_the_process(tmp_path: Path) -> None:
    with tier(tmp_path) as disk:
        put(disk, prefix(8))
        used = disk.used_bytes
        sizes = [file.stat().st_size for file in disk.folder.glob("*.safetensors")]
        assert [used] == [size + 4096 for size in sizes]
        assert all(file.stat().st_size <= 4096 for file in disk.folder.glob("*.json"))
    with tier(tmp_path) as disk:
        assert disk.used_bytes == used
        found = fetch(disk)
        assert found is not None
        assert same(found, prefix(8))
        assert not disk.wants(prefix(8).key, 1)
    with tier(tmp_path, identity="other weights") as disk:
        assert disk.used_bytes == 0
        assert fetch(disk) is None


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    one = prefix(4)
    with tier(tmp_path) as disk:
        put(disk, one)
        size = disk.used_bytes
    with tier(tmp_path / "bounded", 3 * size + 200) as disk:
        put(disk, one, *(replace(one, key=bytes([n]) * 16) for n in range(2)))
        assert not disk.wants(bytes(16), one.nbytes), "it is there; asking counts as use"
        assert fetch(disk) is not None
        put(disk, replace(one, key=bytes([7]) * 16))
        keys = sorted(file.stem for file in disk.folder.glob("*.json"))
        assert keys == sorted([bytes(16).hex(), one.key.hex(), (bytes([7]) * 16).hex()])
        assert disk.used_bytes == 3 * size
        assert not disk.wants(bytes([9]) * 16, 3 * size + 201), "it would never fit"
    with tier(tmp_path / "bounded", size + 200) as disk:
        assert [file.stem for file in disk.folder.glob("*.json")] == [(bytes([7]) * 16).hex()]
        assert disk.used_bytes == size


def test_reading_counts_as_use_after_a_restart_too(tmp_path: Path) -> None:
    with tier(tmp_path) as disk:
        put(disk, prefix(4), prefix(8))
        size = disk.used_bytes // 2
        for age, tokens in enumerate((4, 8)):
            os.utime(disk_files.header_file(disk.folder, prefix(tokens).key), (age, age))
        assert fetch(disk, limit=7) is not None
    with tier(tmp_path, size + 200) as disk:
        found = fetch(disk)
        assert found is not None
        assert found.tokens == 4


def test_the_limit_holds_while_writing_and_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = prefix(4)
    with tier(tmp_path) as disk:
        put(disk, one)
        size = disk.used_bytes
    write = disk_files.write
    with tier(tmp_path / "bounded", size) as disk:

        def watched(folder: Path, what: StoredState, **options: Any) -> disk_files.Entry:
            assert disk.used_bytes + what.nbytes <= size
            return write(folder, what, **options)

        monkeypatch.setattr(disk_files, "write", watched)
        put(disk, one, replace(one, key=bytes(16)))
        assert [file.stem for file in disk.folder.glob("*.json")] == [bytes(16).hex()]
    monkeypatch.undo()
    with tier(tmp_path / "narrow", size - 1) as disk:
        put(disk, one)  # its tensors fit, its files do not
        assert (disk.used_bytes, list(disk.folder.iterdir())) == (0, [])


def test_a_damaged_file_is_a_miss_and_goes(tmp_path: Path) -> None:
    with tier(tmp_path) as disk:
        put(disk, prefix(4), prefix(8))
        file = disk_files.data_file(disk.folder, prefix(8).key)
        file.write_bytes(file.read_bytes()[:-1] + b"?")
        found = fetch(disk)
        assert found is not None
        assert found.tokens == 4, "the next longest"
        assert len(list(disk.folder.iterdir())) == 2
        disk_files.data_file(disk.folder, prefix(4).key).unlink()
        assert fetch(disk) is None
        assert list(disk.folder.iterdir()) == []
        assert disk.used_bytes == 0
        put(disk, prefix(8))


class Held:
    """Writing that waits until it is let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        write = disk_files.write

        def slow(*args: object, **options: object) -> object:
            assert self.go.wait(10)
            return write(*args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(disk_files, "write", slow)


def test_what_comes_too_fast_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's thread never waits for the disk, and memory for what waits is bounded."""
    held = Held(monkeypatch)
    first = prefix(4)
    with tier(tmp_path, queue_bytes=2 * first.nbytes) as disk:
        assert disk.wants(first.key, 10 * first.nbytes), "one is let in whatever its size"
        disk.offer(first)
        assert not disk.wants(first.key, 1), "it is on its way"
        second = replace(first, key=bytes(16))
        assert disk.wants(second.key, second.nbytes)
        disk.offer(second)
        assert not disk.wants(bytes([9]) * 16, 1)
        assert not disk.wait_idle(0)
        held.go.set()
        assert disk.wait_idle(10)
        assert disk.wants(bytes([9]) * 16, 1)
        assert len(list(disk.folder.glob("*.json"))) == 2


def test_closing_writes_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    with tier(tmp_path) as disk:
        disk.offer(prefix(4))
        disk.offer(prefix(8))
        held.go.set()
    assert not disk.wants(bytes(16), 1)
    disk.offer(prefix(3))
    assert len(list(disk.folder.glob("*.json"))) == 2


def test_closing_does_not_wait_for_a_stuck_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    disk = DiskTier(tmp_path, limit=1 << 20, block=SIZE, identity="weights")
    disk.offer(prefix(4))
    disk.close(0.01)
    held.go.set()
    disk.close()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("a fault")])
def test_a_failing_disk_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    put_file = disk_files._put

    def fail(folder: Path, file: Path, *rest: object) -> None:
        if file.suffix == ".json":
            raise error
        put_file(folder, file, *rest)  # type: ignore[arg-type]

    with tier(tmp_path) as disk:
        monkeypatch.setattr(disk_files, "_put", fail)
        put(disk, prefix(4))
        assert fetch(disk) is None
        assert list(disk.folder.iterdir()) == []
        assert str(error) in caplog.text
        monkeypatch.undo()
        put(disk, prefix(4))
        assert fetch(disk) is not None
