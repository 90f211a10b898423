"""Reading a prompt: one chunk of tokens, or one piece of a picture, at a time."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor

from engine.messages import GenerateRequest, ImageInput, TokenLogprob
from engine.model.decoder import Readout, Run
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


class Prefill:
    """Advances sequences through their prompts."""

    def __init__(self, network: Network, chunk: int, vision_cache: VisionCache) -> None:
        self._network = network
        self._chunk = chunk
        self._cache = vision_cache

    def step(self, sequence: Sequence) -> tuple[int, Tensor | None, Readout | None]:
        """Do one bounded piece of work for ``sequence``.

        Returns:
            (prompt tokens read, the last column's residual [1, hidden] when the prompt is all read, what was read of
            attention then).
        """
        start = sequence.read
        stop = min(start + self._chunk, len(sequence.prompt))
        for picture in sequence.job.pictures:
            needed = picture.start < stop and picture.start + picture.count > start
            if needed and picture.index not in sequence.embedded:
                self._encode(sequence, picture)
                return 0, None, None
        x = self._embed(sequence, start, stop)
        run = Run(sequence.lane, 0, stop - start, sequence.context, sequence.pages)
        readout = None
        if stop == len(sequence.prompt) and sequence.job.span is not None:
            readout = Readout(0, sequence.job.span)
        hidden = self._network.decoder.forward(
            x,
            sequence.positions[:, start:stop].to(self._network.device),
            [run],
            layers=sequence.job.layers,
            readouts=[readout] if readout else [],
        )
        sequence.context += stop - start
        self._score_prompt(sequence, hidden, start, stop)
        if stop < len(sequence.prompt):
            return stop - start, None, None
        sequence.embedded.clear()
        return stop - start, hidden[-1:], readout

    def _embed(self, sequence: Sequence, start: int, stop: int) -> Tensor:
        device = self._network.device
        x = self._network.decoder.embed(torch.tensor(sequence.prompt[start:stop], device=device))
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

    def _score_prompt(self, sequence: Sequence, hidden: Tensor, start: int, stop: int) -> None:
        request = sequence.request
        if not isinstance(request, GenerateRequest) or request.sampling.prompt_logprobs is None:
            return
        scores: list[TokenLogprob | None] = sequence.prompt_logprobs
        if start == 0:
            scores.append(None)
        following = sequence.prompt[start + 1 : stop + 1]
        for first in range(0, len(following), _SCORED_ROWS):
            ids = following[first : first + _SCORED_ROWS]
            logits = self._network.decoder.logits(hidden[first : first + len(ids)])
            scores.extend(token_logprobs(logits, ids, [request.sampling.prompt_logprobs] * len(ids)))
