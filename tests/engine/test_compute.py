"""The compute type, told without torch and yet as torch would tell it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.compute import ITEMSIZE, compute_type, has_amx
from engine.config import EngineConfig
from engine.device import choose_dtype

LINUX = sys.platform == "linux"


def test_auto_is_what_the_processor_is_good_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for amx, name in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr("engine.compute.has_amx", lambda amx=amx: amx)
        assert compute_type(EngineConfig(), "cpu") == name
        assert choose_dtype(EngineConfig(), torch.device("cpu")) == getattr(torch, name)
    assert compute_type(EngineConfig(), "cuda") == "bfloat16"
    assert compute_type(EngineConfig(dtype="float32"), "cuda") == "float32"
    assert {name: getattr(torch, name).itemsize for name in ITEMSIZE} == ITEMSIZE


def test_torch_finds_the_same() -> None:
    assert has_amx() == torch.cpu._is_amx_tile_supported()


@pytest.mark.skipif(not LINUX, reason="Linux names the processor's abilities in a file")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx512f amx_bf16 avx512_fp16 amx_tile amx_int8\n", True),
        ("processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16\nbugs\t: amx_tile\n", False),
        ("processor\t: 0\nFeatures\t: fp asimd\n", False),
    ],
)
def test_the_processors_own_words(text: str, found: bool, tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    assert has_amx(file) is found
    assert has_amx(tmp_path / "gone") == torch.cpu._is_amx_tile_supported()


@pytest.mark.skipif(not LINUX, reason="elsewhere torch asks the processor")
def test_a_plan_for_the_cpu_imports_no_torch() -> None:
    plan = "import sys; from ignis_desktop.cli.entry import run; run(['plan', '--ram', '8GiB'])"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", f"{plan}; print('torch' in sys.modules)"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"
