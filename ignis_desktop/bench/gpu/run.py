"""The whole measurement of a card, part by part: whatever one part does, the others are reported.

Parts about a loaded engine share one load; they run on a processor as well, where everything but the card's own figures
is checked just as there.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ignis_desktop.bench.machine import machine
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

if TYPE_CHECKING:
    from ignis_desktop.bench.gpu.card import Card
    from ignis_desktop.bench.gpu.probe import Compilations
    from ignis_desktop.bench.gpu.watched import WatchedEngine
    from ignis_desktop.bench.report import ScenarioReport

CARD_PARTS = ("kernels", "model", "peer")
"""Measured on a card, without an engine; what is done when no part is named."""
ENGINE_PARTS = ("load", "memory", "gap", "serve", "soak")
"""In the order in which they are done."""
PARTS = (*CARD_PARTS, *ENGINE_PARTS)
BRIEF = 60.0
"""Seconds that are enough for all but a soak."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    parts: Sequence[str] = ()
    areas: Sequence[str] = ()
    """Of the kernels."""
    geometry: str = "qwen3.8-27b"
    """Of the model whose rounds, prompts and pictures are measured, with random weights."""
    quick: bool = False
    """Fewer shapes and repeats, to see that everything runs."""
    timed: bool = True
    """Also time the kernels; else they are only compiled and checked."""
    engine: EngineOptions = field(default_factory=EngineOptions)
    seconds: float = 60.0
    """Of a soak; of the load of memory, of gap and of the streams of serve as many, ``BRIEF`` at most."""
    folder: Path | None = None
    """Where ``load`` keeps the checkpoints it makes; None: a folder that goes afterwards."""
    seed: int = 0

    @property
    def brief(self) -> float:
        return min(self.seconds, BRIEF)


