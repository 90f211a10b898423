"""Commands from end to end: separate processes, Ember, a real log and a real screenshot."""

from __future__ import annotations

import gzip
import json
import signal
import time
from pathlib import Path

import httpx
import pytest
from PIL import Image, ImageChops

from ignis_desktop.cli import entry
from ignis_desktop.server import runtime_file
from tests.cli.conftest import PROJECT, CommandLine, Served

pytestmark = pytest.mark.timeout(240)

DATA = PROJECT / "tests" / "data"
SHOT = str(DATA / "screens" / "mousepad-edit-menu.webp")
MENU = {"Paste": (84, 195, 427, 220), "Select All": (84, 296, 427, 321)}
"""What is asked on the screenshot → its box (screens.json)."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines 720–750 of a real PostgreSQL log: line 19 is the deadlock."""
    lines = (DATA / "logs" / "postgresql.log").read_text(encoding="utf-8").splitlines()[719:750]
    path = tmp_path_factory.mktemp("logs") / "postgresql.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class TestChat:
    def test_answer(self, served: Served) -> None:
        done = served.run("chat", "Say hello in one sentence.", "--max-tokens", "12", "--temperature", "0")
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.split()) >= 2
        assert done.stdout.endswith("\n")

    def test_same_seed_same_answer(self, served: Served) -> None:
        asked = ("chat", "Name a colour.", "--max-tokens", "8", "--seed", "7", "--temperature", "1.2")
        first = served.run(*asked)
        assert first.stdout == served.run(*asked).stdout
        assert first.stdout.strip()

    @pytest.mark.parametrize("arguments", [["-"], []])
    def test_prompt_from_standard_input(self, served: Served, arguments: list[str]) -> None:
        done = served.run("chat", *arguments, "--max-tokens", "4", "--temperature", "0", stdin="Say hello.\n")
        assert done.returncode == 0
        assert done.stdout == served.run("chat", "Say hello.", "--max-tokens", "4", "--temperature", "0").stdout

    def test_picture(self, served: Served) -> None:
        done = served.run("chat", "What is this?", "--image", SHOT, "--max-tokens", "2")
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()

    def test_refusal_of_the_server_is_one_sentence(self, served: Served) -> None:
        done = served.run("chat", "word " * 20_000)
        assert done.returncode == 1
        assert done.stdout.strip() == ""
        assert "tokens" in done.stderr
        assert len(done.stderr.splitlines()) == 1

    @pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs a POSIX terminal")
    def test_conversation_on_a_terminal(self, served: Served) -> None:
        import os
        import pty

        ours, theirs = pty.openpty()
        process = served.start("chat", "--max-tokens", "4", stdin=theirs)
        os.write(ours, b"Hello.\n/new\nHello again.\n/exit\n")
        out, err = process.communicate(timeout=100)
        os.close(ours)
        os.close(theirs)
        assert process.returncode == 0, err
        assert out.count("> ") == 4
        assert "Ember" in err
        assert len(out.replace("> ", "").split()) >= 2


class TestInterrupt:
    def test_answer_is_cancelled(self, served: Served) -> None:
        """Exit code 130 at once, and the server's lane is free again soon."""
        process = served.start("chat", "Count from one to a thousand.", "--max-tokens", "2000", "--temperature", "0")
        assert process.stdout is not None
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert time.monotonic() - began < 5
        assert "Traceback" not in err
        until = time.monotonic() + 10
        while time.monotonic() < until:
            lanes = httpx.get(f"{served.url}/v1/engine", trust_env=False).json()["lanes"]
            if all(lane["state"] == "idle" for lane in lanes):
                return
            time.sleep(0.05)
        pytest.fail("the lane is still busy")

    def test_own_engine_is_closed(self, ignis: CommandLine, tiny_folder: Path) -> None:
        process = ignis.start("chat", "Hi", "--model", str(tiny_folder), "--threads", "1", "--max-tokens", "400")
        assert process.stdout is not None
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "Traceback" not in err

    def test_while_loading(self, ignis: CommandLine) -> None:
        process = ignis.start("chat", "Hi", "--threads", "1")
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, "")
        assert "Traceback" not in err


