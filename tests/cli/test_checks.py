"""What ``ignis doctor`` concludes, on machines that are not this one."""

from __future__ import annotations

import socket

import pytest

from ignis_desktop.cli import checks, doctor, entry
from ignis_desktop.cli.checks import Check
from ignis_desktop.system_libraries import Package

GIB = checks.GIB
RTX_5090 = checks._Gpu("NVIDIA GeForce RTX 5090", "580.95", (12, 0), 30 * GIB, 32 * GIB)


def by_name(found: object) -> dict[str, Check]:
    return {check.name: check for check in found}  # type: ignore[attr-defined]


def test_gpu_that_is_supported() -> None:
    found = by_name(checks._graphics([RTX_5090]))
    assert found["gpu"] == Check("gpu", "ok", "NVIDIA GeForce RTX 5090, SM120, 30.0 of 32.0 GiB free")
    assert found["driver"].status == "ok"


def test_gpu_and_driver_that_are_too_old() -> None:
    old = checks._Gpu("NVIDIA GeForce GTX 1080", "535.54", (6, 1), 7 * GIB, 8 * GIB)
    found = by_name(checks._graphics([old]))
    assert found["gpu"].status == found["driver"].status == "fault"
    assert "SM61" in found["gpu"].found
    assert "--device cpu" in found["gpu"].advice
    assert "580" in found["driver"].advice


def test_no_gpu_is_no_fault() -> None:
    assert by_name(checks._graphics("Driver Not Loaded"))["gpu"].status == "note"


def test_torch_without_cuda_on_a_machine_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.version, "cuda", None)
    found = by_name(checks._compute([RTX_5090]))
    assert found["torch"].status == "fault"
    assert "delete the .venv folder" in found["torch"].advice


def test_compiler_counts_on_a_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.shutil, "which", lambda _name: None)
    monkeypatch.delenv("CC", raising=False)
    assert checks._compiler_check(needed=True).status == "fault"
    assert checks._compiler_check(needed=False).status == "note"


def test_missing_qt_library_comes_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.sys, "platform", "linux")
    monkeypatch.setattr(checks, "display_server", lambda: (False, True))
    monkeypatch.setattr(checks, "missing_libraries", lambda **_: {"libxcb-cursor.so.0": Package("a", "b", "c")})
    monkeypatch.setattr(checks, "has_font", lambda: False)
    found = by_name(checks._window())
    assert found["display"].found == "X11"
    assert found["qt libraries"].status == found["fonts"].status == "fault"
    assert found["qt libraries"].advice


def test_taken_port(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("IGNIS_DATA_DIR", str(tmp_path_factory.mktemp("run")))
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(checks, "DEFAULT_PORT", other.getsockname()[1])
        found = by_name(checks._server())
    assert found["server"].status == "note"
    assert found["port"].status == "fault"
    assert "--port" in found["port"].advice


def test_fault_makes_the_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    results = [Check("one", "ok", "fine"), Check("two", "fault", "broken", "mend it")]
    monkeypatch.setattr(checks, "run_checks", lambda: iter(results))
    assert entry.run(["doctor"]) == doctor.FAULT
    assert capsys.readouterr().out.splitlines() == [
        "ok    one:           fine",
        "FAULT two:           broken",
        " " * 21 + "→ mend it",
    ]
    results.pop()
    assert entry.run(["doctor"]) == 0
