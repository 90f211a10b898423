"""``ignis bench`` as it is typed: results, files, exit codes, wrong usage, ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from ignis_desktop.bench import serve as bench_serve
from ignis_desktop.bench.process import PROJECT, Child, Target, serving
from ignis_desktop.bench.report import ScenarioReport, Verdict, table
from ignis_desktop.bench.trace import read_trace
from ignis_desktop.cli import entry
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

COMMAND = [sys.executable, "-P", "-m", "ignis_desktop", "bench"]
VARIABLES = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}


def test_a_scenario_from_end_to_end(tiny_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "result.json"
    options = ["--scenario", "turns", "--model", str(tiny_model), "--threads", "1", "--json", str(out)]
    done = subprocess.run([*COMMAND, "serve", *options], env=VARIABLES, capture_output=True, text=True, timeout=110)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("turns: 3 conversations that begin with 2,000 tokens")
    assert "Tiny, CPU, float32, 1 thread, 8 lanes" in done.stdout
    result = json.loads(out.read_text(encoding="utf-8"))
    assert result["kind"] == "serve"
    assert result["server"]["started_for_this"]
    assert result["machine"]["versions"]["torch"]
    assert result["scenarios"]["turns"]["turns"][0]["prompt_tokens"] == [2000] * 3
    assert out.stat().st_size < 20_000


def test_a_running_server_is_loaded_from_outside(
    target: Target, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert target.key is not None
    monkeypatch.setenv("IGNIS_API_KEY", target.key)
    address = target.url.removeprefix("http://") + "/v1"
    assert entry.run(["bench", "serve", "--connect", address, "--scenario", "soak", "--requests", "20"]) == 0
    out = capsys.readouterr().out
    assert "soak: 20 short requests" in out
    assert "the process of a server that was running already is not looked into" in out


@pytest.mark.parametrize(("verdict", "code"), [(True, 0), (None, 0), (False, 1)])
def test_check_decides_the_exit_code(
    verdict: bool | None, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(names: Any, options: Any, *, show: Any, **_: Any) -> dict[str, Any]:
        report = ScenarioReport("lanes", "a title", verdicts=[Verdict("speed", "1", "2", verdict)])
        show(report)
        machine = {"date": "", "processor": "", "cores": 1, "memory_gib": 1, "system": "", "busy_before": 0.0}
        server = {"model": "Tiny", "device": "CPU", "lanes": 8, "pages": 64}
        return {
            "machine": {**machine, "versions": {}},
            "server": server,
            "scenarios": {"lanes": report.json()},
        }

    monkeypatch.setattr(bench_serve, "run_scenarios", run)
    assert entry.run(["bench", "serve", "--scenario", "lanes"]) == 0
    assert entry.run(["bench", "serve", "--scenario", "lanes", "--check"]) == code
    assert "speed: 1; target 2" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["serve", "cpu", "record"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["bench", command, "--help"]) == 0
    assert f"Usage: ignis bench {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--scenario", "trace"], "needs --trace FILE"),
        (["serve", "--scenario", "song"], "is not one of"),
        (["serve", "--connect", "localhost:1", "--lanes", "2"], "leave out the options of the engine"),
        (["serve", "--mix", "2"], "2.0 is not in the range"),
        (["cpu", "--peer", "pencil"], "is not 'transformers'"),
        (["record"], "Missing option '--out'"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["bench", *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--model", "no-such-model", "--scenario", "lanes"], "no-such-model"),
        (["serve", "--connect", "http://127.0.0.1:9", "--scenario", "lanes"], "does not answer"),
        (["cpu", "--model", "no-such-model"], "no-such-model"),
        (["record", "--connect", "http://127.0.0.1:9", "--out", "x.jsonl", "--port", "0"], "does not answer"),
    ],
)
def test_faults_are_one_sentence(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["bench", *arguments]) == 1
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C to another process needs a console there")
def test_a_recording_ends_with_ctrl_c(target: Target, tmp_path: Path) -> None:
    import httpx

    out = tmp_path / "traffic.jsonl"
    options = ["--connect", target.url, "--out", str(out), "--port", "0", "--origin", "a test"]
    variables = {**VARIABLES, "IGNIS_API_KEY": target.key or ""}
    process = subprocess.Popen([*COMMAND, "record", *options], env=variables, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    address = line.partition("sent to ")[2].partition("/v1")[0]
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2, "ignore_eos": True}
    headers = {"authorization": f"Bearer {target.key}"}
    answer = httpx.post(f"{address}/v1/chat/completions", json=body, headers=headers, trust_env=False, timeout=60)
    assert answer.status_code == 200, (line, answer.text)
    time.sleep(0.3)  # its tokens are counted after it
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "1 requests in" in err
    trace = read_trace(out)
    assert (trace.origin, trace.model, len(trace.requests)) == ("a test", "Tiny", 1)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C to another process needs a console there")
def test_ctrl_c_ends_the_server_too(tiny_model: Path) -> None:
    options = ["--scenario", "poisson", "--seconds", "60", "--model", str(tiny_model), "--threads", "1"]
    process = subprocess.Popen(
        [*COMMAND, "serve", *options], env=VARIABLES, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 30
    while not (children := psutil.Process(process.pid).children()):
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == ""
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_a_server_whose_parent_is_gone_ends(tiny_model: Path) -> None:
    with serving(EngineOptions(model=str(tiny_model), threads=1)) as target:
        assert target.child is not None
        assert target.usage() is not None
        process = target.child.process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0
        with pytest.raises(CommandError, match="ended unexpectedly"):
            target.child.read()


def test_a_child_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ignis_desktop.bench.process.STOP_SECONDS", 0.5)
    child = Child("timeit", "-n1", "-r1", "import time; time.sleep(60)")
    child.stop()
    assert child.process.returncode not in (0, None)


def test_tables() -> None:
    text = table(("name", "a"), [("x", "1"), ("longer", "1,000")])
    assert text.splitlines() == ["  name        a", "  x           1", "  longer  1,000"]
