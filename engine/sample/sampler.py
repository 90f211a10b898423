"""Sampling for all lanes of a round in one vectorised pass.

Order, as in transformers: repetition penalty over prompt and answer, presence and frequency penalties over the answer,
biases, masks, then temperature and cuts (``draw``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.messages import EngineError, SamplingParams, TokenLogprob
from engine.sample.card import GREEDY, MOST, CardSampler
from engine.sample.draw import draw
from engine.sample.guide import Guide
from engine.sample.lane import Lane, SavedLane
from engine.sample.logprobs import DrawnLogprobs
from engine.sample.masks import Masks
from engine.sample.ranking import Ranking
from engine.sample.spots import Spots


@dataclass(frozen=True)
class Sampled:
    """One token a row. A row in ``faults`` has no token: its id is −1 and its lane was not advanced."""

    ids: list[int]
    logprobs: list[TokenLogprob | None]
    """For rows whose lane asked for them."""
    faults: dict[int, EngineError]
    """Row → what is wrong with its logits."""


@dataclass(frozen=True)
class Draw:
    """Tokens that are being chosen: what :meth:`Sampler.finish` needs of :meth:`Sampler.start`."""

    logits: Tensor
    lanes: Sequence[int]
    tokens: Tensor
    """int64 [B] beside the logits: the token of each lane that is :meth:`Sampler.certain`, unless its row turns out
    faulty."""
    ids: list[int] | None
    """The same for all rows; None as long as they are on a card only."""
    faults: dict[int, EngineError]
    """Known so far, by row."""
    logprobs: DrawnLogprobs | None
    """None where a lane asks whose token is not certain: they are worked out once it is known."""


class Sampler:
    """Holds what penalties need to know of each lane; buffers are reserved once."""

    def __init__(self, lanes: int, vocabulary: int, device: torch.device | str, *, on_card: bool | None = None) -> None:
        """``on_card``: choose by the card's kernels; None does so on a card."""
        # Neutral values change no bit of a logit, so lanes without penalties may stand beside lanes with some.
        self._divisor = torch.ones(lanes, vocabulary, device=device)
        """Repetition penalty of what stands in a lane's prompt or answer, else 1."""
        self._reduction = torch.zeros(lanes, vocabulary, device=device)
        """Presence and frequency penalties less biases: what to take off each logit of a lane."""
        self._divisor_spots, self._reduction_spots = Spots(self._divisor), Spots(self._reduction)
        self._masks = Masks(lanes, vocabulary, device)
        self._never = torch.tensor(float("-inf"), device=device)
        self._lanes: dict[int, Lane] = {}
        on_card = torch.device(device).type == "cuda" if on_card is None else on_card
        self._card = CardSampler(self._divisor, self._reduction, self._masks.bits) if on_card else None

    @property
    def nbytes(self) -> int:
        return self._divisor.nbytes + self._reduction.nbytes + self._masks.nbytes

    def warm(self) -> None:
        """Have the card compile what choosing tokens takes."""
        if self._card is not None:
            logits = torch.zeros(1, self._divisor.shape[1], device=self._divisor.device)
            for params in (SamplingParams(temperature=0.0), SamplingParams(top_k=20), SamplingParams(top_p=0.9)):
                tokens = self._card.launch(logits, [0], [Lane(params, 0)], [False])
                self._card.collect(1)
            DrawnLogprobs(logits, tokens, {0: 1}).read([0])
        self._divisor_spots.write([(0, 0, 1.0)])
        self._reduction_spots.write([(0, 0, 0.0)])

    def begin(self, lane: int, params: SamplingParams, prompt_ids: Sequence[int], seed: int) -> None:
        """Start a request on a lane. ``params.seed`` is not looked at: ``seed`` is the one in force."""
        state = self._lanes[lane] = Lane(params, seed)
        self._reduction[lane] = 0.0
        if state.bias:
            biases = torch.tensor(list(state.bias.values()), device=self._reduction.device)
            self._reduction[lane, list(state.bias)] = -biases
        self._divisor[lane] = 1.0
        if state.repetition:
            ids = torch.tensor(prompt_ids, dtype=torch.long, device=self._divisor.device)
            self._divisor[lane, ids] = params.repetition_penalty

    def guide(self, lane: int, guide: Guide) -> None:
        """Hold the request that just began on a lane to something; its first mask is begun."""
        self._lanes[lane].guide = guide
        guide.start(self._masks.pool)

    def ready(self, lane: int, timeout: float | None = 0.0) -> bool:
        """Whether a lane's next token can be chosen now, or within ``timeout`` seconds (None: as long as it takes): its
        mask may still be in the making."""
        guide = self._lanes[lane].guide
        return guide is None or guide.ready(timeout)

    def certain(self, lane: int) -> bool:
        """Whether the token that a draw leaves beside the logits is final, and the logits are not looked at again: it
        is greedy, or among few enough that a card looks at them all."""
        params = self._lanes[lane].params
        return params.temperature < GREEDY or 0 < params.top_k <= min(MOST, self._divisor.shape[1] - 1)

    def end(self, lane: int) -> None:
        """Forget a lane's request."""
        self._lanes.pop(lane, None)

    def take_out(self, lane: int) -> SavedLane:
        """End a lane's request for a while; :meth:`put_back` goes on with it exactly where it stood."""
        state = self._lanes.pop(lane)
        return SavedLane(
            state,
            self._divisor[lane].to("cpu", copy=True) if state.repetition else None,
            self._reduction[lane].to("cpu", copy=True) if state.additive else None,
        )

    def put_back(self, lane: int, saved: SavedLane) -> None:
        self._lanes[lane] = saved.state
        self._divisor[lane] = 1.0
        self._reduction[lane] = 0.0
        if saved.divisor is not None:
            self._divisor[lane] = saved.divisor.to(self._divisor.device)
        if saved.reduction is not None:
            self._reduction[lane] = saved.reduction.to(self._reduction.device)

    def sample(self, logits: Tensor, lanes: Sequence[int], mask: Tensor | None = None) -> Sampled:
        """Choose one token for each row and count it: :meth:`start` and :meth:`finish` in one."""
        return self.finish(self.start(logits, lanes, mask))

    def start(self, logits: Tensor, lanes: Sequence[int], mask: Tensor | None = None) -> Draw:
        """Begin to choose one token for each row. Waits for the masks of lanes that are not :meth:`ready`. What was
        started is to be finished before anything else is.

        Args:
            logits: float32 [B, V]; not changed, and not to be changed before :meth:`finish` unless all lanes are
                :meth:`certain`.
            lanes: the lane of each row, each begun before and named once.
            mask: bool [B, V], the tokens that may be chosen besides what guides allow; None allows all.
        """
        states = [self._lanes[lane] for lane in lanes]
        if self._card is None or mask is not None:
            ids, faults = self._choose(logits, lanes, states, mask)
            tokens = torch.tensor(ids, device=logits.device)
            return Draw(logits, lanes, tokens, ids, faults, DrawnLogprobs(logits, tokens, _asked(states)))
        guides = {lane: state.guide for lane, state in zip(lanes, states, strict=True) if state.guide is not None}
        held, broken = self._masks.bring(guides) if guides else ([], {})
        tokens = self._card.launch(logits, lanes, states, [lane in held for lane in lanes])
        faults = {row: broken[lane] for row, lane in enumerate(lanes) if lane in broken}
        tops = _asked(states)
        certain = all(self.certain(lanes[row]) for row in tops)
        return Draw(logits, lanes, tokens, None, faults, DrawnLogprobs(logits, tokens, tops) if certain else None)

    def finish(self, draw: Draw) -> Sampled:
        """The tokens of a draw, counted. Waits for it."""
        states = [self._lanes[lane] for lane in draw.lanes]
        ids, faults = draw.ids, dict(draw.faults)
        if ids is None:
            assert self._card is not None
            ids = self._collect(self._card, draw, states, faults)
        logprobs = draw.logprobs
        if logprobs is None:
            logprobs = DrawnLogprobs(draw.logits, torch.tensor(ids, device=draw.logits.device), _asked(states))
        for row in faults:
            ids[row] = -1
        self._advance(ids, draw.lanes, states)
        return Sampled(ids, logprobs.read(ids), faults)

    def _choose(
        self, logits: Tensor, lanes: Sequence[int], states: Sequence[Lane], mask: Tensor | None
    ) -> tuple[list[int], dict[int, EngineError]]:
        """(a token for each row, what is wrong with a row)."""
        scores = self._penalised(logits, lanes, states)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        scores, broken = self._guided(scores, lanes, states)
        ranking = Ranking(scores)
        best, chosen = ranking.best()
        faults = {row: _fault(value) for row, value in enumerate(best.tolist()) if not abs(value) < float("inf")}
        faults |= broken
        ids = chosen.tolist()
        drawn = [row for row, state in enumerate(states) if row not in faults and state.params.temperature >= GREEDY]
        for row, token in zip(drawn, draw(ranking, best, drawn, [states[row] for row in drawn]), strict=True):
            ids[row] = token
        return ids, faults

    def _collect(
        self, card: CardSampler, draw: Draw, states: Sequence[Lane], faults: dict[int, EngineError]
    ) -> list[int]:
        """A token for each row of a draw that the card was given; rows that it leaves undecided are chosen here. Adds
        to ``faults`` what is wrong with a row."""
        logits, lanes = draw.logits, draw.lanes
        drawn = card.collect(len(lanes))
        for row, one in enumerate(drawn):
            if not abs(one.best) < float("inf"):
                faults.setdefault(row, _fault(one.best))
        ids = [one.token for one in drawn]
        rest = [row for row, one in enumerate(drawn) if not one.decided and row not in faults]
        if rest:
            assert not any(self.certain(lanes[row]) for row in rest), "these tokens may be in use already"
            again, wrong = self._choose(logits[rest], [lanes[row] for row in rest], [states[row] for row in rest], None)
            for place, row in enumerate(rest):
                ids[row] = again[place]
            faults |= {rest[place]: error for place, error in wrong.items()}
        return ids

    def _penalised(self, logits: Tensor, lanes: Sequence[int], states: Sequence[Lane]) -> Tensor:
        scores = logits
        if any(state.repetition for state in states):
            divisor = _rows(self._divisor, lanes)
            scores = logits.clamp(min=0.0).div_(divisor).addcmul_(logits.clamp(max=0.0), divisor)
        if any(state.additive for state in states):
            scores = scores - _rows(self._reduction, lanes)
        return scores

    def _guided(
        self, scores: Tensor, lanes: Sequence[int], states: Sequence[Lane]
    ) -> tuple[Tensor, dict[int, EngineError]]:
        """(scores with what guides do not allow at −∞, what went wrong by row)."""
        guides = {lane: state.guide for lane, state in zip(lanes, states, strict=True) if state.guide is not None}
        if not guides:
            return scores, {}
        row_of = {lane: row for row, lane in enumerate(lanes)}
        held, faults = self._masks.bring(guides)
        if held == list(lanes):
            scores = torch.where(self._masks.banned(held), self._never, scores)
        elif held:
            scores = scores.clone()
            for lane, banned in zip(held, self._masks.banned(held), strict=True):
                row = scores[row_of[lane]]
                torch.where(banned, self._never, row, out=row)
        return scores, {row_of[lane]: error for lane, error in faults.items()}

    def _advance(self, ids: Sequence[int], lanes: Sequence[int], states: Sequence[Lane]) -> None:
        reductions: list[tuple[int, int, float]] = []
        divisors: list[tuple[int, int, float]] = []
        for token, lane, state in zip(ids, lanes, states, strict=True):
            if token < 0:
                continue
            state.step += 1
            if state.guide is not None:
                state.guide.accept(token, self._masks.pool)
            if state.counted:
                state.counts[token] += 1
                penalty = state.params.presence_penalty + state.params.frequency_penalty * state.counts[token]
                reductions.append((lane, token, penalty - state.bias.get(token, 0.0)))
            if state.repetition:
                divisors.append((lane, token, state.params.repetition_penalty))
        self._reduction_spots.write(reductions)
        self._divisor_spots.write(divisors)


def _rows(buffer: Tensor, lanes: Sequence[int]) -> Tensor:
    """Rows of a per-lane buffer: a view when the lanes stand side by side."""
    first = lanes[0]
    if all(lane == first + row for row, lane in enumerate(lanes)):
        return buffer[first : first + len(lanes)]
    return buffer[list(lanes)]


def _fault(best: float) -> EngineError:
    if best == float("-inf"):
        return EngineError("No token may follow here: every logit is −∞; loosen the constraint on the answer.")
    what = "NaN" if best != best else "+∞"
    return EngineError(f"The model computed {what} logits; check the checkpoint with `ignis models verify`.")


def _asked(states: Sequence[Lane]) -> dict[int, int]:
    """How many of the most likely tokens to name, by row that asks for log probabilities."""
    return {row: top for row, state in enumerate(states) if (top := state.params.logprobs) is not None}
