"""A question about a state as a prompt with labels.

A text goes into the system block, so that every question about it, today's and tomorrow's, begins alike; a state with
pictures goes into the user's turn, where templates take pictures. Options are lettered, one a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.answers.decide.labels import labels, words
from engine.answers.decide.questions import PLACE_DIGITS, Choice, Multi, Number, Place, Question
from engine.loader import Loaded
from engine.messages import Prompt

State = str | Sequence[Mapping[str, Any]]
"""A text, or content parts as ``Engine.chat_prompt`` takes them."""


@dataclass(frozen=True)
class Reading:
    """One pass of a question: what each label stands for is ``order``."""

    question: Question
    prompt: Prompt
    tokens: tuple[int, ...]
    """Labels' token ids."""
    order: tuple[int, ...]
    """The option of each label; for one option of a Multi, (its index,) with the labels yes and no."""


class Prompts:
    """Makes the prompts of all questions over one state."""

    def __init__(self, loaded: Loaded, state: State) -> None:
        self._loaded = loaded
        self._state = state
        self._yes_no = words(loaded.tokenizer, "Yes", "No")

    def readings(self, question: Question) -> list[Reading]:
        """What has to be read for a question, first passes only."""
        if isinstance(question, Multi):
            asked = [f"{question.instructions}\nDoes this hold: {text}?" for text in question.texts]
            return [self._judged(question, text, (index,)) for index, text in enumerate(asked)]
        if isinstance(question, Choice):
            return [self.lettered(question, question.texts, tuple(range(len(question.texts))))]
        if isinstance(question, Number | Place):
            return [self.digit(question, ())]
        if question.true is None or question.false is None:
            return [self._judged(question, question.instructions, (0, 1))]
        return [self.lettered(question, (question.true, question.false), (0, 1))]

    def reversed(self, reading: Reading, texts: Sequence[str]) -> Reading:
        """The same options the other way round."""
        return self.lettered(reading.question, texts, reading.order[::-1])

    def lettered(self, question: Question, texts: Sequence[str], order: tuple[int, ...]) -> Reading:
        named = labels(self._loaded.tokenizer, len(order))
        listed = "\n".join(f"{label}. {texts[option]}" for (label, _), option in zip(named, order, strict=True))
        body = f"{question.instructions}\n{listed}\nAnswer with the letter only."
        return Reading(question, self._prompt(body), tuple(token for _, token in named), order)

    def digit(self, question: Number | Place, chosen: Sequence[int]) -> Reading:
        """The next digit behind those chosen."""
        encode = self._loaded.tokenizer.encode
        tokens = tuple(encode(str(digit))[-1] for digit in range(10))
        if isinstance(question, Place):
            keys = ", ".join(f'"{name}"' for name in question.names)
            asked = f"Answer with {{{keys}}} as JSON, each from 000 (left, top) to 999 (right, bottom)."
            written = {
                place * PLACE_DIGITS: f'{"," if place else "{"}"{name}":' for place, name in enumerate(question.names)
            }
        else:
            what = "a decimal number from 0 to 1" if question.fraction else "a whole number"
            asked = f"Answer with {what} of {question.digits} digits and nothing else."
            written = {0: "0."} if question.fraction else {}
        prompt = self._prompt(f"{question.instructions}\n{asked}")
        ids = list(prompt.ids)
        for place in range(len(chosen) + 1):
            ids += encode(written[place]) if place in written else []
            ids += [tokens[digit] for digit in chosen[place : place + 1]]
        return Reading(question, replace(prompt, ids=tuple(ids)), tokens, tuple(range(10)))

    def _judged(self, question: Question, text: str, order: tuple[int, ...]) -> Reading:
        if self._yes_no is not None:
            return Reading(question, self._prompt(f"{text}\nAnswer yes or no."), self._yes_no, order)
        return replace(self.lettered(replace(question, instructions=text), ("yes", "no"), (0, 1)), order=order)

    def _prompt(self, body: str) -> Prompt:
        messages: list[dict[str, Any]]
        if isinstance(self._state, str):
            messages = [{"role": "system", "content": self._state}, {"role": "user", "content": body}]
        else:
            messages = [{"role": "user", "content": [*self._state, {"type": "text", "text": f"\n{body}"}]}]
        thinks = self._loaded.info.thinking
        prompt = self._loaded.chat_prompt(messages, enable_thinking=False if thinks else None)
        # Nothing follows an answer that is not written, so the start of the answer is no place to branch off.
        return replace(prompt, marks=prompt.marks[:-1] if isinstance(self._state, str) else ())


def shared(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The prompts with a mark where they part, if they share more than a mark of theirs says."""
    if len(prompts) < 2:
        return list(prompts)
    first = prompts[0].ids
    common = min(_common(first, prompt.ids) for prompt in prompts[1:])
    known = prompts[0].marks[0] if prompts[0].marks else 0
    # Questions that begin alike part later than the state's end; the state's end is what other requests share.
    mark = known if 0 < known <= common else common
    return [replace(prompt, marks=(mark,) if 0 < mark < len(prompt.ids) else ()) for prompt in prompts]


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