def run_gpu(
    wanted: Wanted, *, say: Say, show: Callable[[str], None], save: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Measure the card in this machine, and the engine on it.

    Args:
        say: what is being done; show: tables, as they are done; save: everything so far, after each part.

    Raises:
        CommandError: there is no card, something is not installed, or the model cannot be loaded.
    """
    from ignis_desktop.bench.gpu.needs import missing_sentence
    from ignis_desktop.bench.gpu.probe import driver_used

    parts = [part for part in PARTS if part in (wanted.parts or CARD_PARTS)]
    lacking = missing_sentence(parts)
    if lacking:
        raise CommandError(lacking)
    unused = driver_used()  # before anything touches CUDA
    import torch

    if any(part in CARD_PARTS for part in parts) and not torch.cuda.is_available():
        raise CommandError(
            "There is no CUDA card here: run `ignis doctor` to see why, or measure the CPU with bench cpu."
        )
    started = time.monotonic()
    result: dict[str, Any] = {"kind": "gpu", "machine": machine(), "quick": wanted.quick, "parts": parts, "faults": {}}
    with contextlib.ExitStack() as stack:
        steps: dict[str, Callable[[], None]] = {}
        if any(part in CARD_PARTS for part in parts):
            steps |= _card_steps(result, wanted, say, show)
        engine = _EngineSteps(result, wanted, stack, unused, say, show)
        steps |= {part: getattr(engine, part) for part in ENGINE_PARTS}
        for part in parts:
            try:
                steps[part]()
            except Exception as fault:  # the other parts' figures are worth having
                result["faults"][part] = "".join(traceback.format_exception(fault))
                show(f"{part}: {fault.message if isinstance(fault, CommandError) else result['faults'][part]}")
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                torch.cuda.empty_cache()
            save(result)
    result["seconds"] = round(time.monotonic() - started, 1)
    return result


def missed(result: dict[str, Any]) -> bool:
    """Whether anything is wrong, failed, or short of its target."""
    wrong = any(not kernel["right"] for kernel in result.get("kernels", ()))
    rows = any(row["passed"] is False for row in result.get("rows", {}).values())
    engine = any(
        verdict["passed"] is False for part in ENGINE_PARTS for verdict in result.get(part, {}).get("verdicts", ())
    )
    return wrong or rows or engine or bool(result["faults"])


class _EngineSteps:
    """Parts about an engine. It is loaded when the first of them needs it, and closed with the stack."""

    def __init__(
        self,
        result: dict[str, Any],
        wanted: Wanted,
        stack: contextlib.ExitStack,
        unused: int | None,
        say: Say,
        show: Callable[[str], None],
    ) -> None:
        self._result, self._wanted, self._stack, self._unused = result, wanted, stack, unused
        self._say, self._show = say, show
        self._options = wanted.engine
        self._loaded: tuple[WatchedEngine, Compilations] | None = None
        self._fault: Exception | None = None

    def load(self) -> None:
        from engine.checkpoint.geometries import geometry
        from ignis_desktop.bench.gpu import loading

        shape = geometry(self._wanted.geometry)
        report, made = loading.run(shape, self._folder(), self._options, seed=self._wanted.seed, say=self._say)
        if self._options.model is None:
            self._options = replace(self._options, model=str(made))
        self._done(report)

    def memory(self) -> None:
        from ignis_desktop.bench.gpu import memory

        engine, _ = self._engine()
        wanted = self._wanted
        self._done(memory.run(engine, self._unused, seconds=wanted.brief, seed=wanted.seed, say=self._say))

    def gap(self) -> None:
        from ignis_desktop.bench.gpu import gap

        self._done(gap.run(self._engine()[0], seconds=self._wanted.brief, say=self._say))

    def serve(self) -> None:
        from ignis_desktop.bench.gpu import served

        wanted = self._wanted
        self._done(served.run(self._engine()[0], seconds=wanted.brief, seed=wanted.seed, say=self._say))

    def soak(self) -> None:
        from ignis_desktop.bench.gpu import soak

        wanted = self._wanted
        self._done(soak.run(*self._engine(), seconds=wanted.seconds, seed=wanted.seed, say=self._say))

    def _done(self, report: ScenarioReport) -> None:
        self._result[report.name] = report.json()
        self._show(report.text())

    def _engine(self) -> tuple[WatchedEngine, Compilations]:
        """Raises what loading raised, each time it is asked for."""
        if self._fault is not None:
            raise self._fault
        if self._loaded is None:
            try:
                self._loaded = self._load()
            except Exception as fault:
                self._fault = fault
                raise
        return self._loaded

    def _load(self) -> tuple[WatchedEngine, Compilations]:
        from ignis_desktop.bench.gpu.probe import Compilations
        from ignis_desktop.bench.gpu.watched import loaded

        options = replace(self._options, model=self._model())
        self._say("loading the engine")
        began = time.monotonic()
        compilations = self._stack.enter_context(Compilations())
        engine = self._stack.enter_context(loaded(options))
        now = engine.snapshot()
        self._result["engine"] = {
            "model": now.model,
            "device": now.device,
            "context_length": now.context_length,
            "lanes": len(now.lanes),
            "pages": now.pages_total,
            "ready_seconds": round(time.monotonic() - began, 1),
            "kernels_until_ready": compilations.count,
        }
        self._show(
            f"{now.model}, {now.device}: ready after {time.monotonic() - began:.1f} s, {compilations.count} kernels "
            f"({compilations.compiled.total()} compiled), {now.pages_total:,} pages, {len(now.lanes)} lanes"
        )
        return engine, compilations

    def _model(self) -> str | None:
        """What was asked for or made by ``load``; else on a card random weights of the geometry, elsewhere Ember."""
        from engine.checkpoint.geometries import geometry
        from engine.checkpoint.random_model import write_random
        from engine.device import choose_device

        if self._options.model is not None:
            return self._options.model
        # "auto" keeps Ember off the card; here the card is what is measured.
        if choose_device(replace(self._options, model="random").config()).type != "cuda":
            return None
        shape = geometry(self._wanted.geometry)
        folder = self._folder() / f"{shape.id}-random"
        if not any(folder.glob("*.safetensors")):
            self._say("writing random weights")
            write_random(shape, folder, seed=self._wanted.seed)
        return str(folder)

    def _folder(self) -> Path:
        if self._wanted.folder is None:
            return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="ignis-bench-")))
        self._wanted.folder.mkdir(parents=True, exist_ok=True)
        return self._wanted.folder


def _card_steps(
    result: dict[str, Any], wanted: Wanted, say: Say, show: Callable[[str], None]
) -> dict[str, Callable[[], None]]:
    """Parts that a card is measured by; its ceilings are measured at once."""
    from ignis_desktop.bench.gpu.card import measure_card
    from ignis_desktop.bench.gpu.kernels import AREAS

    say("measuring the card's ceilings")
    card = measure_card()
    show(card.line())
    result["card"] = card.json()
    return {
        "kernels": lambda: _kernels(result, wanted.areas or AREAS, wanted.quick, wanted.timed, card, say, show),
        "model": lambda: _model(result, wanted.geometry, wanted.quick, card, say, show),
        "peer": lambda: _peer(result, wanted.geometry, say, show),
    }


def _kernels(
    result: dict[str, Any],
    areas: Sequence[str],
    quick: bool,
    timed: bool,
    card: Card,
    say: Say,
    show: Callable[[str], None],
) -> None:
    from ignis_desktop.bench.gpu.kernels import kernels_json, kernels_table, run_kernels

    found = run_kernels(areas, quick, timed, say)
    show(kernels_table(found, card))
    result["kernels"] = kernels_json(found, card)


def _model(
    result: dict[str, Any], geometry: str, quick: bool, card: Card, say: Say, show: Callable[[str], None]
) -> None:
    from ignis_desktop.bench.gpu.model import run_model

    run_model(result, geometry, quick, card, say, show)


def _peer(result: dict[str, Any], geometry: str, say: Say, show: Callable[[str], None]) -> None:
    """transformers beside the rounds that were measured in the same run."""
    from engine.checkpoint.geometries import geometry as known
    from ignis_desktop.bench.cpu.rows import Row, rows_table
    from ignis_desktop.bench.gpu.model import REFERENCE_CONTEXT
    from ignis_desktop.bench.gpu.peer import PROMPT, transformers_step

    lanes = 8
    say("drawing the model for transformers")
    step = transformers_step(known(geometry).raw["text_config"], lanes) * 1e3
    rows = result.setdefault("rows", {})
    own = rows.get(f"round_{lanes}x1_{REFERENCE_CONTEXT}")
    ratio = step / own["samples"][0] if own else None
    row = Row(
        key="transformers",
        name=f"{lanes} lanes after {REFERENCE_CONTEXT:,} tokens, transformers' batch after {PROMPT:,}",
        value=f"{lanes / own['samples'][0] * 1e3:,.0f} tokens/s" if own else "not measured in this run",
        peer=f"{lanes / step * 1e3:,.0f} tokens/s",
        ratio=ratio,
        target="≥ 3 ×",
        passed=None if ratio is None else ratio >= 3,
        peer_samples=[step],
        note="BF16, rounds of torch operators; without flash-linear-attention it takes its own reference recurrence",
    )
    rows[row.key] = row.json()
    show(rows_table([row]))
