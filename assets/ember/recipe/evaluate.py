"""Fixed held-out sets, every question asked as if alone, as the product asks it; prints one table and writes JSON.

    python -m assets.ember.recipe.evaluate --data DATA --checkpoint ember.int8.safetensors --out result.json [--shipped]

Sets: real screenshots (``--real``), packed held-out screens (``shards/*.tar`` with split "heldout"), drawn ones of
unseen words and icons, real logs (``--logs``), made logs, records, pairs and prose of unseen questions and texts,
labelled choices of unseen texts, the teacher's text, and a few prompts to read. ``--shipped`` rounds the weights to the
shipped precision first.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from . import decide, lines, pointing
from .chats import SYSTEM
from .checkpoint import load_int8
from .data import Data
from .heldout import drawn_screens, made_lines, packed_screens, real_logs, real_screens
from .model import Ember
from .objectives import click, inside, line_mass, line_scores, point_scores
from .pointing import Screen, fit, view
from .quantise import shipped_state
from .shape import Words
from .teacher import Teacher

SETS = ("points", "lines", "choices", "text", "chat")


class Tally:
    """Shares of right answers by name."""

    def __init__(self) -> None:
        self.right: dict[str, int] = defaultdict(int)
        self.all: dict[str, int] = defaultdict(int)

    def add(self, name: str, right: bool) -> None:
        self.right[name] += bool(right)
        self.all[name] += 1

    def shares(self) -> dict[str, dict[str, float]]:
        return {name: {"share": round(self.right[name] / n, 4), "n": n} for name, n in sorted(self.all.items())}


def ask_points(model: Ember, words: Words, pixels: np.ndarray, questions: list[str]) -> tuple[Tensor, Tensor, Tensor]:
    """x, y in the picture's pixels and the probability of nothing, each [questions]; every question stands alone after
    the picture. ``pixels`` has sides of whole cells."""
    device, cell = model.text.embed_tokens.weight.device, model.shape.cell
    height, width = pixels.shape[:2]
    tails = [[words.newline, *words.encode(question)[:60], words.point] for question in questions]
    longest = max(map(len, tails))
    ids = torch.tensor([tail + [0] * (longest - len(tail)) for tail in tails], device=device)
    at = torch.tensor([len(tail) - 1 for tail in tails], device=device)
    batch = {"images": torch.from_numpy(pixels.copy())[None].to(device), "ids": ids[None], "at": at[None]}
    scores, _ = point_scores(model, words, batch)
    x, y, nothing = click(scores, width, height, cell)
    return x[0].float().cpu(), y[0].float().cpu(), nothing[0].float().cpu()


def second_look(
    model: Ember, words: Words, screen: Screen, question: str, x: float, y: float
) -> tuple[float, float, float]:
    """The click refined on an enlarged crop around (x, y), in the screen's own pixels, with the crop's probability of
    nothing. The crop spans 40 % of each side, or 320 pixels if that is more, and is enlarged at most three times."""
    width, height = screen.size
    w, h = min(width, max(320, round(0.4 * width))), min(height, max(320, round(0.4 * height)))
    x0, y0 = round(min(max(0, x - w / 2), width - w)), round(min(max(0, y - h / 2), height - h))
    zoom = min(3.0, (1000 * 32 * 32 / (w * h)) ** 0.5)
    size = fit(round(w * zoom), round(h * zoom))
    crop = view(screen, (x0, y0, x0 + w, y0 + h), *size)
    cx, cy, nothing = ask_points(model, words, crop.pixels, [question])
    return x0 + cx.item() * w / size[0], y0 + cy.item() * h / size[1], nothing.item()


def _screen_size(width: int, height: int) -> str:
    return "above 1080p" if width * height > 1920 * 1088 else "up to 1080p"


Asked = list[tuple[str, tuple | None, str, str]]
"""(question, box or None when absent, kind, by)."""


def as_written(screen: Screen) -> Asked:
    """Every element once by each way of asking, with the questions as they were written."""
    asked: Asked = []
    for item in screen.items:
        kind = "bare icon" if item.get("bare") else item["kind"]
        box = None if item["box"] is None else tuple(item["box"])
        asked += [(query["q"], box, kind, by) for by, query in {q["by"]: q for q in reversed(item["queries"])}.items()]
    return asked


def sampled(screens: list[Screen], seed: int, each: int) -> list[Asked]:
    """Up to ``each`` questions a screen, worded as in training, some of them about other screens' elements."""
    rng = random.Random(seed)
    found = []
    for index, screen in enumerate(screens):
        others = [item for other in screens[index - 3 : index] or screens[-3:] for item in other.items]
        found.append(pointing.questions(rng, screen, others, each))
    return found


