"""Reading prompts: one chunk of tokens, perhaps of several short prompts, or one piece of a picture at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as Many
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.messages import GenerateRequest, ImageInput, TokenLogprob
from engine.model.decoder import Decoder, Readout, Run
from engine.model.network import Network
from engine.sample.logprobs import token_logprobs
from engine.schedule.job import Picture, Sequence

_SCORED_ROWS = 64
"""Prompt positions scored at once: bounds the [rows, vocabulary] buffer."""


class VisionCache:
    """Image tokens by content, so that a picture in a growing conversation is encoded once. Least recently used
    pictures go when ``limit`` bytes are reached."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[bytes, Tensor] = OrderedDict()
        self._bytes = 0

    def get(self, image: ImageInput) -> Tensor | None:
        found = self._entries.get(image.digest)
        if found is not None:
            self._entries.move_to_end(image.digest)
        return found

    def put(self, image: ImageInput, tokens: Tensor) -> None:
        if image.digest in self._entries or tokens.nbytes > self.limit:
            return
        self._entries[image.digest] = tokens
        self._bytes += tokens.nbytes
        while self._bytes > self.limit:
            _, dropped = self._entries.popitem(last=False)
            self._bytes -= dropped.nbytes


@dataclass(frozen=True)
class Piece:
    """Prompt tokens ``[start, stop)`` of one sequence, read in one chunk."""

    sequence: Sequence
    start: int
    stop: int

    @property
    def last(self) -> bool:
        """The prompt is all read after it."""
        return self.stop == len(self.sequence.prompt)


@dataclass(frozen=True)
class Part:
    """What came of a piece."""

    piece: Piece
    last: Tensor
    """[1, hidden], the residual of its last column."""
    readout: Readout | None


class Prefill:
    """Advances sequences through their prompts."""

    def __init__(self, network: Network, chunk: int, vision_cache: VisionCache) -> None:
        self._network = network
        self._chunk = chunk
        self._cache = vision_cache

    def warm(self) -> None:
        """Read nonsense of every size that kernels are made for, with slots, pages and pool that nobody has yet."""
        network = self._network
        if isinstance(network.decoder, Decoder):
            return
        most = max(2, min(self._chunk, network.kv.rows_in_all))
        for length in sorted(size for size in {2, 9, 17, 33, 65, 129, most} if size <= most):
            pages = range(-(-length // network.kv.page_size))
            one = [Run(0, 0, length, 0, pages)]
            two = [Run(0, 0, 1, 0, pages), Run(1, 1, length - 1, 0, pages)]
            for runs in [one, two] if len(network.state) > 1 else [one]:
                x = network.decoder.embed(torch.zeros(length, dtype=torch.int64, device=network.device))
                positions = torch.arange(length, device=network.device).expand(3, -1)
                hidden = network.decoder.forward(x, positions, runs)
                network.decoder.logits(hidden[-_SCORED_ROWS:])
        for slot in range(len(network.state)):
            network.state.clear(slot)

    def encode(self, sequence: Sequence) -> bool:
        """Do one bounded piece of work on a picture that the sequence's next tokens need; False when none is left."""
        start, stop = self._bounds(sequence)
        for picture in sequence.job.pictures:
            needed = picture.start < stop and picture.start + picture.count > start
            if needed and picture.index not in sequence.embedded:
                self._encode(sequence, picture)
                return True
        return False

    def pack(self, sequences: Many[Sequence]) -> list[Piece]:
        """What one chunk reads: the next piece of the first sequence, and whole pieces of those after it that fit.

        A piece ends at the chunk's size or at a mark, whichever comes first, whoever shares the chunk: so a prompt is
        cut at the same places whenever it is read.
        """
        pieces: list[Piece] = []
        left = self._chunk
        for sequence in sequences:
            start, stop = self._bounds(sequence)
            alike = not pieces or sequence.job.layers == pieces[0].sequence.job.layers
            if stop - start <= left and alike and (not pieces or not self._pictures_missing(sequence, start, stop)):
                pieces.append(Piece(sequence, start, stop))
                left -= stop - start
        return pieces

    def run(self, pieces: Many[Piece]) -> list[Part]:
        """Read the pieces in one pass; their pictures have been encoded."""
        decoder, device = self._network.decoder, self._network.device
        runs: list[Run] = []
        readouts: list[Readout | None] = []
        at = 0
        for number, piece in enumerate(pieces):
            sequence, length = piece.sequence, piece.stop - piece.start
            runs.append(Run(sequence.lane, at, length, sequence.context, sequence.pages))
            span = sequence.job.span if piece.last else None
            readouts.append(None if span is None else Readout(number, span))
            at += length
        hidden = decoder.forward(
            _joined([self._embed(piece) for piece in pieces], 0),
            _joined([p.sequence.positions[:, p.start : p.stop] for p in pieces], 1).to(device),
            runs,
            layers=pieces[0].sequence.job.layers,
            readouts=[readout for readout in readouts if readout is not None],
        )
        parts = []
        for piece, run, readout in zip(pieces, runs, readouts, strict=True):
            columns = hidden[run.start : run.start + run.length]
            piece.sequence.context += run.length
            self._score_prompt(piece, columns)
            if piece.last:
                piece.sequence.embedded.clear()
            parts.append(Part(piece, columns[-1:], readout))
        return parts

    def _bounds(self, sequence: Sequence) -> tuple[int, int]:
        start = sequence.read
        stop = min(start + self._chunk, len(sequence.prompt))
        return start, next((mark for mark in sequence.job.marks if start < mark < stop), stop)

    def _pictures_missing(self, sequence: Sequence, start: int, stop: int) -> bool:
        return any(
            picture.start < stop and picture.start + picture.count > start and picture.index not in sequence.embedded
            for picture in sequence.job.pictures
        )

    def _embed(self, piece: Piece) -> Tensor:
        sequence, start, stop = piece.sequence, piece.start, piece.stop
        ids = torch.tensor(sequence.prompt[start:stop], device=self._network.device)
        x = self._network.decoder.embed(ids)
        for picture in sequence.job.pictures:
            first, last = max(picture.start, start), min(picture.start + picture.count, stop)
            if first < last:
                tokens = sequence.embedded[picture.index]
                x[first - start : last - start] = tokens[first - picture.start : last - picture.start]
        return x

    def _encode(self, sequence: Sequence, picture: Picture) -> None:
        image = sequence.request.prompt.images[picture.index]
        tokens = self._cache.get(image)
        if tokens is None:
            if sequence.encoding is None:
                assert self._network.vision is not None, "requests with pictures are refused without a vision tower"
                sequence.encoding = self._network.vision.steps(image.rgb)
            tokens = next(sequence.encoding)
            if tokens is None:
                return
            self._cache.put(image, tokens)
            sequence.encoding = None
        sequence.embedded[picture.index] = tokens

    def _score_prompt(self, piece: Piece, hidden: Tensor) -> None:
        request = piece.sequence.request
        if not isinstance(request, GenerateRequest) or request.sampling.prompt_logprobs is None:
            return
        scores: list[TokenLogprob | None] = piece.sequence.prompt_logprobs
        if piece.start == 0:
            scores.append(None)
        following = piece.sequence.prompt[piece.start + 1 : piece.stop + 1]
        for first in range(0, len(following), _SCORED_ROWS):
            ids = following[first : first + _SCORED_ROWS]
            logits = self._network.decoder.logits(hidden[first : first + len(ids)])
            scores.extend(token_logprobs(logits, ids, [request.sampling.prompt_logprobs] * len(ids)))


def _joined(tensors: list[Tensor], dim: int) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, dim)
