"""Random weights written, loaded, converted and loaded again: how fast, and in which phase the time goes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from engine import loader
from engine.checkpoint.convert import convert
from engine.checkpoint.geometries import Geometry
from engine.checkpoint.random_model import write_random
from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.shards import Shard
from engine.device import choose_device, choose_dtype, choose_threads
from engine.memory.lane_state import LaneState
from engine.memory.paged_kv import PagedKV
from engine.model import network
from ignis_desktop.bench.gpu.phases import Phases
from ignis_desktop.bench.gpu.watched import give_back
from ignis_desktop.bench.report import ScenarioReport, Verdict
from ignis_desktop.cli.options import EngineOptions

GB = 1e9
TARGET = 2.0
"""GB a second out of the page cache."""
THREADS, PIECE = 4, 64 << 20
"""Of the plain reading that loads are held against."""
WEIGHTS = "weights: the rest"
"""The phase that begins when the buffers stand."""
HEADERS = ("step", "GB", "seconds", "GB/s", "")


@dataclass(frozen=True)
class Load:
    """One load of a checkpoint whose files lie in the page cache."""

    name: str
    bytes: int
    weights: float
    """Seconds from the first weight to the last one on the device."""
    whole: float
    """Seconds of all that a loader does: checks, hash, tokenizer, plan, buffers, weights."""
    phases: dict[str, float]
    """Seconds of the loading thread."""
    readers: float
    """Seconds that all threads together spent on reading files."""
    plain: float
    """Seconds of reading the same files and doing nothing with them."""

    @property
    def rate(self) -> float:
        """GB a second of the weights."""
        return self.bytes / GB / self.weights


def run(
    geometry: Geometry, folder: Path, options: EngineOptions, *, seed: int, say: Callable[[str], None]
) -> tuple[ScenarioReport, Path]:
    """Make and load checkpoints of ``geometry`` in ``folder``; those that are there already are taken as they are.

    Returns:
        the report, and the folder of the converted checkpoint (of the plain one where nothing can be converted).
    """
    began = time.monotonic()
    rows: list[Sequence[str]] = []
    published, converted = folder / f"{geometry.id}-random", folder / f"{geometry.id}-converted"
    rows.append(_made("models random", published, lambda: write_random(geometry, published, seed=seed), say))
    loads = [_load("as published", published, options, say)]
    fault = ""
    try:
        rows.append(_made("models convert", converted, lambda: convert(published, converted), say))
    except Exception as error:
        fault, converted = f"{type(error).__name__}: {error}", published
    else:
        loads.append(_load("converted", converted, options, say))
    report = ScenarioReport("load", f"{geometry.name}, random weights", time.monotonic() - began)
    for load in loads:
        size = load.bytes / GB
        rows.append([f"plain reading, {load.name}", *_figures(size, load.plain), f"{THREADS} threads, no copies"])
        rows.append([f"weights, {load.name}", *_figures(size, load.weights), f"threads read for {load.readers:.1f} s"])
        rows.append([f"the whole load, {load.name}", *_figures(size, load.whole), "without compiling and capturing"])
    report.tables.append((HEADERS, rows))
    names = sorted({name for load in loads for name in load.phases}, key=lambda n: -loads[0].phases.get(n, 0.0))
    columns = [f"{load.name} s" for load in loads]
    phases: list[Sequence[str]] = [[name, *(f"{load.phases.get(name, 0.0):.2f}" for load in loads)] for name in names]
    report.tables.append((("the loading thread", *columns), phases))
    report.facts |= {"loads": [{**vars(load), "gb_per_second": load.rate} for load in loads], "folder": str(converted)}
    report.verdicts += [
        Verdict(
            f"weights from the page cache, {load.name}", f"{load.rate:.2f} GB/s", f"≥ {TARGET:g} GB/s", *_judged(load)
        )
        for load in loads
    ]
    report.verdicts.append(Verdict("models convert", fault or "done", "done", not fault))
    return report, converted


def _judged(load: Load) -> tuple[bool | None, str]:
    if load.bytes < GB:
        return None, "too small to tell"
    return load.rate >= TARGET, ""


def _figures(size: float, seconds: float) -> list[str]:
    return [f"{size:,.2f}", f"{seconds:,.2f}", f"{size / max(seconds, 1e-9):,.2f}"]


def _made(name: str, target: Path, make: Callable[[], object], say: Callable[[str], None]) -> list[str]:
    """A row about making a checkpoint, or about one that is there."""
    there = any(target.glob("*.safetensors"))
    began = time.perf_counter()
    if not there:
        say(f"load: {name}")
        make()
    taken = time.perf_counter() - began
    size = sum(file.stat().st_size for file in target.glob("*.safetensors")) / GB
    return [name, f"{size:,.2f}", "-", "-", "was there"] if there else [name, *_figures(size, taken), "written"]


def _load(name: str, folder: Path, options: EngineOptions, say: Callable[[str], None]) -> Load:
    say(f"load: reading {name} into the page cache")
    read_plainly(folder)
    plain = read_plainly(folder)
    say(f"load: loading {name}")
    give_back()
    config = EngineOptions(**{**vars(options), "model": str(folder)}).config()
    torch.set_num_threads(choose_threads(config))
    device = choose_device(config)
    dtype = choose_dtype(config, device)
    sizes: list[int] = []

    def progress(_done: int, total: int, _name: str) -> None:
        sizes[:] = [total]

    with Phases(threading.get_ident()) as phases, Phases() as readers:
        readers.watch("reading", Shard, "rows")
        _watch(phases)
        began = time.perf_counter()
        loaded, built, _ = loader.load_model(config, device, dtype, on_plan=lambda **_: None, on_progress=progress)
        if device.type == "cuda":
            torch.cuda.synchronize()
        ended = time.perf_counter()
    del loaded, built
    give_back()
    found = {phase: seconds for phase, seconds in phases.seconds.items() if seconds > 0}
    found["elsewhere"] = max(ended - began - sum(found.values()), 0.0)
    return Load(name, sizes[0], ended - phases.first[WEIGHTS], ended - began, found, readers.seconds["reading"], plain)


def _watch(phases: Phases) -> None:
    """Time the steps of a load."""
    # Triton comes with the card's decoder only.
    from engine.model import fused_weights

    for phase, owner, attribute in (
        ("opening, checking headers", loader, "open_checkpoint"),
        ("planning (the driver's context)", loader, "plan_load"),
        ("hash, tokenizer, template", loader, "_describe"),
        ("reserving keys and values", PagedKV, "__init__"),
        ("reserving lane state", LaneState, "__init__"),
        ("waiting for readers", Future, "result"),
        ("packing", fused_weights, "pack_rows"),
        ("placing what is in order", fused_weights, "place_rows"),
        ("copying parts to the device", torch.Tensor, "to"),
        ("plain weights: read, widen, copy", Checkpoint, "copy_into"),
        ("FP8 and other packed weights", Checkpoint, "packed"),
        (WEIGHTS, network, "_decoder"),
        ("waiting for the card", torch.cuda, "synchronize"),
    ):
        phases.watch(phase, owner, attribute)


def read_plainly(folder: Path) -> float:
    """Seconds that some threads take to read all weights' files and drop them."""
    files = sorted(folder.glob("*.safetensors"))
    pieces = [(file, at) for file in files for at in range(0, file.stat().st_size, PIECE)]
    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(_read_piece, pieces):
            pass
    return time.perf_counter() - began


_OWN = threading.local()


def _read_piece(piece: tuple[Path, int]) -> None:
    file, at = piece
    if not hasattr(_OWN, "room"):
        _OWN.room = bytearray(PIECE)  # touched once: what is measured is the file
    with file.open("rb", buffering=0) as handle:
        handle.seek(at)
        into = memoryview(_OWN.room)[: min(PIECE, os.fstat(handle.fileno()).st_size - at)]
        done = 0
        while done < len(into) and (read := handle.readinto(into[done:])):
            done += read
