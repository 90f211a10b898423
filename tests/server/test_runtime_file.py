"""How local commands find a running server."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ignis_desktop.server import runtime_file
from ignis_desktop.server.runtime_file import Instance

HERE = Instance.of_this_process("http://127.0.0.1:8000", "secret")


def put(directory: Path, instance: Instance) -> Path:
    path = directory / f"server-{instance.pid}.json"
    path.write_text(json.dumps({**instance.__dict__}))
    return path


def test_what_is_written_is_read_back_until_it_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    path = runtime_file.write(HERE, directory)
    assert runtime_file.read(directory) == HERE
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    runtime_file.remove(HERE, directory)
    assert list(directory.iterdir()) == []
    assert runtime_file.read(directory) is None


def test_a_dead_process_is_ignored_and_swept(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = put(tmp_path, replace(HERE, pid=dead.pid))
    assert runtime_file.read(tmp_path) is None
    runtime_file.write(HERE, tmp_path)
    assert not path.exists()
    assert runtime_file.read(tmp_path) == HERE


def test_a_process_number_given_to_another_process_is_not_the_server(tmp_path: Path) -> None:
    put(tmp_path, replace(HERE, started=HERE.started - 3600))
    assert runtime_file.read(tmp_path) is None


def test_the_instance_started_last_is_found(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as later:
        import psutil

        other = Instance("http://127.0.0.1:9000", later.pid, "t", psutil.Process(later.pid).create_time())
        runtime_file.write(HERE, tmp_path)
        put(tmp_path, other)
        assert runtime_file.read(tmp_path) == other
        later.communicate(b"\n")
    assert runtime_file.read(tmp_path) == HERE


def test_another_servers_entry_is_not_removed(tmp_path: Path) -> None:
    runtime_file.write(HERE, tmp_path)
    runtime_file.remove(replace(HERE, token="older"), tmp_path)
    assert runtime_file.read(tmp_path) == HERE


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '{"url": "u", "pid": "x", "token": "t", "started": 0}'])
def test_damaged_files_are_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "server-1.json").write_text(content)
    assert runtime_file.read(tmp_path) is None


def test_a_missing_directory_holds_nothing(tmp_path: Path) -> None:
    assert runtime_file.read(tmp_path / "nowhere") is None


def test_it_lies_among_the_users_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_DATA_DIR", str(tmp_path))
    runtime_file.write(HERE)
    assert runtime_file.read() == HERE
    assert (tmp_path / "run" / f"server-{HERE.pid}.json").exists()


def test_reading_it_loads_no_web_framework() -> None:
    code = "import sys, ignis_desktop.server.runtime_file; print('fastapi' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_home_that_cannot_be_written_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IGNIS_DATA_DIR", str(tmp_path / "file" / "data"))
    assert runtime_file.read() is None
