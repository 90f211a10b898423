"""Files of kept states: whole or not there, whatever happens while and after they are written."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.config import ConfigError
from engine.memory import disk_files
from engine.memory.disk_files import DamagedError, Entry
from engine.memory.stored import StoredState

IDENTITY = "weights float32"
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows keeps rights in access lists")


class Killed(BaseException):
    """The process is gone: nothing that it would do on its way out is done."""


def state(key: int = 1, *, last: bool = True, tokens: int = 5) -> StoredState:
    generator = torch.Generator().manual_seed(key)
    return StoredState(
        key=bytes([key]) * 16,
        tokens=tokens,
        rope_delta=-3,
        request_class="agent",
        kv=torch.randn(2, 2, tokens, 2, 3, generator=generator).to(torch.bfloat16),
        conv=torch.randn(3, 2, 4, generator=generator).to(torch.bfloat16),
        recurrent=torch.randn(3, 1, 2, 2, generator=generator),
        last=torch.randn(1, 4, generator=generator).to(torch.bfloat16) if last else None,
    )


def same(one: StoredState, other: StoredState) -> bool:
    plain = (one.key, one.tokens, one.rope_delta, one.request_class)
    return (
        plain == (other.key, other.tokens, other.rope_delta, other.request_class)
        and one.tensors.keys() == other.tensors.keys()
        and all(torch.equal(tensor, other.tensors[name]) for name, tensor in one.tensors.items())
    )


def write(folder: Path, what: StoredState, step: Callable[[str], None] = lambda _: None) -> Entry:
    return disk_files.write(folder, what, identity=IDENTITY, block=4, step=step)


def scan(folder: Path) -> list[Entry]:
    return disk_files.scan(folder, identity=IDENTITY, block=4)


@pytest.mark.parametrize("last", [True, False])
def test_what_is_written_is_read(tmp_path: Path, last: bool) -> None:
    written = state(last=last)
    entry = write(tmp_path, written)
    assert scan(tmp_path) == [entry]
    assert same(disk_files.read(tmp_path, entry), written)
    assert (entry.complete, entry.tokens) == (last, 5)


def test_the_header_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each thing is on the disk before the next begins."""
    done: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("synced"), fsync(file)))
    write(tmp_path, state(), done.append)
    expected = []
    folder = ["synced"] if hasattr(os, "O_DIRECTORY") else []
    for name in ("01" * 16 + ".safetensors", "01" * 16 + ".json"):
        part = f"{name}.part"
        expected += [f"create {part}", f"write {part}", f"sync {part}", "synced", f"rename {part}"]
        expected += [f"sync folder after {name}", *folder]
    assert done == expected


@pytest.mark.parametrize("number", range(10))
def test_killed_between_any_two_steps(tmp_path: Path, number: int) -> None:
    """A state is there afterwards if its header was renamed into place, else it is not; another one always is."""
    before = write(tmp_path, state(2))
    done: list[str] = []

    def step(name: str) -> None:
        if len(done) == number:
            raise Killed
        done.append(name)

    with pytest.raises(Killed):
        write(tmp_path, state(1), step)
    found = scan(tmp_path)
    whole = any(name.startswith("rename") and ".json" in name for name in done)
    assert len(found) == 1 + whole
    assert before in found
    for entry in found:
        assert same(disk_files.read(tmp_path, entry), state(entry.key[0]))
    assert len(list(tmp_path.iterdir())) == 2 * len(found), "what is left over is cleared away"
    write(tmp_path, state(1))
    assert len(scan(tmp_path)) == 2


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
@pytest.mark.parametrize("suffix", ["safetensors", "json"])
def test_a_truncated_file(tmp_path: Path, suffix: str, kept: int) -> None:
    write(tmp_path, state())
    (file,) = tmp_path.glob(f"*.{suffix}")
    file.write_bytes(file.read_bytes()[:kept])
    assert scan(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_changed_byte_anywhere_in_the_data(tmp_path: Path) -> None:
    entry = write(tmp_path, state(tokens=1))
    file = disk_files.data_file(tmp_path, entry.key)
    good = file.read_bytes()
    for place in range(0, len(good), 7):
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert scan(tmp_path) == [entry], "its size is right; reading it tells"
        with pytest.raises(DamagedError, match="has changed since it was written"):
            disk_files.read(tmp_path, entry)
    file.write_bytes(good)
    assert same(disk_files.read(tmp_path, entry), state(tokens=1))


def test_a_changed_byte_anywhere_in_the_header(tmp_path: Path) -> None:
    """A wrong position or an exchanged digit would go unnoticed in the answer."""
    entry = write(tmp_path, state())
    header, data = disk_files.header_file(tmp_path, entry.key), disk_files.data_file(tmp_path, entry.key)
    good, content = header.read_bytes(), data.read_bytes()
    for place in range(0, len(good), 3):
        header.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        data.write_bytes(content)
        assert scan(tmp_path) in ([], [entry]), "blanks may change, nothing else"
    header.write_bytes(good)
    data.write_bytes(content)
    assert scan(tmp_path) == [entry]


def test_a_header_of_another_key(tmp_path: Path) -> None:
    """A file that was renamed by hand is not taken for what its name says."""
    write(tmp_path, state())
    for file in list(tmp_path.iterdir()):
        file.rename(tmp_path / file.name.replace("01", "02"))
    assert scan(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"1", b"{}", b'{"check": 1}', b"\xff\xfe"])
