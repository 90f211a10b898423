"""Log probabilities of tokens, as the model gives them: before penalties, temperature and cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from engine.messages import TokenLogprob
from engine.sample.ranking import Ranking


def token_logprobs(logits: Tensor, ids: Sequence[int], tops: Sequence[int]) -> list[TokenLogprob]:
    """Natural log probability of one token a row and the most likely ones beside it.

    Args:
        logits: float32 [N, V].
        ids: N tokens.
        tops: how many of the most likely tokens to name, for each row.
    """
    if not ids:
        return []
    table = _table(logits, torch.tensor(ids, device=logits.device), max(tops))
    return [_entry(*row) for row in zip(ids, table.tolist(), tops, strict=True)]


class DrawnLogprobs:
    """The same of tokens that are being drawn, worked out on the device behind the draw: what is queued next may write
    over the logits, and who reads them here does not wait for it."""

    def __init__(self, logits: Tensor, tokens: Tensor, tops: Mapping[int, int]) -> None:
        """
        Args:
            logits: float32 [B, V].
            tokens: int64 [B] beside them.
            tops: how many of the most likely tokens to name, for rows that ask, in ascending order.
        """
        self._tops = tops
        if not tops:
            return
        if len(tops) < len(logits):
            # Rows are taken by views: indices would have to be brought to the device, and that would be waited for.
            logits, tokens = (torch.stack([x[row] for row in tops]) for x in (logits, tokens))
        table = _table(logits, tokens, max(tops.values()))
        self._found = torch.empty(table.shape, dtype=table.dtype, pin_memory=table.is_cuda)
        self._found.copy_(table, non_blocking=True)
        self._done = torch.cuda.Event() if table.is_cuda else None
        if self._done is not None:
            self._done.record()

    def read(self, ids: Sequence[int]) -> list[TokenLogprob | None]:
        """For each row that asks; ``ids`` are the B tokens, −1 where a row has none."""
        entries: list[TokenLogprob | None] = [None] * len(ids)
        if not self._tops:
            return entries
        if self._done is not None:
            self._done.synchronize()
        for (row, top), found in zip(self._tops.items(), self._found.tolist(), strict=True):
            if ids[row] >= 0:
                entries[row] = _entry(ids[row], found, top)
        return entries


def _table(logits: Tensor, tokens: Tensor, most: int) -> Tensor:
    """float64 [N, 1 + 2 · min(most, V)]: the log probability of each row's token, those of the most likely ones, and
    their ids. Waits for nothing."""
    normaliser = logits.logsumexp(-1, keepdim=True)
    own = logits.gather(1, tokens[:, None]) - normaliser
    width = min(most, logits.shape[1])
    if width == 0:
        return own.double()
    values, best = Ranking(logits).top(torch.arange(len(logits), device=logits.device), width)
    return torch.cat([own.double(), (values - normaliser).double(), best.double()], dim=1)


def _entry(token: int, found: Sequence[float], top: int) -> TokenLogprob:
    """Of one row of the table."""
    own, *rest = found
    width = len(rest) // 2
    return TokenLogprob(token, own, tuple(zip(map(int, rest[width:][:top]), rest[:width][:top], strict=True)))
