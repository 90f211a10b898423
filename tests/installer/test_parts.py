"""The installer's decisions one by one: disk, faults, PyTorch's index, system packages."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from pathlib import Path

import pytest

from ignis_desktop.system_libraries import Package
from installer import faults, install, system_packages, torch_index
from installer.environment import Environment
from installer.faults import InstallError

NO_ROUTE = (
    "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None)) after connection broken by "
    "'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new "
    "connection: [Errno 101] Network is unreachable')': /simple/torch/\n"
    "ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)\n"
    "ERROR: No matching distribution found for torch==2.13.0\n"
)
NO_NAME = NO_ROUTE.replace("[Errno 101] Network is unreachable", "[Errno -3] Temporary failure in name resolution")


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (NO_ROUTE, "index is out of reach"),
        (NO_NAME, "index is out of reach"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", "disk is full"),
        (
            "ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: 2.14.0)\n"
            "ERROR: No matching distribution found for torch==2.13.0\n",
            "no torch==2.13.0 for this Python",
        ),
        (NO_ROUTE.partition("\n")[2], "out of reach or has none"),  # pip without retries does not say why
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate')", "PIP_CERT"),
        ("ERROR: HTTP error 403 while getting https://mirror.example/torch.whl\n", "refused access"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "download was damaged"),
        ("ERROR: ResolutionImpossible: for help visit the documentation\n", "contradict"),
        ("PermissionError: [Errno 13] Permission denied: '/srv/app/.venv'", "who owns"),
        ("ERROR: something new\nnote: more\n", "ERROR: something new"),
        ("", "pip gave no reason"),
    ],
)
def test_pips_failures_become_a_sentence(output: str, says: str, tmp_path: Path) -> None:
    sentence = faults.explain(output, tmp_path / "log")
    assert says in sentence
    assert "\n" not in sentence


def test_full_disk_is_said_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    usage = shutil._ntuple_diskusage(10**12, 10**12, 300 * 1024**2)  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(InstallError, match=r"needs \d+ GiB of free disk in .*; 0\.3 are free"):
        install.ensure(Environment(tmp_path), set())
    assert not (tmp_path / ".venv").exists()


def test_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    environment = Environment(tmp_path)
    environment.lock_file = tmp_path / "missing" / "lock"  # root may write everywhere but in what is not there
    with pytest.raises(InstallError, match="Cannot write to the project folder"):
        install.ensure(environment, set())


def test_missing_venv_module_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda _name: None)
    asked = []
    monkeypatch.setattr(system_packages, "provide", lambda packages, purpose: asked.append((packages, purpose)))
    with pytest.raises(InstallError, match="ensurepip module is missing"):
        install._make_venv(Environment(tmp_path))
    ((packages, _purpose),) = asked
    assert [package.debian for package in packages] == [f"python3.{sys.version_info[1]}-venv"]


def test_stamp_tells_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    environment = Environment(tmp_path)
    environment.python.parent.mkdir(parents=True)
    environment.python.touch()
    assert not environment.is_current(set())
    environment.write_stamp({"test"})
    assert environment.is_current(set())
    assert environment.is_current({"test"})
    assert not environment.is_current({"bench"})
    environment.marker_file.touch()
    assert not environment.is_current(set()), "a marker says that an installation is not finished"
    environment.marker_file.unlink()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert not environment.is_current(set())
    environment.stamp_file.write_text('{"key": ')
    assert not environment.is_current(set()), "a damaged stamp is none"


class TestTorchIndex:
    @pytest.fixture(autouse=True)
    def plain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("IGNIS_TORCH_INDEX", "PIP_NO_INDEX"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(torch_index.sys, "platform", "linux")
        monkeypatch.setattr(torch_index, "has_nvidia_gpu", lambda: False)

    @pytest.mark.parametrize(
        ("platform", "gpu", "build"),
        [
            ("linux", False, "cpu"),
            ("linux", True, None),
            ("win32", True, torch_index.CUDA_BUILD),
            ("win32", False, None),
        ],
    )
    def test_build(self, platform: str, gpu: bool, build: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch_index.sys, "platform", platform)
        monkeypatch.setattr(torch_index, "has_nvidia_gpu", lambda: gpu)
        assert torch_index.wanted_build() == build

    def test_variable_overrides(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("IGNIS_TORCH_INDEX", "https://mirror.example/torch")
        assert torch_index.extra_index() == "https://mirror.example/torch"
        monkeypatch.setenv("IGNIS_TORCH_INDEX", "")
        assert torch_index.extra_index() is None

    def test_index_that_refuses_is_left_out(self, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch_index, "WHEELS", f"http://127.0.0.1:{closed_port}")
        assert torch_index.extra_index() is None

    def test_index_that_is_silent_costs_the_time_limit_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            monkeypatch.setattr(torch_index, "WHEELS", f"http://127.0.0.1:{silent.getsockname()[1]}")
            began = time.monotonic()
            assert torch_index.extra_index(timeout=0.3) is None
            assert time.monotonic() - began < 2.0


class TestSystemPackages:
    WANTED = (Package("libegl1", "libglvnd-egl", "libglvnd"), Package("libgl1", "libglvnd-glx", "libglvnd"))

    @pytest.fixture
    def tools(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A PATH with nothing but what the test puts there."""
        folder = tmp_path / "bin"
        folder.mkdir()
        monkeypatch.setenv("PATH", str(folder))
        return folder

    def add(self, folder: Path, name: str, exit_code: int = 0) -> Path:
        calls = folder / "calls"
        script = folder / name
        script.write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\nexit {exit_code}\n')
        script.chmod(0o755)
        return calls

    def test_root_on_debian_installs(self, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        calls = self.add(tools, "apt-get")
        assert system_packages.provide(self.WANTED, "the window")
        update, installing = calls.read_text().splitlines()
        assert update.endswith("update")
        assert installing.endswith("install -y --no-install-recommends libegl1 libgl1")

    def test_user_on_debian_gets_the_line(
        self, tools: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        calls = self.add(tools, "apt-get")
        assert not system_packages.provide(self.WANTED, "the window")
        assert not calls.exists()
        assert "sudo apt-get install -y --no-install-recommends libegl1 libgl1" in capsys.readouterr().err

    def test_failing_apt_ends_in_the_line(
        self, tools: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        self.add(tools, "apt-get", exit_code=100)
        assert not system_packages.provide(self.WANTED, "the window")
        assert "For the window: apt-get install" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("manager", "line"),
        [
            ("dnf", "dnf install -y libglvnd-egl libglvnd-glx"),
            ("pacman", "pacman -S --needed libglvnd"),
            (None, "libegl1 libgl1"),
        ],
    )
    def test_other_systems_get_their_own_names(
        self,
        manager: str | None,
        line: str,
        tools: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        if manager:
            self.add(tools, manager)
        assert not system_packages.provide(self.WANTED, "the window")
        assert line in capsys.readouterr().err
