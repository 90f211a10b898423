"""Training: continue an int8 checkpoint for a given wall-clock time on any number of GPUs (or, tiny, on a CPU).

    python -m assets.ember.recipe.train --data DATA --resume start.int8.safetensors --teacher DATA/teacher.gguf \\
        --seconds 1200 --out RUN

Several GPUs of one machine: ``torchrun --nproc-per-node N -m …``. Each step takes one pointing batch a rank and one
batch of lines, text, choices or replies. One GPU takes these in turn; of several, neighbours take neighbouring ones, so
that with two every step sees lines and one of the others. On a GPU every pass is a CUDA graph. Learning rates follow
the clock: a short warm-up, a plateau, then a cosine to nearly zero. The last part runs on weights rounded to the
shipped precision.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from . import forms, fuse, objectives
from .checkpoint import load_int8, save_int8
from .data import Data, Sizes, examples, loaders
from .model import Ember
from .optim import Optimiser
from .replay import Batch, Pass, Passes
from .teacher import Teacher

CYCLE = ("line", "text", "line", "choice", "reply", "line", "text", "line", "choice", "text", "line", "reply")
MATCHED_LAYERS = {3: 6, 7: 14, 11: 21, 14: 27}
"""Student layer -> the teacher layer it was initialised from, outputs matched lightly."""
WEIGHTS = {"point": 1.0, "text": 3.0, "line": 1.0, "choice": 0.5, "reply": 0.3}
"""The teacher's gradient is a tenth of a readout's at the same weight."""


@dataclass
class Ranks:
    """Who this process is. ``share`` sends a float from rank 0 to all, over the CPU."""

    rank: int
    world: int
    device: torch.device

    @classmethod
    def join(cls, device: str | None) -> Ranks:
        world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
        kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
        if world > 1:
            dist.init_process_group("cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo")
        if kind == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        return cls(
            rank, world, torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)
        )

    def share(self, value: float) -> float:
        if self.world == 1:
            return value
        box = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(box, 0)
        return box.item()

    def average(self, flat: Tensor) -> None:
        if self.world > 1:
            dist.all_reduce(flat)
            flat.div_(self.world)


def schedule(done: float, step: int, warm: int, plateau: float) -> float:
    """Learning-rate multiplier at ``done`` (0–1 of the wall-clock budget)."""
    if done <= plateau:
        fall = 1.0
    else:
        fall = max(0.02, 0.5 * (1 + math.cos(math.pi * (done - plateau) / (1 - plateau))))
    return min(1.0, (step + 1) / warm) * fall


def shape_of(kind: str, batch: Batch) -> tuple:
    """What a captured pass is known by: the kind of the batch and the sizes of its tensors."""
    return kind, *(tuple(t.shape) for t in batch.values())


class Log:
    """Running means of one rank, printed and appended to its ``logN.jsonl``. ``waited`` is seconds spent waiting for
    loaders, ``held`` for the GPU."""

    def __init__(self, path: Path, rank: int) -> None:
        self.path, self.rank = path, rank
        self.sums: dict[str, list] = defaultdict(list)

    def add(self, metrics: dict[str, Tensor]) -> None:
        for name, value in metrics.items():
            self.sums[name].append(value.detach().float())

    def write(self, **fields: float) -> None:
        row = {
            "rank": self.rank,
            **fields,
            **{name: round(torch.stack(v).nanmean().item(), 4) for name, v in self.sums.items()},
        }
        self.sums.clear()
        print(json.dumps(row), flush=True)
        with open(self.path, "a") as file:
            file.write(json.dumps(row) + "\n")


def train(args: argparse.Namespace, teacher: Teacher | None = None) -> Path:
    """Run to the end of the budget; returns the path of the last checkpoint. ``teacher`` stands in for
    ``args.teacher``."""
    data = Data.load(args.data)
    sizes = Sizes.tiny() if args.dry_run else Sizes.full()
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    batches = loaders(
        data, sizes, args.packed_share, args.seed * 64 + rank, tuple(args.workers)
    )  # forks before CUDA starts
    stream = data.text(args.seed * 64 + rank) if args.teacher or teacher else None
    ready = {name: next(found) for name, found in batches.items()}
    ranks = Ranks.join("cpu" if args.dry_run else None)
    device, out = ranks.device, args.out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    if device.type == "cuda":
        for line in forms.choose(device, data.shape):
            print(f"rank {rank}: {line}", flush=True)
        if not args.eager:
            fuse.enable()

    model = Ember(data.shape)
    if args.resume:
        model.load_state_dict(load_int8(args.resume))
    model.to(device)
    optimiser = Optimiser(model, {"text": args.rate_text, "vision": args.rate_vision}, dtype)
    if args.teacher:
        teacher = Teacher.from_gguf(args.teacher, device, dtype)
    matched = {
        s: t for s, t in MATCHED_LAYERS.items() if teacher and s < len(data.shape.layer_types) and t < teacher.depth
    }
    cycle = [kind for kind in CYCLE if teacher or kind != "text"]
    log = Log(out / f"log{rank}.jsonl", rank)
    last = out / "last.int8.safetensors"

    passes = Passes(device, capture=not args.eager)

    def step_of(kind: str, skipped: int = 0) -> Pass:
        """Forward and backward of one batch of a kind."""

        def run(batch: Batch) -> dict[str, Tensor]:
            if kind == "point":
                loss, metrics = objectives.pointing(model, data.words, batch)
            elif kind == "line":
                loss, metrics = objectives.retrieval(model, data.words, batch)
            elif kind == "choice":
                loss, metrics = objectives.choosing(model, batch)
            elif kind == "reply":
                loss, metrics = objectives.replying(model, batch)
            else:
                loss, metrics = objectives.distilling(model, teacher, batch["ids"], skipped, matched)
            (WEIGHTS[kind] * loss).backward()
            return metrics

        return run

    def text_batch() -> tuple[tuple, Batch]:
        ids, skipped = stream.batch(*sizes.text)
        batch = torch.from_numpy(ids)
        return ("text", ids.shape, skipped), {"ids": batch.pin_memory() if device.type == "cuda" else batch}

    shapes: dict = {}
    if passes.capture:
        for (kind, _), arrays in examples(data, sizes).items():  # buckets of the same shapes share a graph
            batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
            shapes[shape_of(kind, batch)] = step_of(kind), batch
        while stream and len([key for key in shapes if key[0] == "text"]) < stream.shapes:
            key, batch = text_batch()
            shapes[key] = step_of("text", key[2]), batch
    passes.prepare(shapes, lambda text: print(f"rank {rank}: {text}", flush=True))
    optimiser.grads.zero_()

    def take(kind: str) -> tuple[tuple, Batch]:
        nonlocal waited
        if kind == "text":
            return text_batch()
        asked = time.monotonic()
        _, batch = ready.pop(kind, None) or next(batches[kind])
        waited += time.monotonic() - asked
        return shape_of(kind, batch), batch

    def run(kind: str) -> None:
        key, batch = take(kind)
        log.add(passes.run(key, step_of(kind, key[2] if kind == "text" else 0), batch))

    begun = time.monotonic()
    step, saved, told, waited, held = 0, begun, begun, 0.0, 0.0
    ahead: deque[torch.cuda.Event] = deque()
    while True:
        done = ranks.share((time.monotonic() - begun) / args.seconds)
        if done >= 1 or (args.steps and step >= args.steps):
            break
        optimiser.rounded = done >= args.round_from
        run("point")
        run(cycle[(step + rank) % len(cycle)])
        ranks.average(optimiser.grads)
        norms = optimiser.step(schedule(done, step, args.warm, args.plateau))
        log.add({f"norm_{domain}": norm for domain, norm in norms.items()})
        step += 1
        if world > 1 and step % 500 == 0:
            dist.broadcast(optimiser.master, 0)
        if device.type == "cuda":  # at most two steps ahead of the GPU
            ahead.append(torch.cuda.Event())
            ahead[-1].record()
            if len(ahead) > 2:
                asked = time.monotonic()
                ahead.popleft().synchronize()
                held += time.monotonic() - asked
        now = time.monotonic()
        if step in (1, 5, 20) or now - told > 15:
            log.write(
                step=step,
                seconds=round(now - begun, 1),
                done=round(done, 3),
                waited=round(waited, 1),
                held=round(held, 1),
            )
            told = now
        if rank == 0 and now - saved > args.save_every:
            save_int8(optimiser.state(), last)
            saved = time.monotonic()
    log.write(step=step, seconds=round(time.monotonic() - begun, 1), done=1.0, waited=round(waited, 1))
    if rank == 0:
        save_int8(optimiser.state(), last)
        (out / "finished").write_text(str(step))
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
    return last


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="data folder (see data.py)")
    parser.add_argument("--resume", type=Path, help="int8 checkpoint to continue from; without it weights are random")
    parser.add_argument("--teacher", type=Path, help="GGUF of the text teacher; without it text is left out")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps as well (0: no limit)")
    parser.add_argument(
        "--seed", type=int, default=1, help="another seed for every run, or it sees the same screens again"
    )
    parser.add_argument("--rate-text", type=float, default=5e-4)
    parser.add_argument("--rate-vision", type=float, default=1.2e-3)
    parser.add_argument("--warm", type=int, default=60, help="steps of warm-up")
    parser.add_argument("--plateau", type=float, default=0.45, help="share of the budget at the peak rate")
    parser.add_argument(
        "--round-from", type=float, default=0.7, help="share of the budget after which weights are rounded"
    )
    parser.add_argument(
        "--packed-share", type=float, default=0.35, help="share of views from packed screens when there are any"
    )
    parser.add_argument("--save-every", type=float, default=200, help="seconds between checkpoints")
    parser.add_argument(
        "--workers",
        type=int,
        nargs=4,
        default=(10, 1, 1, 1),
        help="loader processes for points, lines, choices, replies",
    )
    parser.add_argument("--eager", action="store_true", help="neither compile nor capture graphs")
    parser.add_argument("--dry-run", action="store_true", help="tiny batches on the CPU")
    return parser.parse_args(argv)


if __name__ == "__main__":
    train(parse())
