"""``ignis bench serve``: the scenarios, one after another, against one server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ignis_desktop.bench.client import LoadClient
from ignis_desktop.bench.machine import machine
from ignis_desktop.bench.process import Target, serving
from ignis_desktop.bench.prompts import PromptMaker
from ignis_desktop.bench.report import ScenarioReport
from ignis_desktop.bench.scenarios import connections, flood, lanes, poisson, siblings, soak, trace, turns
from ignis_desktop.bench.scenarios.base import Bench, Options
from ignis_desktop.bench.watch import wait_ready
from ignis_desktop.cli.options import EngineOptions

SCENARIOS: dict[str, Callable[[Bench], Awaitable[ScenarioReport]]] = {
    "lanes": lanes.run,
    "flood": flood.run,
    "turns": turns.run,
    "siblings": siblings.run,
    "poisson": poisson.run,
    "trace": trace.run,
    "connections": connections.run,
    "soak": soak.run,
}


def run_scenarios(
    names: Sequence[str],
    options: Options,
    *,
    engine: EngineOptions | None = None,
    connect: tuple[str, str | None] | None = None,
    say: Callable[[str], None],
    show: Callable[[ScenarioReport], None],
) -> dict[str, Any]:
    """Run scenarios against the server at ``connect`` (address, key), or one started for them with ``engine``.

    Args:
        say: told what is being done.
        show: given each report as soon as there is one.

    Returns:
        Everything as JSON: machine, server, seed, scenarios.

    Raises:
        CommandError: the server cannot be started, does not answer, or a scenario cannot be carried out on it.
    """
    head = machine()
    with _target(engine, connect) as target:
        server, reports = asyncio.run(_run(names, options, target, say, show))
    return {
        "kind": "serve",
        "machine": head,
        "server": server,
        "seed": options.seed,
        "scenarios": {report.name: report.json() for report in reports},
    }


def passed(result: dict[str, Any]) -> bool:
    """Whether no verdict of a result is a failure."""
    return not any(
        verdict["passed"] is False for scenario in result["scenarios"].values() for verdict in scenario["verdicts"]
    )


@contextlib.contextmanager
def _target(engine: EngineOptions | None, connect: tuple[str, str | None] | None) -> Iterator[Target]:
    if connect is not None:
        yield Target(connect[0], connect[1], None)
        return
    with serving(engine or EngineOptions()) as target:
        yield target


async def _run(
    names: Sequence[str],
    options: Options,
    target: Target,
    say: Callable[[str], None],
    show: Callable[[ScenarioReport], None],
) -> tuple[dict[str, Any], list[ScenarioReport]]:
    reports = []
    async with LoadClient(target.url, target.key) as client:
        say("waiting for the model")
        now = await wait_ready(client)
        maker = await PromptMaker.create(client)
        context, count = int(now.raw["context_length"]), len(now.lanes)
        for name in names:
            bench = Bench(client, target, maker, options, context, count, partial(_say_of, say, name))
            report = await SCENARIOS[name](bench)
            show(report)
            reports.append(report)
    server = {
        "model": now.raw["model"],
        "device": now.raw["device"],
        "context_length": context,
        "lanes": count,
        "pages": now.pages_total,
        "started_for_this": target.child is not None,
    }
    return server, reports


def _say_of(say: Callable[[str], None], name: str, text: str) -> None:
    say(f"{name}: {text}")
