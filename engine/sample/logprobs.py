"""Log probabilities of tokens, as the model gives them: before penalties, temperature and cuts."""

from __future__ import annotations

from collections.abc import Sequence

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
    normaliser = logits.logsumexp(-1, keepdim=True)
    own = (logits.gather(1, torch.tensor(ids, device=logits.device)[:, None]) - normaliser)[:, 0].tolist()
    width = min(max(tops), logits.shape[1])
    if width == 0:
        return [TokenLogprob(token, logprob) for token, logprob in zip(ids, own, strict=True)]
    values, best = Ranking(logits).top(torch.arange(len(ids), device=logits.device), width)
    ranked = zip(best.tolist(), (values - normaliser).tolist(), strict=True)
    return [
        TokenLogprob(token, logprob, tuple(zip(names[:top], likely[:top], strict=True)))
        for token, logprob, top, (names, likely) in zip(ids, own, tops, ranked, strict=True)
    ]
