"""Installing for real, as separate processes, a project that needs no index."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.installer.conftest import StubProject

pytestmark = pytest.mark.timeout(180)


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_first_start_installs_and_second_only_starts(stub: StubProject, tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()  # a folder of the program's name where the command is typed must not be imported
    first = stub.run("run.py", "locate", "app.log", "which line?", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines() == ["arguments: locate app.log which line?", f"folder: {tmp_path}"]
    assert "Installed in" in first.stderr
    assert stub.builds == 1
    second = stub.run("run.py", "chat", "hi")
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout.startswith("arguments: chat hi")
    assert stub.builds == 1


def test_exit_code_is_passed_on(installed: StubProject) -> None:
    installed.variables["STUB_EXIT"] = "3"
    assert installed.run("run.py").returncode == 3
    del installed.variables["STUB_EXIT"]


def test_second_start_costs_little(installed: StubProject) -> None:
    """Deciding that nothing is to be done takes less than 0.2 s more than starting the program directly."""
    python = installed.folder / ".venv" / "bin" / "python"
    script = installed.folder / "installer" / "run.py"

    def processor_seconds(command: list[str | Path]) -> float:
        """The least of several runs; other work on the machine does not lengthen it."""
        used = []
        for _ in range(5):
            before = os.times()
            subprocess.run(command, cwd=installed.folder, env=installed.variables, check=True, capture_output=True)
            after = os.times()
            used.append(after.children_user + after.children_system - before.children_user - before.children_system)
        return min(used)

    assert processor_seconds([python, script]) - processor_seconds([python, "-P", "-m", "ignis_desktop"]) < 0.2


def test_changed_requirements_are_installed_and_extras_stay(installed: StubProject) -> None:
    assert installed.run("test.py", "--install-only").returncode == 0
    with open(installed.folder / "pyproject.toml", "a", encoding="utf-8") as file:
        file.write("# changed\n")
    keepsake = installed.folder / ".venv" / "keepsake"
    keepsake.touch()
    builds = installed.builds
    done = installed.run("run.py", "--install-only")
    assert done.returncode == 0
    assert "up to date" in done.stderr
    assert installed.builds == builds + 1
    assert keepsake.exists(), "an update must not rebuild the environment"
    stamp = json.loads((installed.folder / ".venv" / "ignis-stamp.json").read_text())
    assert stamp["extras"] == ["test"]
    assert installed.run("test.py", "--install-only").stderr == ""


def test_environment_of_somebody_else_is_used_not_removed(installed: StubProject) -> None:
    (installed.folder / ".venv" / "ignis-stamp.json").unlink()  # now it looks like one that a developer made
    theirs = installed.folder / ".venv" / "theirs"
    theirs.touch()
    assert installed.run("run.py", "--install-only").returncode == 0
    assert theirs.exists()


def test_moved_project_finds_itself(installed: StubProject) -> None:
    moved = installed.folder.with_name("moved")
    shutil.move(installed.folder, moved)
    installed.folder = moved
    done = installed.run("run.py", "chat")
    assert done.returncode == 0, done.stderr
    pth = next((moved / ".venv/lib").glob("*/site-packages/stub.pth"))
    assert pth.read_text() == str(moved)


def test_environment_whose_python_is_gone_is_rebuilt(installed: StubProject) -> None:
    python = installed.folder / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nonexistent/python")
    done = installed.run("run.py", "chat")
    assert done.returncode == 0, done.stderr
    assert "outdated" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupted_installation_is_made_good(stub: StubProject) -> None:
    """Interrupted, terminated, killed; each next start begins anew, the last one succeeds."""
    stub.hold.touch()
    for builds, number in ((1, signal.SIGINT), (2, signal.SIGTERM)):
        process = stub.start("run.py", "chat")
        wait_for(lambda builds=builds: stub.builds == builds)
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (130, "")
        assert "run the same command again" in err
        assert "Traceback" not in err

    killed = stub.start("run.py", "chat")
    wait_for(lambda: stub.builds == 3)
    killed.kill()  # pip, its child, lives on and holds the lock
    killed.communicate()
    leftover = stub.folder / ".venv" / "half-written"
    leftover.touch()
    last = stub.start("run.py", "chat")
    assert last.stderr is not None
    assert "waiting" in last.stderr.readline()
    stub.hold.unlink()
    out, err = last.communicate(timeout=100)
    assert last.returncode == 0, err
    assert "Removing the unfinished" in err
    assert not leftover.exists()
    assert out.startswith("arguments: chat")


def test_two_at_once_install_once(stub: StubProject) -> None:
    stub.hold.touch()
    both = [stub.start("run.py", "--install-only") for _ in range(2)]
    wait_for(lambda: stub.builds == 1)
    stub.hold.unlink()
    assert [process.wait(timeout=100) for process in both] == [0, 0]
    for process in both:
        process.communicate()
    assert stub.builds == 1


def test_unreachable_index_is_said_and_the_next_try_succeeds(stub: StubProject, closed_port: int) -> None:
    wanted = stub.folder / "wanted.txt"
    wanted.write_text("some-distribution==1.0")
    del stub.variables["PIP_NO_INDEX"]
    stub.variables |= {"PIP_INDEX_URL": f"http://127.0.0.1:{closed_port}/simple"}
    done = stub.run("run.py", "chat")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "index is out of reach" in done.stderr
    assert "Traceback" not in done.stderr
    wanted.unlink()
    assert stub.run("run.py", "chat").returncode == 0


def test_checks_that_fail_are_named(stub: StubProject) -> None:
    """The stub has none of the tools, so every check fails, and each is run although the one before it failed."""
    done = stub.run("test.py")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "Failed: lint, format, import rules, types, tests"
