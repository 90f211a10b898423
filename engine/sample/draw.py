"""Drawing one token a row: temperature, then top-k, top-p and min-p as transformers cuts them.

What the cuts keep is always a prefix of the tokens in descending order (ties by id), so nothing is sorted beyond that
prefix, and one uniform number is looked up in the prefix's cumulative weights. Sums run in float64: a draw is then the
same whatever stands in the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.messages import SamplingParams
from engine.sample.ranking import Ranking

PREFIX = 128
"""Candidates looked at first when only top-p or min-p bounds them; more than that is rare."""


class Row(Protocol):
    """What a draw needs to know of a row."""

    @property
    def params(self) -> SamplingParams: ...
    @property
    def uniform(self) -> float:
        """The random number to look up, 0 ≤ u < 1."""


def draw(ranking: Ranking, best: Tensor, numbers: Sequence[int], rows: Sequence[Row]) -> list[int]:
    """One token for each of the rows numbered ``numbers``; their temperatures are above 0.

    ``best`` is [R], the largest logit of every row of the ranking, finite for the rows drawn.
    """
    vocabulary = ranking.x.shape[1]
    tokens = [-1] * len(rows)
    bounded = [n for n, row in enumerate(rows) if _first_width(row.params, vocabulary)]
    free = [n for n, row in enumerate(rows) if not _first_width(row.params, vocabulary)]
    if bounded:
        width = max(_first_width(rows[n].params, vocabulary) for n in bounded)
        chosen = [rows[n] for n in bounded]
        for n, token in zip(bounded, _prefix(ranking, best, [numbers[n] for n in bounded], chosen, width), strict=True):
            tokens[n] = token
    if free:
        for n, token in zip(
            free, _any(ranking, best, [numbers[n] for n in free], [rows[n] for n in free]), strict=True
        ):
            tokens[n] = token
    return tokens


def _top_k(params: SamplingParams, vocabulary: int) -> int:
    return params.top_k if 0 < params.top_k < vocabulary else vocabulary


def _first_width(params: SamplingParams, vocabulary: int) -> int:
    """How many candidates to look at first; 0 when nothing bounds them."""
    if _top_k(params, vocabulary) < vocabulary:
        return params.top_k
    return min(PREFIX, vocabulary) if params.top_p < 1.0 or params.min_p > 0.0 else 0


def _prefix(ranking: Ranking, best: Tensor, numbers: Sequence[int], rows: Sequence[Row], width: int) -> list[int]:
    """Rows bounded by top-k, top-p or min-p, from the ``width`` best of each."""
    vocabulary, device = ranking.x.shape[1], best.device
    limits = [_top_k(row.params, vocabulary) for row in rows]
    settings = [
        (row.params.temperature, row.params.top_p, row.params.min_p, limit, row.uniform)
        for row, limit in zip(rows, limits, strict=True)
    ]
    columns = torch.tensor(settings, dtype=torch.float64, device=device)[..., None].unbind(1)
    temperature, top_p, min_p, limit, u = columns
    index = torch.tensor(numbers, device=device)
    values, ids = ranking.top(index, width)
    rank = torch.arange(width, device=device)
    weights = ((values - values[:, :1]).double() / temperature).exp().masked_fill(rank >= limit, 0.0)
    total = weights.cumsum(-1)
    mass = total[:, -1:].clone()
    whole = [n for n, row in enumerate(rows) if row.params.top_p < 1.0 and limits[n] == vocabulary]
    if whole:
        mass[whole] = _weights(ranking, best, index[whole], temperature[whole]).sum(-1).double().sum(-1, keepdim=True)
    # A token stays while those before it fall short of top-p; the best one always does.
    kept = (rank < limit) & (weights >= min_p) & ((total - weights < top_p * mass) | (rank == 0))
    count = kept.sum(-1, keepdim=True)
    tokens: list[int] = ids.gather(1, _look_up(total, u, total.gather(1, count - 1)))[:, 0].tolist()
    # Where all candidates were kept, more may follow.
    cut = [n for n, kept_here in enumerate(count[:, 0].tolist()) if kept_here == width < limits[n]]
    if cut:
        wider = min(16 * width, vocabulary)
        again = _prefix(ranking, best, [numbers[n] for n in cut], [rows[n] for n in cut], wider)
        for n, token in zip(cut, again, strict=True):
            tokens[n] = token
    return tokens


def _any(ranking: Ranking, best: Tensor, numbers: Sequence[int], rows: Sequence[Row]) -> list[int]:
    """Rows that nothing bounds, looked up in the order of ids: first the block, then inside it."""
    settings = [(row.params.temperature, row.uniform) for row in rows]
    temperature, u = torch.tensor(settings, dtype=torch.float64, device=best.device)[..., None].unbind(1)
    weights = _weights(ranking, best, torch.tensor(numbers, device=best.device), temperature)
    blocks = weights.sum(-1).cumsum(-1, dtype=torch.float64)
    block = _look_up(blocks, u, blocks[:, -1:])
    size = weights.shape[-1]
    inside = weights.gather(1, block[..., None].expand(-1, -1, size))[:, 0].cumsum(-1, dtype=torch.float64)
    before = torch.where(block > 0, blocks.gather(1, (block - 1).clamp(min=0)), 0.0)
    share = (u * blocks[:, -1:] - before) / (blocks.gather(1, block) - before)
    tokens: list[int] = (block * size + _look_up(inside, share, inside[:, -1:]))[:, 0].tolist()
    return tokens


def _weights(ranking: Ranking, best: Tensor, index: Tensor, temperature: Tensor) -> Tensor:
    """e^((logit − best) / temperature) of whole rows: float32 [N, blocks, 64]."""
    return ((ranking.blocks[index] - best[index, None, None]) / temperature[..., None].float()).exp_()


def _look_up(total: Tensor, u: Tensor, end: Tensor) -> Tensor:
    """First place whose cumulative weight exceeds ``u · end``, never beyond the first that reaches ``end``.

    total: float64 [N, W], ascending; u, end: [N, 1]. Returns int64 [N, 1].
    """
    place = torch.searchsorted(total, (u * end).contiguous(), right=True)
    return torch.minimum(place, torch.searchsorted(total, end.contiguous()))
