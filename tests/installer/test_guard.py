"""The refusals of a Python or a system that cannot run Ignis."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from installer.guard import refusal
from tests.installer.conftest import PROJECT

# Everything that runs before the version is known to do.
EARLY = ("__init__.py", "guard.py", "run.py", "test.py")


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 7), (3, 14, 1)])
@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_supported(version: tuple[int, ...], platform: str) -> None:
    assert refusal(version, platform) is None


@pytest.mark.parametrize(
    ("version", "platform", "says"),
    [
        ((2, 7, 18), "linux2", "needs Python 3.11 or newer, and this is Python 2.7"),
        ((3, 10, 13), "linux", "needs Python 3.11 or newer, and this is Python 3.10"),
        ((3, 15, 0), "win32", "no build for Python 3.15"),
        ((3, 12, 0), "darwin", "macOS is not supported"),
    ],
)
def test_refused(version: tuple[int, ...], platform: str, says: str) -> None:
    assert says in (refusal(version, platform) or "")


@pytest.mark.parametrize("script", ["run.py", "test.py"])
@pytest.mark.parametrize(
    ("pretend", "says"),
    [
        ("sys.version_info = (3, 8, 10, 'final', 0)", "this is Python 3.8"),
        ("sys.platform = 'darwin'", "macOS is not supported"),
    ],
)
def test_script_refuses(script: str, pretend: str, says: str) -> None:
    """Exit code 2 and one sentence, before anything is touched."""
    path = PROJECT / "installer" / script
    code = f"import runpy, sys; {pretend}; sys.path[0] = ''; runpy.run_path({str(path)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", EARLY)
def test_early_files_parse_on_old_pythons(name: str) -> None:
    source = (PROJECT / "installer" / name).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.AnnAssign)]
