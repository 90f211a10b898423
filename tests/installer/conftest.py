"""A small project that the real installer installs: its own requirements are none, so no index is needed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "ignis-desktop"
version = "0"
"""

# A whole PEP 660 back end: an editable wheel is a .pth file and its metadata. It counts its calls in builds.txt and
# waits while a file "hold" lies beside it, so that a test can strike in the middle of an installation.
BACKEND = """
import os, sys, time, zipfile
from pathlib import Path
HERE = Path(__file__).resolve().parent
META = "Metadata-Version: 2.1\\nName: ignis-desktop\\nVersion: 0\\nProvides-Extra: test\\n"
WANTED = HERE / "wanted.txt"
if WANTED.exists():
    META += "".join(f"Requires-Dist: {line}\\n" for line in WANTED.read_text().split())
def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with open(HERE / "builds.txt", "a") as counter:
        counter.write("build\\n")
    while (HERE / "hold").exists():
        time.sleep(0.05)
    name = "ignis_desktop-0-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
        info = "ignis_desktop-0.dist-info"
        wheel.writestr("stub.pth", str(HERE))
        wheel.writestr(f"{info}/METADATA", META)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
build_wheel = build_editable
"""

PROGRAM = """
import os, sys
print("arguments:", *sys.argv[1:])
print("folder:", os.getcwd())
sys.exit(int(os.environ.get("STUB_EXIT", "0")))
"""


class StubProject:
    """A folder with the real installer and a program that prints its arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(PROJECT / "installer", folder / "installer", ignore=shutil.ignore_patterns("__pycache__"))
        package = folder / "ignis_desktop"
        package.mkdir()
        (package / "__init__.py").touch()
        shutil.copy(PROJECT / "ignis_desktop" / "system_libraries.py", package)
        (package / "__main__.py").write_text(PROGRAM)
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "backend.py").write_text(BACKEND)
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
        self.variables |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "IGNIS_TORCH_INDEX": ""}

    @property
    def builds(self) -> int:
        """How often pip has built the project so far."""
        counter = self.folder / "builds.txt"
        return len(counter.read_text().splitlines()) if counter.exists() else 0

    @property
    def hold(self) -> Path:
        """While this file exists, a build does not end."""
        return self.folder / "hold"

    def start(self, script: str, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.folder / "installer" / script), *arguments],
            cwd=cwd or self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, script: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        process = self.start(script, *arguments, cwd=cwd)
        out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def stub(tmp_path: Path) -> StubProject:
    folder = tmp_path / "a project"  # with a space: paths must be quoted everywhere
    folder.mkdir()
    return StubProject(folder)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> StubProject:
    """A project that is installed already; tests that use it leave it so."""
    stub = StubProject(tmp_path_factory.mktemp("installed"))
    done = stub.run("run.py", "--install-only")
    assert done.returncode == 0, done.stderr
    return stub


@pytest.fixture
def closed_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
