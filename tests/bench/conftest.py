"""A tiny model served by a process of its own, as ``ignis bench serve`` starts it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ignis_desktop.bench.client import LoadClient
from ignis_desktop.bench.process import Target, serving
from ignis_desktop.bench.prompts import PromptMaker
from ignis_desktop.bench.scenarios.base import Bench, Options
from ignis_desktop.bench.watch import wait_ready
from ignis_desktop.cli.options import EngineOptions
from tests.tiny import write_tiny

T = TypeVar("T")
CONTEXT = 4096


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("bench") / "tiny", context=CONTEXT)


@pytest.fixture
def closed_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def target(tiny_model: Path) -> Iterator[Target]:
    with serving(EngineOptions(model=str(tiny_model), threads=1)) as running:
        yield running


@pytest.fixture
def with_bench(target: Target) -> Callable[..., Any]:
    """Runs an async function of a ``Bench`` against the tiny server; keywords are fields of ``Options``."""

    def run(work: Callable[[Bench], Awaitable[T]], **options: Any) -> T:
        async def whole() -> T:
            async with LoadClient(target.url, target.key) as client:
                now = await wait_ready(client)
                maker = await PromptMaker.create(client)
                context, lanes = int(now.raw["context_length"]), len(now.lanes)
                said: list[str] = []
                return await work(Bench(client, target, maker, Options(**options), context, lanes, said.append))

        return asyncio.run(whole())

    return run
