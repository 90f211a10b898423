"""What Ember is trained on: pointing, finding lines, choosing, and its teacher's text. Each returns (loss, metrics)."""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from .branches import branch_scores
from .fuse import fused
from .model import Ember, image_positions
from .pointing import WAYS
from .shape import Words
from .teacher import Teacher

Batch = dict[str, Tensor]
Result = tuple[Tensor, dict[str, Tensor]]
MASKED = -1e4


@lru_cache(maxsize=32)
def _constant(ids: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(ids, device=device)


def point_scores(model: Ember, words: Words, batch: Batch) -> tuple[Tensor, Tensor]:
    """Readout of a pointing batch: ([B, Q, 1 + cells], image tokens [B, cells, hidden]); index 0 is the nothing
    slot."""
    images = batch["images"]
    rows, height, width, _ = images.shape
    cell = model.shape.cell
    tokens = model.vision(images)
    lead = _constant((*words.user, words.vision_start), images.device)
    tail = _constant((words.vision_end,), images.device)
    before, columns, lines = len(lead), width // cell, height // cell
    prefix = torch.cat(
        (model.embed(lead).expand(rows, -1, -1), tokens, model.embed(tail).expand(rows, -1, -1)),
        1,
    )
    positions = image_positions(before, lines, columns, 1, images.device)
    start = torch.full((rows,), before + max(columns, lines) + 1, device=images.device)
    branches = model.embed(batch["ids"])
    scores = branch_scores(model.text, prefix, positions[:, None], branches, batch["at"], before - 1, start=start)
    return scores[..., :-1], tokens


def point_target(box: Tensor, width: int, height: int, cell: int) -> Tensor:
    """Soft target over cells: points of the box's middle spread bilinearly, so that the expectation around the best
    cell lands inside. box [B, Q, 4] pixels -> [B, Q, cells], summing to 1."""

    def axis(low: Tensor, high: Tensor, size: int) -> Tensor:
        centres = torch.arange(size // cell, device=box.device) * cell + cell / 2
        inner = torch.linspace(0.3, 0.7, 5, device=box.device)
        points = (low[..., None] + (high - low)[..., None] * inner).clamp(centres[0], centres[-1])
        return (1 - (points[..., None] - centres).abs() / cell).clamp(min=0).mean(-2)

    target = axis(box[..., 1], box[..., 3], height)[..., :, None] * axis(box[..., 0], box[..., 2], width)[..., None, :]
    return target.flatten(-2) / target.sum((-2, -1))[..., None].clamp(min=1e-6)


def click(scores: Tensor, width: int, height: int, cell: int) -> tuple[Tensor, Tensor, Tensor]:
    """From a readout [B, Q, 1 + cells]: x, y in pixels (best cell, then the expectation over its 3×3 neighbourhood) and
    the probability that nothing is there, each [B, Q]."""
    columns, lines = width // cell, height // cell
    nothing = scores.softmax(-1)[..., 0]
    p = scores[..., 1:].softmax(-1)
    best = p.argmax(-1)
    row, column = best // columns, best % columns
    padded = F.pad(p.view(*p.shape[:2], lines, columns), (1, 1, 1, 1)).flatten(2)
    x, y, mass = torch.zeros_like(nothing), torch.zeros_like(nothing), torch.zeros_like(nothing)
    for dy in range(3):
        for dx in range(3):
            w = padded.gather(2, ((row + dy) * (columns + 2) + column + dx)[..., None])[..., 0]
            x = x + w * ((column + dx - 1) * cell + cell / 2)
            y = y + w * ((row + dy - 1) * cell + cell / 2)
            mass = mass + w
    return x / mass, y / mass, nothing


def inside(x: Tensor, y: Tensor, box: Tensor) -> Tensor:
    return (x >= box[..., 0]) & (x <= box[..., 2]) & (y >= box[..., 1]) & (y <= box[..., 3])


def _share(right: Tensor, of: Tensor) -> Tensor:
    """Share of ``right`` among ``of``; NaN where there is none."""
    return (right & of).sum() / of.sum()


def pointing(model: Ember, words: Words, batch: Batch, named: float = 0.3, sharpness: float = 12.0) -> Result:
    """Cross-entropy of the readout, and of the names of small elements from their image token by cosine similarity with
    the token embeddings."""
    scores, tokens = point_scores(model, words, batch)
    _, height, width, _ = batch["images"].shape
    asked, absent, cell = batch["asked"], batch["absent"], model.shape.cell
    target = F.pad(point_target(batch["box"], width, height, cell) * ~absent[..., None], (1, 0))
    target[..., 0] = absent.float()
    entropy = -(target * scores.log_softmax(-1)).sum(-1)
    point = (entropy * asked).sum() / asked.sum().clamp(min=1)
    at, token = batch["named"].unbind(1)
    table = F.normalize(model.text.embed_tokens.weight.detach().float(), dim=-1).to(tokens.dtype)
    seen = F.normalize(tokens.flatten(0, 1).index_select(0, at).float(), dim=-1).to(tokens.dtype)
    naming = F.cross_entropy((seen @ table.T).float() * sharpness, token, reduction="sum")
    naming = naming / (token >= 0).sum().clamp(min=1)
    with torch.no_grad():
        x, y, nothing = click(scores, width, height, cell)
        present, hit = asked & ~absent, inside(x, y, batch["box"])
        metrics = {
            "point": point.detach(),
            "name": naming.detach(),
            "hit": _share(hit, present),
            **{f"hit_{way}": _share(hit, present & (batch["by"] == i)) for i, way in enumerate(WAYS)},
            "refused": _share(nothing > 0.5, absent & asked),
            "missed": _share(nothing > 0.5, present),
        }
    return point + named * naming, metrics


def line_scores(model: Ember, words: Words, batch: Batch) -> tuple[Tensor, Tensor]:
    """Readout of a batch of lines (``lines.collate``): scores [B, Q, keys] and the line of each key [B, keys]; key 0 is
    the nothing slot (line -1), keys behind the evidence are masked."""
    slot, evidence = len(words.user) - 1, batch["evidence"]
    rows, tokens = evidence.shape
    positions = torch.arange(tokens, device=evidence.device).expand(3, rows, -1)
    ids = torch.cat((evidence.flatten(), batch["ids"].flatten()))
    prefix, branches = model.embed(ids).split((evidence.numel(), batch["ids"].numel()))
    scores = branch_scores(
        model.text,
        prefix.view(rows, tokens, -1),
        positions,
        branches.view(*batch["ids"].shape, -1),
        batch["at"],
        slot,
        batch["length"],
    )
    line_of = batch["line_of"][:, slot:]
    key = torch.arange(tokens - slot, device=evidence.device)
    scores = scores.masked_fill(((line_of < 0) & (key > 0))[:, None], MASKED)
    return scores, line_of


def line_mass(scores: Tensor, line_of: Tensor, lines: int) -> Tensor:
    """Softmax mass of the nothing slot (index 0) and of every line (1 + line): [B, Q, 1 + lines]."""
    mass = scores.new_zeros(*scores.shape[:2], lines + 1)
    return mass.scatter_add_(2, (line_of + 1).clamp(max=lines)[:, None].expand(scores.shape), scores.softmax(-1))


DOUBT = (0.05, 0.1)
"""Share of the target that goes to *nothing* where a line answers, and to the lines where none does: whether something
is found is not learned to certainty, because a question near to what is there may be answered by it after all."""


def retrieval(model: Ember, words: Words, batch: Batch) -> Result:
    """Cross-entropy of whether a line answers (with ``DOUBT``) and, where one does, of which: −log of the right one's
    share of the attention mass on lines."""
    scores, line_of = line_scores(model, words, batch)
    tokens = batch["evidence"].shape[1]
    answer, asked = batch["answer"], batch["asked"]
    present = answer >= 0
    right = (line_of[:, None, 1:] == answer[:, :, None]) & present[..., None]
    gained, lines, whole = (
        torch.logsumexp(part, -1) for part in (scores[..., 1:].masked_fill(~right, MASKED), scores[..., 1:], scores)
    )
    nothing = torch.where(present, DOUBT[0], 1 - DOUBT[1])
    found = nothing * (scores[..., 0] - whole) + (1 - nothing) * (lines - whole)
    loss = -((found + (gained - lines) * present) * asked).sum() / asked.sum().clamp(min=1)
    with torch.no_grad():
        mass = line_mass(scores, line_of, tokens // 4)
        refused = mass[..., 0] > 0.5
        metrics = {
            "line": loss.detach(),
            "found": _share(mass[..., 1:].argmax(-1) == answer, asked & present),
            "none": _share(refused, asked & ~present),
            "lost": _share(refused, asked & present),
        }
    return loss, metrics


def choice_logits(model: Ember, batch: Batch) -> Tensor:
    """Logits [B, vocab] at each prompt's last token."""
    final = model.text(model.embed(batch["ids"])).final
    assert final is not None
    rows = torch.arange(len(final), device=final.device)
    return (final[rows, batch["last"]] @ model.text.embed_tokens.weight.T).float()


def choosing(model: Ember, batch: Batch) -> Result:
    logits = choice_logits(model, batch)
    loss = F.cross_entropy(logits, batch["label"])
    return loss, {"choice": loss.detach(), "right": (logits.argmax(-1) == batch["label"]).float().mean()}


def replying(model: Ember, batch: Batch) -> Result:
    """Cross-entropy of the answers' tokens: ids [B, L]; behind positions at [B, A] comes token [B, A], or -100."""
    final = model.text(model.embed(batch["ids"])).final
    assert final is not None
    rows = torch.arange(len(final), device=final.device)[:, None]
    logits = (final[rows, batch["at"]] @ model.text.embed_tokens.weight.T).float().flatten(0, 1)
    token = batch["token"].flatten()
    loss = F.cross_entropy(logits, token)
    return loss, {"reply": loss.detach(), "said": _share(logits.argmax(-1) == token, token >= 0)}


@fused
def _divergence(ours: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
    """Σ KL(theirs ‖ ours) over rows of logits, and its gradient with respect to ours."""
    ours, theirs = ours.float().log_softmax(-1), theirs.float().log_softmax(-1)
    p = theirs.exp()
    return (p * (theirs - ours)).sum(), ours.exp() - p


class _HeadKL(torch.autograd.Function):
    """Mean KL(teacher ‖ student) over positions through both output heads, without keeping [N, vocab] tensors."""

    @staticmethod
    def forward(ctx, student: Tensor, head: Tensor, teacher: Tensor, teacher_head: Tensor) -> Tensor:
        vocab, count = teacher_head.shape[0], student.shape[0]
        grad = torch.empty_like(student)
        grad_head = torch.zeros(head.shape, dtype=torch.float32, device=head.device)
        total = student.new_zeros((), dtype=torch.float32)
        shared = head[:vocab]
        for start in range(0, count, 4096):
            h = student[start : start + 4096]
            here, g = _divergence(h @ shared.T, teacher[start : start + 4096] @ teacher_head.T)
            total += here
            g = g.to(h.dtype)
            grad[start : start + 4096] = g @ shared
            grad_head[:vocab] += (g.T @ h).float()
        ctx.save_for_backward(grad / count, (grad_head / count).to(head.dtype))
        return total / count

    @staticmethod
    def backward(ctx, upstream: Tensor):
        grad, grad_head = ctx.saved_tensors
        return grad * upstream.to(grad.dtype), grad_head * upstream.to(grad_head.dtype), None, None


def distilling(
    model: Ember, teacher: Teacher, ids: Tensor, skipped: int, layers: dict[int, int], hidden: float = 0.1
) -> Result:
    """KL to the teacher on ``ids`` [B, L]; the student reads them without their first ``skipped`` tokens. ``layers``
    maps student layers to teacher layers whose outputs are matched too (relative squared error, weight ``hidden``)."""
    theirs, kept = teacher.hidden(ids, frozenset(layers.values()))
    out = model.text(model.embed(ids[:, skipped:]), keep_layers=True)
    assert out.final is not None
    kl = _HeadKL.apply(
        out.final.flatten(0, 1), model.text.embed_tokens.weight, theirs[:, skipped:].flatten(0, 1), teacher.embedding
    )
    match = kl.new_zeros(())
    for ours, wanted in layers.items():
        goal = kept[wanted][:, skipped + 1 :].float()
        error = (out.layers[ours][:, 1:].float() - goal).square().mean(-1) / (goal.square().mean(-1) + 1e-3)
        match = match + error.mean() / len(layers)
    return kl + hidden * match, {"kl": kl.detach(), "hidden": match.detach()}