@torch.no_grad()
def evaluate_points(model: Ember, words: Words, screens: list[Screen], questions: list[Asked], zoomed: int) -> dict:
    """Hits by way of asking, kind and screen size; refusals of absent elements; a second look for ``zoomed`` questions
    of each screen, beside the first look's answer on the same ones."""
    tally, refused = Tally(), Tally()
    for screen, asked in zip(screens, questions, strict=True):
        if not asked:
            continue
        width, height = screen.size
        size = fit(width, height)
        shown = view(screen, (0, 0, width, height), *size, least=0)
        x, y, nothing = ask_points(model, words, shown.pixels, [q for q, *_ in asked])
        looks = 0
        for i, (question, box, kind, by) in enumerate(asked):
            px, py = x[i].item() * width / size[0], y[i].item() * height / size[1]
            if box is None:
                refused.add("absent refused", nothing[i].item() > 0.5)
                continue
            refused.add("present refused", nothing[i].item() > 0.5)
            target = torch.tensor(box)
            hit = bool(inside(torch.tensor(px), torch.tensor(py), target))
            tally.add("inside and not refused", hit and nothing[i].item() <= 0.5)
            for name in ("all", f"by {by}", f"kind {kind}", _screen_size(width, height)):
                tally.add(name, hit)
            if looks < zoomed:
                looks += 1
                zx, zy, none = second_look(model, words, screen, question, px, py)
                again = bool(inside(torch.tensor(zx), torch.tensor(zy), target)) if none < 0.5 else hit
                tally.add("first look, same questions", hit)
                tally.add("with a second look", again)
    return {**tally.shares(), **refused.shares()}


@torch.no_grad()
def evaluate_lines(model: Ember, words: Words, documents: list[dict], limit: int = 8192) -> dict:
    """First and in-five shares by document name, and refusals (p(nothing) above ½) of what no line answers and of what
    one does; then how many of the former are refused above the bound that refuses a tenth of the latter. An answer is a
    line, a list of lines any of which is right, or None."""
    device, tally = model.text.embed_tokens.weight.device, Tally()
    nothing: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for doc in documents:
        name = doc["name"]
        ends = np.cumsum([len(ids) for ids in words.encode_many([f"{line}\n" for line in doc["lines"]])]) + len(
            words.user
        )
        kept = int(np.searchsorted(ends, limit, "right"))
        firsts = [(q, a[0] if isinstance(a, list) else a, a) for q, a in doc["questions"]]
        firsts = [(q, first, a) for q, first, a in firsts if first is None or first < kept]
        for start in range(0, len(firsts), lines.QUESTIONS):
            asked = firsts[start : start + lines.QUESTIONS]
            document = lines.Document(doc["lines"][:kept], [(question, first) for question, first, _ in asked])
            arrays = lines.collate([document], words, int(ends[kept - 1]))
            batch = {key: torch.from_numpy(value).to(device) for key, value in arrays.items()}
            scores, line_of = line_scores(model, words, batch)
            mass = line_mass(scores, line_of, kept)[0].cpu()
            for m, (_, _, answer) in zip(mass, asked, strict=False):
                nothing[name][answer is None].append(m[0].item())
                if answer is None:
                    tally.add(f"{name}: absent refused", m[0].item() > 0.5)
                else:
                    best = (m[1:].topk(min(5, len(m) - 1)).indices).tolist()
                    right = set(answer if isinstance(answer, list) else [answer])
                    tally.add(f"{name}: first", best[0] in right)
                    tally.add(f"{name}: in five", bool(right.intersection(best)))
                    tally.add(f"{name}: present refused", m[0].item() > 0.5)
    for name, (present, absent) in nothing.items():
        if present and absent:
            bound = float(np.quantile(present, 0.9))
            for p in absent:
                tally.add(f"{name}: absent refused above {bound:.3f}", p > bound)
    return tally.shares()


