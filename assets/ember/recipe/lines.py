"""Batches of evidence lines with questions, in shapes that depend on the bucket alone.

The prompt is the product's: ``<|im_start|>user\\n{line}\\n…{line}\\n\\n{question}<|line|>``; many questions share the
computation of their lines, each as if it stood alone (``branches.py``). The readout compares the query at ``<|line|>``
with the keys of the evidence and with one key more, the newline of ``user\\n`` just before it: the *nothing* slot.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from .retrieval import Document, Material, document
from .shape import Words

QUESTIONS = 16
TOKENS = 40
"""Of a question with its leading newline and its ``<|line|>``; longer ones are cut."""
NONE = 0.08
"""Largest expected share of questions that no line answers: with more of them, real lines are refused."""


@dataclass(frozen=True)
class Bucket:
    """Documents of up to ``tokens`` tokens, ``rows`` of them a batch; share of batches."""

    tokens: int
    rows: int
    weight: float


BUCKETS = (Bucket(1024, 32, 1.5), Bucket(2048, 18, 2.0), Bucket(3072, 12, 2.0), Bucket(6144, 6, 0.8))
"""The product's windows are 3,072 tokens."""


def balanced(rng: random.Random, doc: Document) -> Document:
    """The questions in any order, some of those without an answer left out, so that they are about ``NONE`` of all."""
    absent = sum(answer is None for _, answer in doc.questions)
    present = len(doc.questions) - absent
    keep = min(1.0, NONE / (1 - NONE) * present / max(1, absent))
    kept = [pair for pair in doc.questions if pair[1] is not None or rng.random() < keep]
    return Document(doc.lines, rng.sample(kept, len(kept)))


def collate(documents: list[Document], words: Words, tokens: int) -> dict[str, np.ndarray]:
    """evidence [B, N] with ``length`` [B] real tokens (``user\\n`` included) and line_of [B, N], -1 outside lines; ids
    [B, Q, TOKENS] (newline, question, ``<|line|>``, padding) and at [B, Q], the index of its ``<|line|>``; answer [B,
    Q], a line or -1; asked [B, Q]. Lines that do not fit are dropped, and the questions about them."""
    rows = len(documents)
    out = {
        "evidence": np.zeros((rows, tokens), np.int64),
        "length": np.zeros(rows, np.int64),
        "line_of": np.full((rows, tokens), -1, np.int64),
        "ids": np.zeros((rows, QUESTIONS, TOKENS), np.int64),
        "at": np.zeros((rows, QUESTIONS), np.int64),
        "answer": np.full((rows, QUESTIONS), -1, np.int64),
        "asked": np.zeros((rows, QUESTIONS), bool),
    }
    for i, doc in enumerate(documents):
        end = len(words.user)
        out["evidence"][i, :end] = words.user
        kept = 0
        for ids in words.encode_many([f"{line}\n" for line in doc.lines]):
            if end + len(ids) > tokens:
                break
            out["evidence"][i, end : end + len(ids)] = ids
            out["line_of"][i, end : end + len(ids)] = kept
            end, kept = end + len(ids), kept + 1
        out["length"][i] = end
        pairs = [(q, a) for q, a in doc.questions if a is None or a < kept][:QUESTIONS]
        for j, (ids, (_, answer)) in enumerate(zip(words.encode_many([q for q, _ in pairs]), pairs, strict=True)):
            ids = [words.newline, *ids[: TOKENS - 2], words.line]
            out["ids"][i, j, : len(ids)] = ids
            out["at"][i, j], out["asked"][i, j] = len(ids) - 1, True
            out["answer"][i, j] = -1 if answer is None else answer
    return out


def batch(rng: random.Random, material: Material, words: Words, bucket: Bucket) -> dict[str, np.ndarray]:
    """``rows`` documents that fill most of the bucket."""
    documents = []
    while len(documents) < bucket.rows:
        count = max(5, int(bucket.tokens / rng.uniform(14, 40)))
        # More are asked for than are taken, since some are left out and some are about lines that do not fit.
        doc = balanced(rng, document(rng, count, material, wanted=QUESTIONS * 3 // 2))
        if doc.questions:
            documents.append(doc)
    return collate(documents, words, bucket.tokens)