class TestLocate:
    QUESTION = "deadlock detected"

    def test_line_and_text(self, served: Served, log: Path) -> None:
        done = served.run("locate", str(log), self.QUESTION)
        assert (done.returncode, done.stderr) == (0, "")
        number, tab, text = done.stdout.rstrip("\n").partition("\t")
        assert (number, tab) == ("19", "\t")
        assert text.endswith("ERROR:  deadlock detected")

    def test_compressed_from_standard_input(self, served: Served, log: Path, tmp_path: Path) -> None:
        packed = tmp_path / "log.gz"
        packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + log.read_bytes().replace(b"\n", b"\r\n")))
        with packed.open("rb") as stdin:
            process = served.start("locate", "-", self.QUESTION, stdin=stdin)
            out, err = process.communicate(timeout=100)
        assert out.startswith("19\t"), err

    def test_candidates_and_json(self, served: Served, log: Path) -> None:
        lines = served.run("locate", str(log), self.QUESTION, "--top", "3").stdout.splitlines()
        assert len(lines) == 3
        assert lines[0].startswith("19\t")
        answer = json.loads(served.run("locate", str(log), self.QUESTION, "--top", "3", "--json").stdout)
        assert answer["line"] == 19
        assert [str(rank["line"]) for rank in answer["ranking"]] == [line.partition("\t")[0] for line in lines]

    def test_an_engine_of_its_own_reads_the_file_where_it_lies(
        self, ignis: CommandLine, log: Path, tiny_folder: Path
    ) -> None:
        done = ignis.run("locate", str(log), "How many errors say deadlock detected?", "--model", str(tiny_folder))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("19\t")
        assert "1 line answers." in done.stderr

    def test_nothing_of_that_time(self, ignis: CommandLine, log: Path, tiny_folder: Path) -> None:
        done = ignis.run("locate", str(log), "What happened before 1999-01-01?", "--model", str(tiny_folder))
        assert (done.returncode, done.stdout) == (3, "")
        assert f"not found in {log}" in done.stderr
        assert "No line is of that time." in done.stderr

    def test_a_file_that_is_too_large_to_send(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from ignis_desktop.cli import locate as command
        from ignis_desktop.cli.errors import CommandError
        from ignis_desktop.cli.inputs import open_text
        from ignis_desktop.cli.options import ConnectionOptions, EngineOptions

        monkeypatch.setattr(command, "SENT", 100)
        with open_text(str(log)) as source, pytest.raises(CommandError, match="--lanes 1"):
            command._asked(ConnectionOptions("nowhere", EngineOptions()), source, str(log), "which?", "auto", 1)


class TestPoint:
    def test_points_inside_and_marks_them(self, served: Served, tmp_path: Path) -> None:
        overlay = tmp_path / "marked.png"
        done = served.run("point", SHOT, *MENU, "--overlay", str(overlay))
        assert (done.returncode, done.stderr) == (0, "")
        points = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
        for (x, y), (left, top, right, bottom) in zip(points, MENU.values(), strict=True):
            assert left <= x <= right
            assert top <= y <= bottom
        with Image.open(SHOT) as before, Image.open(overlay) as after:
            changed = ImageChops.difference(before.convert("RGB"), after.convert("RGB")).getbbox()
        assert changed is not None
        assert changed[0] < points[0][0] < changed[2]
        assert changed[1] < points[0][1] < changed[3]

    def test_boxes_are_printed_and_framed(self, served: Served, tmp_path: Path) -> None:
        overlay = tmp_path / "framed.png"
        done = served.run("point", SHOT, *MENU, "--box", "--overlay", str(overlay))
        assert (done.returncode, done.stderr) == (0, "")
        boxes = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        for (x0, y0, x1, y1), (left, top, right, bottom) in zip(boxes, MENU.values(), strict=True):
            assert max(x0, left) < min(x1, right)
            assert max(y0, top) < min(y1, bottom)
        with Image.open(SHOT) as before, Image.open(overlay) as after:
            changed = ImageChops.difference(before.convert("RGB"), after.convert("RGB"))
        x0, y0, x1, y1 = boxes[0]
        assert changed.crop((x0 - 2, y0 - 2, x1 + 2, y0)).getbbox() == (0, 0, x1 - x0 + 4, 2)
        assert changed.crop((x0 + 1, y0 + 1, x1 - 1, y1 - 1)).getbbox() is None

    def test_json(self, served: Served) -> None:
        (answer,) = json.loads(served.run("point", SHOT, "Paste", "--json").stdout)
        assert answer["question"] == "Paste"
        assert answer["found"] is True
        assert {"pixels", "desktop", "normalized", "confidence", "uncertainty", "ms"} <= set(answer)

    def test_no_screen_is_left_behind(self, served: Served) -> None:
        before = httpx.get(f"{served.url}/v1/engine", trust_env=False).json()["retained"]
        served.run("point", SHOT, "Paste")
        assert httpx.get(f"{served.url}/v1/engine", trust_env=False).json()["retained"] == before

    def test_overlay_that_cannot_be_written(self, served: Served, tmp_path: Path) -> None:
        done = served.run("point", SHOT, "Paste", "--overlay", str(tmp_path / "missing" / "out.png"))
        assert done.returncode == 1
        assert "cannot be written" in done.stderr


class TestServe:
    def test_plan_comes_line_by_line(self, served: Served) -> None:
        text = "".join(served.log)
        assert text.startswith("Memory plan: ")
        for name in ("weights", "kv_pool", "lane_state", "headroom"):
            assert f"  {name} " in text
        assert served.log[-1].startswith("Serving Ember (CPU")

    def test_stop_takes_the_runtime_file_along(self, tmp_path: Path, tiny_folder: Path) -> None:
        running = Served(tmp_path, "--model", str(tiny_folder), "--threads", "1")
        assert runtime_file.read(tmp_path / "data" / "run") is not None
        assert running.stop(signal.SIGINT) == 130
        assert not list((tmp_path / "data" / "run").glob("server-*"))

    def test_taken_port(self, served: Served, tmp_path: Path, tiny_folder: Path) -> None:
        port = served.url.rpartition(":")[2]
        done = CommandLine(tmp_path).run("serve", "--port", port, "--model", str(tiny_folder))
        assert done.returncode == 1
        assert f"Port {port} is taken" in done.stderr

    def test_other_machines_need_a_key(self, ignis: CommandLine) -> None:
        done = ignis.run("serve", "--host", "0.0.0.0", "--port", "0")
        assert done.returncode == 1
        assert "API key" in done.stderr

    def test_key_is_found_by_local_commands_and_asked_of_others(self, tmp_path: Path, tiny_folder: Path) -> None:
        running = Served(tmp_path, "--model", str(tiny_folder), "--threads", "1", "--api-key", "sesame")
        try:
            assert running.run("chat", "Hi", "--max-tokens", "2").returncode == 0
            stranger = running.run("chat", "Hi", "--connect", running.url)
            assert stranger.returncode == 1
            assert "IGNIS_API_KEY" in stranger.stderr
            running.variables["IGNIS_API_KEY"] = "sesame"
            assert running.run("chat", "Hi", "--max-tokens", "2", "--connect", running.url).returncode == 0
        finally:
            running.stop()

    def test_no_display_serves_headless_with_the_windows_settings(self, tmp_path: Path, tiny_folder: Path) -> None:
        headless = CommandLine(tmp_path)
        data = tmp_path / "data"
        data.mkdir()
        (data / "settings.json").write_text(json.dumps({"port": 0, "model": str(tiny_folder), "threads": 1}))
        process = headless.start(stdout=None)
        assert process.stderr is not None
        first = process.stderr.readline()
        assert "There is no display" in first
        assert "Serving without a window" in first
        assert any(line.startswith("Serving ") for line in iter(process.stderr.readline, ""))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0


class TestFaults:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["locate", "no-such.log", "which?"], "There is no file no-such.log"),
            (["point", str(PROJECT / "pyproject.toml"), "the button"], "is not a picture"),
            (["chat", "Hi", "--image", str(PROJECT / "pyproject.toml")], "is not a picture"),
            (["chat", "Hi", "--model", str(PROJECT / "docs")], "config.json"),
            (["serve", "--port", "0", "--model", "no-such-model"], "There is no model 'no-such-model'"),
            (["models", "verify", str(PROJECT / "docs")], "config.json"),
        ],
    )
    def test_exit_code_1_and_one_sentence(self, arguments: list[str], says: str, ignis: CommandLine) -> None:
        done = ignis.run(*arguments)
        assert done.returncode == 1
        assert says in done.stderr
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1