@torch.no_grad()
def evaluate_choices(model: Ember, data: Data, count: int, seed: int = 5) -> dict:
    """Share right among the offered labels, by maker; and how often two option orders agree."""
    device, words, rng, tally = model.text.embed_tokens.weight.device, data.words, random.Random(seed), Tally()
    letters = torch.tensor([words.encode(c)[0] for c in decide.LETTERS], device=device)
    for maker, _ in decide.MAKERS:
        done = 0
        while done < count:
            choice = maker(rng, data.material, True)
            if choice is None or choice.answer < 0 or len(choice.options) > len(decide.LETTERS):
                continue
            done += 1
            picks = []
            for order in (list(range(len(choice.options))), list(range(len(choice.options)))[::-1]):
                listed = "\n".join(f"{decide.LETTERS[i]}. {choice.options[j]}" for i, j in enumerate(order))
                system = f"<|im_start|>system\n{choice.evidence}<|im_end|>\n" if choice.evidence else ""
                body = f"{choice.question}\n{listed}\nAnswer with the letter only."
                text = f"{system}<|im_start|>user\n{body}<|im_end|>\n<|im_start|>assistant\n"
                ids = torch.tensor([words.encode(text)[:4096]], device=device)
                final = model.text(model.embed(ids)).final
                logits = (final[0, -1] @ model.text.embed_tokens.weight.T).float()[letters[: len(order)]]
                picks.append(order[logits.argmax().item()])
                tally.add("all", picks[-1] == choice.answer)
                tally.add(maker.__name__, picks[-1] == choice.answer)
            tally.add("both orders agree", picks[0] == picks[1])
    return tally.shares()


@torch.no_grad()
def evaluate_text(model: Ember, teacher: Teacher, documents: np.ndarray, windows: int, length: int = 1024) -> dict:
    """KL to the teacher and both perplexities on held-out documents."""
    device, kl, ours, theirs, count = model.text.embed_tokens.weight.device, 0.0, 0.0, 0.0, 0
    for start in range(0, min(len(documents) - length, windows * length), length):
        ids = torch.from_numpy(documents[start : start + length].astype(np.int64))[None].to(device)
        goal, _ = teacher.hidden(ids)
        t = (goal[0] @ teacher.embedding.T).float().log_softmax(-1)
        final = model.text(model.embed(ids)).final[0]
        s = (final @ model.text.embed_tokens.weight[: t.shape[-1]].T).float().log_softmax(-1)
        kl += (t.exp() * (t - s)).sum().item()
        ours += F.nll_loss(s[:-1], ids[0, 1:], reduction="sum").item()
        theirs += F.nll_loss(t[:-1], ids[0, 1:], reduction="sum").item()
        count += length
    return {
        "kl": round(kl / count, 4),
        "perplexity": round(math.exp(ours / count), 2),
        "teacher": round(math.exp(theirs / count), 2),
    }


@torch.no_grad()
def read_replies(model: Ember, words: Words, prompts: Sequence[str], most: int) -> list[str]:
    """Greedy answers of at most ``most`` tokens, for reading. Recomputes all rows for each token."""
    device = model.text.embed_tokens.weight.device
    rows = [words.encode(f"{SYSTEM}<|im_start|>user\n{p}<|im_end|>\n<|im_start|>assistant\n") for p in prompts]
    begins, going = [len(row) for row in rows], set(range(len(rows)))
    for _ in range(most):
        if not going:
            break
        asked = sorted(going)
        width = max(len(rows[i]) for i in asked)
        ids = torch.tensor([rows[i] + [0] * (width - len(rows[i])) for i in asked], device=device)
        last = torch.tensor([len(rows[i]) - 1 for i in asked], device=device)
        final = model.text(model.embed(ids)).final[torch.arange(len(asked), device=device), last]
        for i, token in zip(asked, (final @ model.text.embed_tokens.weight.T).argmax(-1).tolist(), strict=True):
            rows[i].append(token)
            if token == words.end:
                going.remove(i)
    return [words.tokenizer.decode(row[begin:]) for row, begin in zip(rows, begins, strict=True)]


