"""What is copied from an answer runs as it is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ignis_desktop.capture.coordinates import Rect
from ignis_desktop.capture.grabbing import MonitorTarget, RegionTarget, WindowTarget, target_of
from ignis_desktop.panels.screen_snippets import capture_json, screen_snippets

BASE = "http://127.0.0.1:8000/v1"
ODD = "the “Don't save” button"


@pytest.mark.parametrize("target", [MonitorTarget(2), RegionTarget(Rect(-5, 0, 10, 20)), WindowTarget("It's", id=None)])
def test_the_capture_of_a_snippet_is_the_one_that_was_made(target) -> None:
    assert target_of(json.loads(json.dumps(capture_json(target)))) == target


@pytest.mark.parametrize(
    "source", [MonitorTarget(1), WindowTarget('Bob\'s "notes"'), Path("/pictures/a 'b'.png"), None]
)
@pytest.mark.parametrize("key", ["", "secret"])
def test_python(source, key: str) -> None:
    code = screen_snippets(BASE, key, ODD, source, "linux")[0].code
    compile(code, "snippet", "exec")
    assert repr(ODD) in code
    assert ("secret" in code) == bool(key)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
@pytest.mark.parametrize("key", ["", "secret"])
def test_curl(tmp_path: Path, key: str) -> None:
    """Run by a shell with stand-ins for curl and jq that write down what they are given."""
    picture = tmp_path / "a 'b'.png"
    picture.write_bytes(b"picture")
    log = tmp_path / "log"
    (tmp_path / "curl").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {log}\ncase "$*" in *@-*) cat >> {log};; esac\n')
    (tmp_path / "jq").write_text("#!/bin/sh\ncat > /dev/null; echo screen-1\n")
    for name in ("curl", "jq"):
        (tmp_path / name).chmod(0o755)
    snippet = screen_snippets(BASE, key, ODD, picture, "linux")[1]
    assert snippet.title == "curl"
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run([shutil.which("sh") or "sh", "-c", snippet.code], env={"PATH": path}, capture_output=True)
    assert done.returncode == 0, done.stderr
    said = log.read_text(encoding="utf-8").splitlines()
    assert f"{BASE}/screens" in said
    assert '{"image": "data:image/png;base64,cGljdHVyZQ=="}' in "\n".join(said)
    assert f"{BASE}/screens/screen-1/point" in said
    assert json.loads(said[-1]) == {"question": ODD}
    assert said.count("Authorization: Bearer secret") == (2 if key else 0)


def test_powershell() -> None:
    python, shell = screen_snippets(BASE, "secret", ODD, Path("C:\\a 'b'.png"), "win32")
    assert (python.title, shell.title) == ("Python", "PowerShell")
    assert "Resolve-Path 'C:\\a ''b''.png'" in shell.code
    assert "Don''t save" in shell.code
    assert shell.code.count('Authorization="Bearer secret"') == 2
