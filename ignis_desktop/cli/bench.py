"""``ignis bench``: what the program does under load, and how fast it is on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ignis_desktop.cli.bench_answers import answers
from ignis_desktop.cli.errors import FAULT
from ignis_desktop.cli.options import EngineOptions, engine_options
from ignis_desktop.cli.progress import ProgressLine
from ignis_desktop.cli.session import KEY_VARIABLE

if TYPE_CHECKING:
    from ignis_desktop.bench.report import ScenarioReport

SCENARIOS = ("lanes", "flood", "turns", "siblings", "poisson", "trace", "connections", "soak")
FILE = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.group()
def bench() -> None:
    """Measure a server under load, this machine's CPU or how well answers are found; record traffic to replay."""


bench.add_command(answers)


@bench.command("serve")
@click.option(
    "--scenario",
    "names",
    multiple=True,
    type=click.Choice([*SCENARIOS, "all"]),
    help="What to do to the server; may be given several times.  [default: all]",
)
@click.option("--trace", type=FILE, help="Recorded traffic for the trace scenario.")
@click.option("--speed", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Play a trace faster.")
@click.option(
    "--connect",
    metavar="URL",
    help=f"Load the instance at this address (its key is read from {KEY_VARIABLE}) instead of one started for it.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=40.0, show_default=True, help="How long requests come."
)
@click.option("--rate", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Requests a second.")
@click.option("--agents", type=click.IntRange(1, 256), default=12, show_default=True, help="Agents that flood.")
@click.option("--mix", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Agents' share in poisson.")
@click.option("--requests", type=click.IntRange(min=10), default=10_000, show_default=True, help="Requests of a soak.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed asks the same.")
@click.option("--json", "json_path", type=FILE, help="Write everything that was measured to this file.")
@click.option("--check", is_flag=True, help="Exit with 1 when a target is missed.")
@engine_options
def serve(
    names: tuple[str, ...],
    connect: str | None,
    json_path: Path | None,
    check: bool,
    engine_options: EngineOptions,
    **options: Any,
) -> int:
    """Put a server under load and compare what it does with what is promised.

    \b
    lanes     one stream against all lanes
    flood     agents on every lane, interactive requests by the clock
    turns     later turns of long conversations
    siblings  agents with a common system block
    poisson   both classes at random times
    trace     recorded traffic again (--trace FILE)
    soak      thousands of short requests, a quarter of whose clients leave

    The server runs in a process of its own. Requests come by the clock, whatever became of those before them, and
    latencies count from when a request was due.
    """
    if connect and engine_options.any_given:
        raise click.UsageError("--connect uses what is running; leave out the options of the engine.")
    chosen = list(dict.fromkeys(names)) or ["all"]
    if "all" in chosen:
        chosen = [name for name in SCENARIOS if name != "trace" or options["trace"]]
    if "trace" in chosen and not options["trace"]:
        raise click.UsageError("The trace scenario needs --trace FILE.")
    from ignis_desktop.bench.machine import machine_line
    from ignis_desktop.bench.report import write_json
    from ignis_desktop.bench.scenarios.base import Options
    from ignis_desktop.bench.serve import passed, run_scenarios

    line = ProgressLine()

    def show(report: ScenarioReport) -> None:
        line.clear()
        click.echo(report.text() + "\n")

    try:
        result = run_scenarios(
            chosen,
            Options(**options),
            engine=engine_options,
            connect=(_address(connect), os.environ.get(KEY_VARIABLE) or None) if connect else None,
            say=lambda text: line.show(text, 0, None),
            show=show,
        )
    finally:
        line.clear()
    server = result["server"]
    click.echo(f"{server['model']}, {server['device']}, {server['lanes']} lanes, {server['pages']:,} pages")
    click.echo(machine_line(result["machine"]))
    if json_path is not None:
        write_json(json_path, result)
    return 0 if passed(result) or not check else FAULT


def _address(url: str) -> str:
    return (url if "://" in url else f"http://{url}").rstrip("/").removesuffix("/v1")


@bench.command("record")
@click.option("--out", type=FILE, required=True, help="File to write when the recording ends.")
@click.option("--connect", metavar="URL", default="http://127.0.0.1:8000", show_default=True, help="Server behind it.")
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0 takes any free port.")
@click.option("--origin", default="", help="Where the traffic comes from, for the trace's first line.")
def record(out: Path, connect: str, port: int, origin: str) -> int:
    """Record chat traffic that passes through, until Ctrl-C: when it came, how long it was and what it shared.

    Point clients at the address printed; everything is passed on to the server at --connect. No text is written.
    """
    import asyncio

    from ignis_desktop.bench.record import record as run

    key = os.environ.get(KEY_VARIABLE) or None

    def say(address: str) -> None:
        click.echo(f"Recording what is sent to {address}/v1, stop with Ctrl-C", err=True)

    written, left_out = asyncio.run(run(_address(connect), key, port, out, origin, say))
    click.echo(f"{written} requests in {out}, {left_out} left out" if written else "nothing was recorded", err=True)
    return 0 if written else FAULT


@bench.command("cpu")
@click.option("--peer", type=click.Choice(["transformers"]), help="Measure this beside, in turn and alike.")
@click.option("--repeats", type=click.IntRange(1, 50), default=5, show_default=True, help="Of each measure.")
@click.option("--json", "json_path", type=FILE, help="Write everything that was measured to this file.")
@click.option("--check", is_flag=True, help="Exit with 1 when a target is missed.")
@click.option("--model", metavar="NAME|DIR", help="Model to load (ignis models list).  [default: Ember]")
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads.")
def cpu(
    peer: str | None, repeats: int, json_path: Path | None, check: bool, model: str | None, threads: int | None
) -> int:
    """Measure decoding, prefill, screenshots, start, memory and the server on this machine's processor.

    Medians of several runs; with a peer both run in turn, and the ratio is what counts.
    """
    from ignis_desktop.bench.cpu.rows import rows_table
    from ignis_desktop.bench.cpu.run import run_cpu
    from ignis_desktop.bench.machine import machine_line
    from ignis_desktop.bench.report import write_json

    line = ProgressLine()
    try:
        result = run_cpu(
            EngineOptions(model=model, threads=threads),
            peer=peer is not None,
            repeats=repeats,
            say=lambda text: line.show(text, 0, None),
        )
    finally:
        line.clear()
    rows = result["rows"]
    click.echo(rows_table(rows))
    for note in result["notes"]:
        click.echo(f"  {note}")
    click.echo(f"{result['engine']['model']}, {result['engine']['device']}")
    click.echo(machine_line(result["machine"]))
    if json_path is not None:
        write_json(json_path, {**result, "rows": {row.key: row.json() for row in rows}})
    return FAULT if check and any(row.passed is False for row in rows) else 0


@bench.command("gpu")
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(["kernels", "model", "peer", "load", "memory", "gap", "serve", "soak"]),
    help="What to measure; several share one loaded engine.  [default: kernels, model, peer]",
)
@click.option("--only", "areas", multiple=True, help="Kernels of this area only (linear, attention, deltanet, …).")
@click.option("--geometry", default="qwen3.8-27b", show_default=True, help="Whose rounds and loads are measured.")
@click.option("--seconds", type=click.FloatRange(1, 86_400), default=60, show_default=True, help="Of each load.")
@click.option("--folder", type=DIRECTORY, help="Keep the checkpoints that load makes here, and take those there.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed asks the same.")
@click.option("--predict", type=click.Choice(["rtx5090"]), help="Also say what another card would do, as a prediction.")
@click.option("--quick", is_flag=True, help="Fewer shapes and repeats: does everything run?")
@click.option("--check-only", is_flag=True, help="Compile and check the kernels without timing them.")
@click.option("--json", "json_path", type=FILE, help="Write everything that was measured to this file.")
@click.option("--check", is_flag=True, help="Exit with 1 when a kernel is wrong, a part fails or a target is missed.")
@engine_options
def gpu(
    parts: tuple[str, ...],
    areas: tuple[str, ...],
    geometry: str,
    seconds: float,
    folder: Path | None,
    seed: int,
    predict: str | None,
    quick: bool,
    check_only: bool,
    json_path: Path | None,
    check: bool,
    engine_options: EngineOptions,
) -> int:
    """Measure this machine's CUDA card: every kernel against float64 and its floor, rounds, prompts, pictures.

    Weights are random in the geometry of a real model, drawn on the card: speed does not depend on their values. The
    parts load, memory, gap, serve and soak load a whole engine (--model, or such weights), on a processor too.
    """
    from ignis_desktop.bench.gpu.kernels import AREAS
    from ignis_desktop.bench.gpu.predict import predict as predictions
    from ignis_desktop.bench.gpu.predict import predict_table
    from ignis_desktop.bench.gpu.run import ENGINE_PARTS, Wanted, missed, run_gpu
    from ignis_desktop.bench.machine import machine_line
    from ignis_desktop.bench.report import write_json

    unknown = [area for area in areas if area not in AREAS]
    if unknown:
        raise click.UsageError(f"--only {unknown[0]} is no area: give one of {', '.join(AREAS)}.")
    line = ProgressLine()

    def show(text: str) -> None:
        line.clear()
        click.echo(text)

    wanted = Wanted(
        parts,
        areas,
        geometry=geometry,
        quick=quick,
        timed=not check_only,
        engine=engine_options,
        seconds=seconds,
        folder=folder,
        seed=seed,
    )
    began = time.monotonic()

    def say(text: str) -> None:
        line.show(text, 0, None)
        if not line.visible and text.partition(":")[0] in ENGINE_PARTS:  # these take minutes
            click.echo(f"{time.monotonic() - began:6.1f} s  {text}", err=True)

    def save(result: dict[str, Any]) -> None:
        if json_path is not None:
            write_json(json_path, result)

    try:
        result = run_gpu(wanted, say=say, show=show, save=save)
    finally:
        line.clear()
    if predict is not None:
        result["predicted"] = {predict: predictions(result, predict)}
        click.echo(predict_table(result["predicted"][predict], predict))
    click.echo(machine_line(result["machine"]))
    save(result)
    return FAULT if check and missed(result) else 0