def test_models(
    tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tiny").symlink_to(tiny_folder)
    monkeypatch.setenv("IGNIS_MODELS", str(tmp_path))

    def output_of(*arguments: str) -> str:
        assert entry.run(["models", *arguments]) == 0
        return capsys.readouterr().out

    assert [line.split()[0] for line in output_of("list").splitlines()] == ["ember", "tiny"]
    assert [model["bundled"] for model in json.loads(output_of("list", "--json"))] == [True, False]
    assert "is sound" in output_of("verify", "tiny")
    assert json.loads(output_of("verify", "tiny", "--json"))["ok"] is True


def test_doctor(served: Served) -> None:
    done = served.run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert {"system", "python", "memory", "torch", "triton", "qt", "server", "ember"} <= set(checks)
    assert checks["ember"]["status"] == "ok"
    assert checks["server"]["found"].startswith(f"running at {served.url}")
    faults = [check for check in checks.values() if check["status"] == "fault"]
    assert all(check["advice"] for check in faults)
    assert done.returncode == (1 if faults else 0)


class TestDecide:
    def test_typed_questions(self, served: Served, tmp_path: Path) -> None:
        request = tmp_path / "request.json"
        questions = {
            "kind": {"type": "choice", "instructions": "What is this?", "options": ["a bill", "a poem"]},
            "paid": {"type": "noul", "instructions": "Is it paid?"},
        }
        request.write_text(json.dumps({"state": {"total": "12.50"}, "questions": questions}), encoding="utf-8")
        done = served.run("decide", str(request))
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["answers"]["kind"]["choice"] in ("a bill", "a poem")
        assert 0 <= answer["answers"]["paid"]["noul"] <= 1
        assert answer["usage"]["output_tokens"] == 0
        assert served.run("decide", "-", stdin=request.read_text(encoding="utf-8")).returncode == 0

    @pytest.mark.parametrize(
        ("text", "said"),
        [("{", "is not JSON"), ("[]", "must hold an object"), ('{"state": "x", "questions": {}}', "questions")],
    )
    def test_what_is_no_request(self, served: Served, tmp_path: Path, text: str, said: str) -> None:
        request = tmp_path / "request.json"
        request.write_text(text, encoding="utf-8")
        done = served.run("decide", str(request))
        assert done.returncode == 1
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
