"""Words as the model's own token embeddings, for telling which words are near each other.

Embeddings are what a model knows of words before it reads: "refused" lies near "denied", whatever layers make of it.
Their common direction says nothing of a word (it goes with how frequent it is), so that it is taken out.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch

from engine.checkpoint.catalogue import resolve_model
from engine.checkpoint.layout import TEXT_PREFIX
from engine.checkpoint.reader import open_checkpoint
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from engine.engine import Engine

Floats = npt.NDArray[np.float32]

PIECES = 4
"""Tokens of a word at most; what has more is no word that a model knows."""
MOST = 1 << 15
"""Words whose vectors are kept."""
_SAMPLE = 8
"""One in so many tokens tells the common direction."""


class WordVectors:
    """Vectors of words, made when they are first asked for. Thread-safe."""

    def __init__(self, embedding: npt.NDArray[np.float16], tokenizer: Tokenizer) -> None:
        """``embedding``: [tokens, width]."""
        self._embedding = embedding
        self._tokenizer = tokenizer
        sample = embedding[::_SAMPLE].astype(np.float32)
        self._mean = sample.mean(0)
        sample -= self._mean
        self._common = np.linalg.eigh(sample.T @ sample)[1][:, -1]
        self._known: dict[str, Floats] = {}
        self._lock = threading.Lock()

    def of(self, words: Sequence[str]) -> Floats:
        """float32 [words, width], each of length 1, or 0 for what is no word."""
        out = np.zeros((len(words), self._embedding.shape[1]), np.float32)
        with self._lock:
            if len(self._known) + len(words) > MOST:
                self._known.clear()
            for place, word in enumerate(words):
                vector = self._known.get(word)
                if vector is None:
                    vector = self._known[word] = self._made(word)
                out[place] = vector
        return out

    def _made(self, word: str) -> Floats:
        ids = self._tokenizer.encode(f" {word}")
        if len(ids) > PIECES:
            return np.zeros_like(self._mean)
        vector = self._embedding[ids].mean(0, dtype=np.float32) - self._mean
        vector -= (vector @ self._common) * self._common
        out: Floats = vector / max(1e-6, float(np.linalg.norm(vector)))
        return out


_MADE: WeakKeyDictionary[Engine, WordVectors] = WeakKeyDictionary()
_GUARD = threading.Lock()


def word_vectors(engine: Engine) -> WordVectors:
    """Those of the loaded model. The first call reads its embedding from the checkpoint.

    Raises:
        EngineError: the checkpoint is gone.
    """
    with _GUARD:
        made = _MADE.get(engine)
        if made is None:
            with open_checkpoint(resolve_model(engine.config.model).path) as checkpoint:
                embedding = checkpoint.tensor(f"{TEXT_PREFIX}embed_tokens.weight", torch.float16).numpy()
            made = _MADE[engine] = WordVectors(embedding, engine.tokenizer)
        return made
