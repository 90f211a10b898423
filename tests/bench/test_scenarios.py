"""Every scenario against a real server with a tiny model, and what verdicts make of good and bad figures."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ignis_desktop.bench.classes import ClassSummary
from ignis_desktop.bench.client import Outcome
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.bench.scenarios import connections, flood, lanes, poisson, siblings, soak, turns
from ignis_desktop.bench.scenarios.base import Bench
from ignis_desktop.bench.scenarios.soak_load import Tally
from ignis_desktop.bench.stats import Spread
from ignis_desktop.bench.watch import EngineView, Watcher, view

Run = Callable[..., Any]


def check_json(report: ScenarioReport) -> dict[str, Any]:
    value = report.json()
    assert value["verdicts"] == [{**vars(verdict), "verdict": verdict.word} for verdict in report.verdicts], (
        "every verdict is told"
    )
    assert report.text().startswith(f"{report.name}: ")
    return value


class TestRuns:
    def test_lanes(self, with_bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lanes, "REPEATS", 2)
        value = check_json(with_bench(lanes.run))
        one, many = value["one_lane_tokens_per_second"], value["all_lanes_tokens_per_second"]
        assert len(one) == len(many) == 2
        assert value["lanes"] == 8
        assert value["ratio"] == pytest.approx(sum(many) / sum(one), rel=0.01)
        assert value["ratio"] > 1

    def test_connections(self, with_bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connections, "REPEATS", 1)
        monkeypatch.setattr(connections, "IDLE", 200)
        monkeypatch.setattr(connections, "QUIET_SECONDS", 0.5)
        report = with_bench(connections.run)
        value = check_json(report)
        for case in ("streams", "idle", "read", "unread"):
            assert value[case]["tokens_per_second"][0] > 0
            assert value[case]["server_ms_per_token"][0] > 0
        assert all(0 <= value[case]["idle_processors"][0] < 0.05 for case in ("streams", "idle"))
        assert value["unread"]["tokens_per_second"][0] > value["read"]["tokens_per_second"][0] / 3, (
            "a round does not wait for a client"
        )
        assert len(report.verdicts) == 4

    def test_flood(self, with_bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(flood, "IDLE_REQUESTS", 3)

        async def run(bench: Bench) -> tuple[ScenarioReport, EngineView]:
            return await flood.run(bench), await view(bench.client)

        report, after = with_bench(run, seconds=2.0, rate=4.0, agents=10)
        value = check_json(report)
        interactive, agents = value["classes"]["interactive"], value["classes"]["agent"]
        assert (interactive["requests"], interactive["ok"]) == (8, 8)
        assert interactive["output_tokens"] == 8 * flood.ANSWER
        assert interactive["prompt_tokens"] == 8 * flood.INTERACTIVE
        assert agents["ok"] + agents["left"] == agents["requests"] >= 10
        assert value["idle"]["ok"] == 3
        assert value["chunk"]["tokens"] == 1024
        assert value["chunk"]["ms"] > 0
        assert value["engine"]["most_busy_lanes"] >= 7
        assert value["generator"]["lateness_ms"]["count"] == 8
        assert after.idle, "the agents have stopped"

    def test_poisson(self, with_bench: Run) -> None:
        value = check_json(with_bench(poisson.run, seconds=2.0, rate=5.0, mix=0.5))
        classes = value["classes"].values()
        assert sum(found["ok"] for found in classes) == sum(found["requests"] for found in classes) > 3
        assert value["engine"]["counters"]["requests_finished"] == sum(found["ok"] for found in classes)

    def test_turns(self, with_bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(turns, "CONVERSATIONS", 1)
        value = check_json(with_bench(turns.run))
        prompts = [turn["prompt_tokens"][0] for turn in value["turns"]]
        assert prompts[0] == turns.FIRST
        assert prompts == sorted(prompts)
        assert len(value["read_share"]) == turns.TURNS - 1
        for turn, share in zip(value["turns"][1:], value["read_share"], strict=True):
            read = turn["prompt_tokens"][0] - turn["cached_tokens"][0]
            assert share == pytest.approx(read / turn["prompt_tokens"][0], abs=1e-3), "client and engine agree"

    def test_siblings(self, with_bench: Run) -> None:
        value = check_json(with_bench(siblings.run))
        assert value["system_tokens"] == siblings.SYSTEM
        assert siblings.SYSTEM < value["shared_tokens"] < siblings.SYSTEM + 40
        assert len(value["prompt_tokens"]) == siblings.SIBLINGS
        assert value["pages"]["lanes"] == siblings.SIBLINGS

    @pytest.mark.timeout(300)
    def test_soak(self, with_bench: Run) -> None:
        """Five hundred short requests, a quarter of whose clients leave: nothing is left behind."""
        report = with_bench(soak.run, requests=500)
        value = check_json(report)
        assert [verdict.line() for verdict in report.verdicts if verdict.passed is False] == []
        assert value["left"] > 80
        assert value["cancelled"] > 5
        assert value["counters"]["requests_cancelled"] > 40
        assert value["answered"] + value["left"] + value["cancelled"] == 500
        assert value["process"]["after"]["threads"]["ignis-server"] == 1


def engine_view(
    *, busy: int = 0, queued: int = 0, parked: int = 0, free: int = 100, kept: int = 0, pages: int = 0
) -> EngineView:
    """Of an engine with eight lanes and a hundred pages."""
    states = [{"state": "decode" if lane < busy else "idle", "class": "agent", "pages": pages} for lane in range(8)]
    return EngineView(
        {
            "lanes": states,
            "parked": [{"class": "interactive"}] * parked,
            "queue": {"total": queued},
            "pages": {"total": 100, "free": free},
            "reuse": {"kept_pages": kept},
            "counters": {},
        }
    )


def usage(**changed: Any) -> dict[str, Any]:
    return {
        "threads": {"engine": 1, "ignis-prepare": 2},
        "native_threads": 1,
        "connections": 2,
        "files": 10,
        "resident_bytes": 500 << 20,
        "alive": {"Stream": 0},
        **changed,
    }


class TestVerdicts:
    @pytest.mark.parametrize(
        ("p95", "refused", "parked", "passed"),
        [(0.3, 0, 0, [True] * 3), (0.33, 0, 0, [False, True, True]), (0.3, 1, 2, [True, False, False])],
    )
    def test_flood(self, p95: float, refused: int, parked: int, passed: list[bool]) -> None:
        """Idle 100 ms, a chunk 200 ms: 320 ms is the limit."""
        outcomes = [Outcome("interactive", 0.0, 0.0, "ok", pieces=[p95]) for _ in range(20)]
        outcomes += [Outcome("interactive", 0.0, 0.0, "refused", "full") for _ in range(refused)]
        watcher = Watcher(None)  # type: ignore[arg-type]
        watcher._take(engine_view(parked=parked))
        idle = Spread(10, 0.1, 0.2, 0.2, 0.2)
        found = flood._verdicts(ClassSummary.of("interactive", outcomes, 1.0), idle, 0.2, watcher)
        assert [verdict.passed for verdict in found] == passed

    def test_a_server_that_does_not_say_what_it_parks(self) -> None:
        watcher = Watcher(None)  # type: ignore[arg-type]
        watcher._take(EngineView({**engine_view().raw, "parked": None}))
        summary = ClassSummary.of("interactive", [Outcome("interactive", 0.0, 0.0, "ok", pieces=[0.1])], 1.0)
        assert flood._verdicts(summary, Spread(1, 1, 1, 1, 1), 0.1, watcher)[2].passed is None

    @pytest.mark.parametrize(
        ("busy", "pages", "free", "kept", "passed"),
        [
            (4, 20, 20, 0, False),  # nothing is shared
            (4, 30, 49, 0, True),  # 120 held, 51 taken: 69 saved
            (4, 30, 48, 0, False),  # 68 saved
            (4, 30, 40, 9, True),  # what only kept state holds is nobody's
            (3, 30, 49, 0, None),  # not all at once
            (4, 0, 49, 0, None),  # the server does not say
        ],
    )
    def test_siblings(self, busy: int, pages: int, free: int, kept: int, passed: bool | None) -> None:
        report = ScenarioReport("siblings", "")
        verdict = siblings._verdict(engine_view(busy=busy, pages=pages, free=free, kept=kept), 1500, report)
        assert verdict.passed is passed

    @pytest.mark.parametrize(
        ("state", "passed"),
        [
            ({}, True),
            ({"free": 90, "kept": 10}, True),
            ({"free": 89, "kept": 10}, False),
            ({"busy": 1}, False),
            ({"queued": 1}, False),
            ({"parked": 1}, False),
        ],
    )
    def test_pages_after_a_soak(self, state: dict[str, int], passed: bool) -> None:
        assert soak._pages(engine_view(**state)).passed is passed

    @pytest.mark.parametrize(
        ("changed", "failing"),
        [
            ({}, None),
            ({"alive": {"Stream": 1}}, 0),
            ({"threads": {"engine": 1, "ignis-prepare": 3}}, 1),
            ({"native_threads": 2}, 1),
            ({"connections": 3}, 2),
            ({"files": 11}, 2),
            ({"resident_bytes": 517 << 20}, 3),
        ],
    )
    def test_process_after_a_soak(self, changed: dict[str, Any], failing: int | None) -> None:
        found = soak._process(usage(), usage(**changed), 100, filled=True)
        assert [number for number, verdict in enumerate(found) if not verdict.passed] == (
            [] if failing is None else [failing]
        )

    def test_memory_is_not_judged_while_the_pool_is_first_touched(self) -> None:
        found = soak._process(usage(), usage(resident_bytes=600 << 20), 100, filled=False)
        assert found[3].passed is None

    def test_answers_of_a_soak(self) -> None:
        tally = Tally(finished=3, left=1)
        assert soak._answers(tally).passed
        tally.faults["HTTP 500"] += 1
        verdict = soak._answers(tally)
        assert not verdict.passed
        assert "1 × HTTP 500" in verdict.line()
        assert soak._ends({"requests_failed": 0, "requests_cancelled": 1}, 1).passed
        assert not soak._ends({"requests_failed": 0, "requests_cancelled": 2}, 1).passed
        assert not soak._ends({"requests_failed": 1, "requests_cancelled": 0}, 1).passed

    def test_words(self) -> None:
        assert [Verdict("a", "1", "2", passed).word for passed in (True, False, None)] == ["pass", "FAIL", "not judged"]


def test_arrivals_at_random_times() -> None:
    times = poisson.arrival_times(random.Random(1), 5.0, 2000.0)
    assert times == sorted(times)
    assert times[-1] < 2000
    assert len(times) == pytest.approx(10_000, rel=0.05)
    gaps = [after - before for before, after in pairwise(times)]
    assert sum(gap > 0.2 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.03)  # e⁻¹: exponential
    assert len(poisson.arrival_times(random.Random(1), 0.01, 1.0)) == 1
