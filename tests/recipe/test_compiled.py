"""The recipe's Triton kernels compile for the card that trains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not everywhere.")

SPILLED = {"inputs_back_kernel": 128}
"""Bytes a thread may spill, of addresses and norms, once a program."""


@pytest.mark.skipif(sys.platform != "linux", reason="Triton's own wheels carry the compiler's tools.")
def test_compiled_for_the_card_that_trains():
    """Every kernel compiles for SM90, within the shared memory there is, two programs a multiprocessor or more."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.recipe.compiled"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert {kernel["kernel"] for kernel in found} >= set(SPILLED)
    for kernel in found:
        assert "fault" not in kernel, kernel
        assert kernel["shared"] <= 227 * 1024 // 2, kernel
        assert kernel["stack"] + kernel["local"] <= SPILLED.get(kernel["kernel"], 0), kernel
