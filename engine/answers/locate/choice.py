"""The last choice among a few candidates by labels, for models whose labels know better than their heads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.answers.asking import Terms
from engine.answers.decide import Choice, decide
from engine.answers.locate.corpus import Corpus
from engine.answers.locate.reader import Reader
from engine.answers.locate.search import Found
from engine.messages import EngineError

if TYPE_CHECKING:
    from engine.engine import Engine

CANDIDATES = 16
_NONE = "none of these"
_STATE = "Which of the listed lines answers the question?"


def chosen_by_labels(engine: Engine, corpus: Corpus, query: str, found: Found, terms: Terms, reader: Reader) -> Found:
    """``found`` with its first candidates in the order of a labelled choice, one of whose options is none of them.

    Raises:
        EngineError: the labels could not be read, the deadline passed, ...
    """
    first = found.units[:CANDIDATES]
    texts = (*(corpus.shown(unit).strip() or "(blank)" for unit in first), _NONE)
    names = tuple(map(str, range(len(texts))))
    decision = decide(
        engine,
        _STATE,
        [Choice("line", query, names, texts)],
        request_class=terms.request_class,
        client=terms.client,
        deadline=terms.deadline,
        cancelled=terms.cancelled,
    )
    answer = decision.answers["line"]
    if isinstance(answer, EngineError):
        raise answer
    reader.input_tokens += decision.input_tokens
    reader.cached_tokens += decision.cached_tokens
    shares = answer.probabilities[:-1]
    order = sorted(range(len(first)), key=lambda i: -shares[i])
    rest = found.units[CANDIDATES:]
    return replace(
        found,
        units=[*(first[i] for i in order), *rest],
        shares=[*(float(shares[i]) for i in order), *(0.0 for _ in rest)],
        nothing=float(answer.probabilities[-1]),
    )
