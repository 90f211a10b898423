"""examples/log_watch.py follows a real log that grows, is rotated and is cut short; Ember judges its lines."""

from __future__ import annotations

import importlib.util
import json
import shlex
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from types import ModuleType

import httpx
import pytest

from engine import Engine
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "log_watch.py"
SSHD = (ROOT / "tests" / "data" / "logs" / "sshd.log").read_text().splitlines()
LOCKED, ROOT = sorted({line for line in SSHD if "not allowed because" in line})
ROUTINE = [line for line in SSHD if line.startswith("Connection from")]
QUESTION = "A user is not allowed"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("log_watch", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["log_watch"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def server(ember: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    settings = Settings(port=0, runtime_directory=tmp_path_factory.mktemp("run"))
    with ServerThread(ember, settings) as running:
        yield running


def text(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be renamed there")
def test_lines_that_answer_are_reported_and_acted_upon(server: ServerThread, tmp_path: Path) -> None:
    log, acted = tmp_path / "sshd.log", tmp_path / "acted"
    log.write_text(text(*ROUTINE[:3], LOCKED))
    recorder = tmp_path / "record.py"
    recorder.write_text("import sys\nopen(sys.argv[1], 'a').write(sys.argv[2] + chr(10))\n")
    command = [sys.executable, str(EXAMPLE), str(log), QUESTION, "--url", server.url, "--every", "0.1"]
    command += ["--run", shlex.join([sys.executable, str(recorder), str(acted)])]
    watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    guard = Timer(100, watching.kill)
    guard.start()
    with watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        try:
            assert watching.stderr.readline() == f"watching {log}\n"
            with log.open("a") as writer:
                writer.write(text(*ROUTINE[3:6], ROOT, ROUTINE[6]))
                writer.flush()
                assert watching.stdout.readline().partition(" ")[2] == f"{ROOT}\n"
                log.rename(tmp_path / "sshd.log.1")
                writer.write(text(LOCKED))  # the writer has not noticed yet
            assert watching.stdout.readline().partition(" ")[2] == f"{LOCKED}\n"
            log.write_text(text(*ROUTINE[7:10], ROOT))
            assert watching.stdout.readline().partition(" ")[2] == f"{ROOT}\n"
            log.write_text(text(LOCKED))  # shorter than before
            assert watching.stdout.readline().partition(" ")[2] == f"{LOCKED}\n"
            until = time.monotonic() + 20
            while len(acted.read_text().splitlines()) < 4 and time.monotonic() < until:
                time.sleep(0.05)  # a line is told before it is acted upon
            watching.send_signal(signal.SIGINT)
            assert watching.wait(10) == 0
        finally:
            watching.kill()
            guard.cancel()
    assert acted.read_text().splitlines() == [ROOT, LOCKED, ROOT, LOCKED]


def test_following_a_file(example: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with example.Follower(path) as follower:
        assert follower.lines() == []  # not there yet
        path.write_bytes(b"one\r\ntw")
        assert follower.lines() == ["one"]
        with path.open("ab") as writer:
            writer.write("o\nüber\n".encode() + b"\xff\nlast")
        assert follower.lines() == ["two", "über", "\ufffd"]
        path.rename(tmp_path / "a.log.1")
        assert follower.lines() == []  # its line may go on
        path.write_text("new\n")
        assert follower.lines() == ["last"]
        assert follower.lines() == ["new"]
    with example.Follower(path) as late, example.Follower(path, from_start=True) as early:
        assert (late.lines(), early.lines()) == ([], ["new"])


def test_what_could_not_be_asked_is_asked_again(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.log"
    path.write_text("first\nthe disk is full\n")
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        question = body["questions"]["watch"]
        asked.append(question["type"])
        assert body["class"] == "agent"
        if len(asked) < 3:
            return httpx.Response(503)
        if question["type"] == "noul":
            found = {"noul": 0.99 if "full" in body["state"] else 0.1}
        else:
            found = {"found": True, "ranking": [{"value": line} for line in reversed(body["state"].splitlines())]}
        return httpx.Response(200, json={"answers": {"watch": found}})

    def sleep(_: float) -> None:
        if "noul" in asked:
            raise KeyboardInterrupt

    monkeypatch.setattr(example.time, "sleep", sleep)
    arguments = Namespace(question="the disk is full?", least=0.5, run=None, every=0)
    with (
        httpx.Client(base_url="http://test", transport=httpx.MockTransport(answer)) as client,
        example.Follower(path, from_start=True) as follower,
        pytest.raises(KeyboardInterrupt),
    ):
        example.watch(follower, example.Server(client), arguments)
    assert asked == ["locate", "locate", "locate", "noul", "noul"]
    said = capsys.readouterr()
    assert said.out == "99% the disk is full\n"
    assert said.err == "The server cannot answer now (503).\n"  # once


def test_long_parts_are_asked_in_pieces(example: ModuleType) -> None:
    lines = ["x" * 90_000, "y" * 90_000, "z" * 300_000, "end"]
    assert list(example.pieces(lines)) == [lines[:2], lines[2:3], lines[3:]]
    assert list(example.pieces([])) == []


def test_a_command_that_is_not_there_ends_the_watch(example: ModuleType) -> None:
    with pytest.raises(example.WatchError, match="nowhere-at-all cannot be run"):
        example.act(["nowhere-at-all"], "line")
