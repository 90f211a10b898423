"""``ignis plan``: tables and JSON for any card, refusals with what mends them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from engine.checkpoint import open_checkpoint
from engine.config import ModelConfig
from engine.memory import plan as planning
from engine.memory.plan import Memory, on_card
from ignis_desktop.cli import entry
from ignis_desktop.cli.options import EngineOptions, Size
from tests.cli.conftest import CommandLine

GIB = 1 << 30
PUBLISHED = ["--model", "qwen3.8-27b", "--vram", "32GiB", "--max-context", "128K", "--lanes", "8"]


@pytest.fixture(autouse=True)
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "card_memory", lambda: None)
    monkeypatch.setenv("IGNIS_MODELS", "")


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = entry.run(["plan", *arguments, "--json"])
    body: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (code == 0) == body["fits"]
    return body


def test_table_for_a_card_that_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["plan", *PUBLISHED, "--kv-format", "q2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Qwen3.8-27B on a card of 32,768 MiB: 8 lanes × 131,072 tokens, KV in q2\n")
    rows = {line.split()[0]: line for line in out.splitlines() if " MiB " in line and line.startswith("  ")}
    assert re.search(r"kv_pool +9,64\d\.\d MiB +29\.4%  [\d,]+ pages × 64 tokens × 9,216 B \(q2\)", rows["kv_pool"])
    assert "  1,024.0 MiB    3.1%  left to other programs" in rows["headroom"]
    assert {
        "weights",
        "context",
        "runtime",
        "lane_state",
        "workspace",
        "graphs",
        "total",
        "other",
        "retained",
    } <= rows.keys()
    assert out.index("Beside it, in the host's memory:") < out.index("retained ")
    assert "8 lanes × 131,072 = 1,048,576 tokens (9.0 GiB): all 8 lanes can be full at once." in out


def test_json_is_what_the_server_tells(capsys: pytest.CaptureFixture[str]) -> None:
    body = as_json(capsys, *PUBLISHED, "--other", "1.5GiB", "--headroom", "512MiB")
    assert body["model"] == {"id": "qwen3.8-27b", "name": "Qwen3.8-27B"}
    assert (body["kind"], body["max_context"], body["lanes"], body["kv_format"]) == ("vram", 131_072, 8, "bf16")
    assert (body["capacity"], body["other"], body["headroom"]) == (32 * GIB, 3 * GIB // 2, GIB // 2)
    assert body["budget"] == 30 * GIB
    main = sum(line["bytes"] for line in body["lines"] if line["tier"] == "main")
    assert main == body["total"] <= body["budget"]
    assert all(line["why"] for line in body["lines"])


def test_lanes_share_a_pool_that_is_smaller(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["plan", *PUBLISHED]) == 0
    assert "(64.0 GiB): the lanes share them." in capsys.readouterr().out


def test_knobs_reach_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    def line(name: str, *arguments: str) -> int:
        body = as_json(capsys, "--vram", "80GiB", "--max-context", "64K", *arguments)
        return int(next(line["bytes"] for line in body["lines"] if line["name"] == name))

    assert line("lane_state", "--lanes", "2") * 4 == line("lane_state")
    assert line("drafter") == 0
    assert line("drafter", "--draft-tokens", "7") > 3.85e9
    assert line("kv_window", "--kv-format", "q2") > line("kv_window") == 0
    assert line("host_tier", "--host-tier", "0") == 0
    assert line("kv_pool", "--kv-tokens", "64K") == 65_536 * 65_536
    assert as_json(capsys, "--vram", "80GiB", "--memory-budget", "40GiB", "--max-context", "64K")["budget"] == 40 * GIB
    body = as_json(capsys, "--vram", "80GiB", "--kv-format", "q2", "--yarn", "2", "--max-context", "512K")
    assert body["max_context"] == 524_288
    tier = line("disk_tier", "--disk-tier", "kept")
    assert tier == 8 * GIB


def test_what_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["plan", "--vram", "24GiB", "--max-context", "128K", "--lanes", "4", "--json"]) == 1
    done = capsys.readouterr()
    body = json.loads(done.out)
    assert body["fits"] is False
    assert f"need {body['short']:,} bytes more than the {23 * GIB:,} that may be taken" in body["error"]
    assert done.err == f"ignis: {body['error']}\n"
    found = re.search(r"--max-context (\d+) fits, or --kv-format (\w+)", body["error"])
    assert found is not None
    for mended in (["--max-context", found[1]], ["--max-context", "128K", "--kv-format", found[2]]):
        assert entry.run(["plan", "--vram", "24GiB", "--lanes", "4", *mended]) == 0


def test_this_machine_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    body = as_json(capsys)
    assert (body["kind"], body["model"]["id"]) == ("host", "ember")
    assert body["other"] > 0
    assert body["capacity"] == body["budget"] + body["headroom"] + body["other"]
    for arguments in (["--device", "cuda"], ["--model", "qwen3.8-27b"]):
        assert entry.run(["plan", *arguments]) == 1
        assert "--vram 32GiB" in capsys.readouterr().err


def test_this_machines_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "card_memory", lambda: Memory(32 * GIB, 30 * GIB, "NVIDIA GeForce RTX 5090"))
    monkeypatch.setattr(planning, "host_memory", lambda: Memory(64 * GIB, 60 * GIB))
    assert entry.run(["plan", "--max-context", "32K"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Qwen3.8-27B on a card of 32,768 MiB (NVIDIA GeForce RTX 5090): 8 lanes × 32,768 tokens")
    assert "2,048.0 MiB    6.2%  held by other programs and the system" in out
    assert as_json(capsys, "--device", "cpu")["kind"] == "host"


def test_a_cpu_of_another_size(capsys: pytest.CaptureFixture[str]) -> None:
    body = as_json(capsys, "--ram", "2GiB", "--lanes", "2")
    assert (body["kind"], body["capacity"], body["lanes"]) == ("host", 2 * GIB, 2)
    assert as_json(capsys, "--ram", "1GiB")["fits"] is False


def test_a_checkpoint_counts_as_a_card_holds_it(tiny_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = as_json(capsys, "--model", str(tiny_folder), "--vram", "8GiB")
    weights = body["lines"][0]
    assert weights["why"].startswith("in the card's order, in one block: ")
    with open_checkpoint(tiny_folder) as checkpoint:
        assert weights["bytes"] == on_card(ModelConfig.from_dict(checkpoint.config), checkpoint).bytes


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--vram", "32GiB", "--ram", "8GiB"], 2, "not for both"),
        (["--other", "1GiB"], 2, "--other goes with --vram or --ram"),
        (["--vram", "1GiB", "--other", "2GiB"], 2, "--other is more than there is"),
        (["--vram", "lots"], 2, "'lots' is no size; write 512MiB or 32GiB"),
        (["--vram", "32GiB", "--kv-format", "q3"], 2, "'q3' is not one of"),
        (["--model", "gpt-5", "--vram", "32GiB"], 1, "There is no model 'gpt-5'"),
        (["--vram", "32GiB", "--max-context", "512K"], 1, "--yarn 2 stretches it"),
        (["--vram", "8GiB", "--model", "ember", "--draft-tokens", "7"], 1, "no drafter for this model"),
    ],
)
def test_wrong_options(arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["plan", *arguments]) == code
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32GiB", 32 * GIB),
        ("32G", 32 * GIB),
        ("512MiB", 512 << 20),
        ("512m", 512 << 20),
        ("1.5GiB", 3 * GIB // 2),
        ("2GB", 2_000_000_000),
        ("4096", 4096),
        ("4096B", 4096),
        ("0", 0),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


def test_options_become_the_engines() -> None:
    options = EngineOptions(kv_format="bf16", headroom=GIB, host_tier=0, disk_tier="~/kept", yarn=2.0, kv_tokens=8192)
    config = options.config()
    assert (config.kv_format, config.headroom, config.host_tier, config.yarn) == ("bf16", GIB, 0, 2.0)
    assert config.disk_tier == Path("~/kept").expanduser()
    assert EngineOptions().config().host_tier is None


@pytest.mark.parametrize("arguments", [[*PUBLISHED, "--kv-format", "q2"], ["--device", "cpu"]], ids=["card", "cpu"])
def test_a_plan_is_quick(arguments: list[str], ignis: CommandLine) -> None:
    """In processor time, which other work on the machine does not lengthen."""
    before = os.times()
    done = ignis.run("plan", *arguments)
    after = os.times()
    assert done.returncode == 0
    assert after.children_user + after.children_system - before.children_user - before.children_system < 1.5