def test_a_header_that_is_none(tmp_path: Path, content: bytes) -> None:
    entry = write(tmp_path, state())
    disk_files.header_file(tmp_path, entry.key).write_bytes(content)
    assert scan(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"identity": "other weights"}, {"block": 8}])
def test_states_of_another_model_are_removed(tmp_path: Path, change: dict) -> None:
    disk_files.write(tmp_path, state(), **{"identity": IDENTITY, "block": 4, **change})
    assert scan(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_states_of_another_format_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_files, "FORMAT", disk_files.FORMAT + 1)
    entry = write(tmp_path, state())
    assert json.loads(disk_files.header_file(tmp_path, entry.key).read_bytes())["format"] == disk_files.FORMAT
    monkeypatch.undo()
    assert scan(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    names = [
        "notes.json",
        "model.safetensors",
        "0" * 31 + ".json",
        "0" * 32 + ".json.bak",
        "0" * 32,
        "g" * 32 + ".json",
    ]
    for name in names:
        (tmp_path / name).write_text("{}")
    (tmp_path / "folder").mkdir()
    assert scan(tmp_path) == []
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*names, "folder"])


def test_data_that_holds_no_state(tmp_path: Path) -> None:
    """The right checksum of the wrong thing."""
    from hashlib import blake2b

    entry = write(tmp_path, state())
    for content in (b"", b"x" * 100):
        disk_files.data_file(tmp_path, entry.key).write_bytes(content)
        wrong = replace(entry, checksum=blake2b(content, digest_size=32).hexdigest())
        with pytest.raises(DamagedError, match="holds no state"):
            disk_files.read(tmp_path, wrong)


def test_least_recently_used_first(tmp_path: Path) -> None:
    entries = {key: write(tmp_path, state(key)) for key in (1, 2, 3)}
    for age, key in enumerate((3, 1, 2)):
        os.utime(disk_files.header_file(tmp_path, entries[key].key), (age, age))
    assert scan(tmp_path) == [entries[3], entries[1], entries[2]]
    disk_files.touch(tmp_path, entries[3].key)
    assert scan(tmp_path) == [entries[1], entries[2], entries[3]]
    disk_files.remove(tmp_path, entries[1].key)
    disk_files.touch(tmp_path, entries[1].key)
    assert scan(tmp_path) == [entries[2], entries[3]]


@POSIX
def test_nobody_else_may_look(tmp_path: Path) -> None:
    folder = disk_files.private_folder(tmp_path / "cache" / "states")
    write(folder, state())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    folder.chmod(0o755)
    assert disk_files.private_folder(tmp_path / "cache" / "states") == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@POSIX
def test_a_folder_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "ignis-states").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="not this user's own folder"):
        disk_files.private_folder(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be used: .*Name a folder that can be written to"):
        disk_files.private_folder(tmp_path / "file")