PROMPTS = tuple(Path(__file__).with_name("prompts.txt").read_text().splitlines())
"""Prompts whose answers are read; none is taught by ``written/replies``."""


def evaluate(args: argparse.Namespace, teacher: Teacher | None = None) -> dict:
    data = Data.load(args.data, held_out=True)
    device = torch.device(args.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    state = load_int8(args.checkpoint)
    model = Ember(data.shape)
    model.load_state_dict(shipped_state(state) if args.shipped else state)
    model.to(device, dtype).eval()
    if args.teacher:
        teacher = Teacher.from_gguf(args.teacher, device, dtype)
    result: dict = {"checkpoint": args.checkpoint.name, "shipped precision": args.shipped}
    for name, found in _sets(args, data, model, teacher):
        result[name] = found
        args.out.write_text(json.dumps(result, indent=1))  # a CPU takes an hour for all: what is there is kept
        print(table({name: found}), flush=True)
    return result


def _sets(args: argparse.Namespace, data: Data, model: Ember, teacher: Teacher | None) -> Iterator[tuple[str, dict]]:
    """The results asked for, one after the other."""
    if "points" in args.sets:
        if real := real_screens(args.real):
            yield "real", evaluate_points(model, data.words, real, list(map(as_written, real)), args.zoomed)
        if args.screens and (packed := packed_screens(data, args.screens)):
            yield "rendered", evaluate_points(model, data.words, packed, sampled(packed, 1, 20), args.zoomed)
        if args.screens and (drawn := drawn_screens(data, max(1, args.screens // 10))):
            yield "drawn", evaluate_points(model, data.words, drawn, sampled(drawn, 2, 20), args.zoomed)
    if "lines" in args.sets:
        documents = [*real_logs(args.logs, data.words), *made_lines(data, args.documents)]
        yield "lines", evaluate_lines(model, data.words, documents)
    if "choices" in args.sets:
        yield "choices", evaluate_choices(model, data, args.choices)
    if "text" in args.sets and teacher and data.documents is not None:
        yield "text", evaluate_text(model, teacher, data.documents, args.windows)
    if "chat" in args.sets:
        prompts = PROMPTS[: args.prompts]
        yield "chat", dict(zip(prompts, read_replies(model, data.words, prompts, args.tokens), strict=True))


def table(result: dict) -> str:
    """One line a figure: set, name, share and count."""
    shown_lines = []
    for group, rows in result.items():
        if isinstance(rows, dict):
            for name, row in rows.items():
                shown = f"{100 * row['share']:5.1f} %  ({row['n']})" if isinstance(row, dict) else str(row)
                shown_lines.append(f"{group:14s} {name:42s} {shown}")
    return "\n".join(shown_lines)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--shipped", action="store_true", help="round the weights to the shipped precision first")
    parser.add_argument(
        "--screens", type=int, default=120, help="packed screens at most; a tenth as many drawn ones a size"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="what to measure")
    parser.add_argument("--documents", type=int, default=12, help="made documents of each kind")
    parser.add_argument("--real", type=Path, help="folder of real screenshots with screens.json")
    parser.add_argument("--logs", type=Path, help="folder of real logs with questions.json")
    parser.add_argument("--zoomed", type=int, default=6, help="questions of each screen that get a second look")
    parser.add_argument("--choices", type=int, default=60, help="questions of each kind of choice")
    parser.add_argument("--prompts", type=int, default=len(PROMPTS), help="prompts whose answers are printed")
    parser.add_argument("--tokens", type=int, default=80, help="tokens of an answer at most")
    parser.add_argument("--windows", type=int, default=60, help="text windows of 1,024 tokens")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


if __name__ == "__main__":
    evaluate(parse())
