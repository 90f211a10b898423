"""Every kernel compiles for SM90 and SM120, within the shared memory there is, and the hot ones keep to registers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.compiled import areas

SHARED = {90: 227 * 1024, 120: 99 * 1024}
"""Bytes of shared memory that a block may have."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton's own wheels carry the compiler's tools.")


@pytest.mark.timeout(600)  # a minute of compiling, on processors that may be busy
@pytest.mark.parametrize("area", areas())
def test_compiled(area: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "tests.kernels.compiled", area],
        capture_output=True,
        text=True,
        env=environment,
        cwd=root,
    )
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert found
    for kernel in found:
        assert "fault" not in kernel, kernel
        assert kernel["shared"] <= SHARED[kernel["target"]], kernel
        assert not kernel["hot"] or kernel["stack"] == kernel["local"] == 0, kernel
