"""Conversations with a written answer: small talk, simple facts, meanings of words, sums, and calls of functions.

The prompts are the product's chat template's, so a function is offered and called just as the program does it. Only the
answer's tokens are learned.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2.sandbox
import numpy as np

from .events import events
from .retrieval import Material
from .shape import Words
from .values import Values
from .wordings import is_clause
from .written import rows

ANSWER = 80
"""Tokens of an answer; longer ones are left out."""
ASKED_ELSEWHERE = frozenset(((7, "+", 5), (9, "×", 6), (20, "-", 8)))
"""Sums of ``prompts.txt``, which are not taught."""
Message = dict[str, Any]
Talk = tuple[list[Message], list[dict[str, Any]]]
"""Messages that end with the assistant's, and the functions offered."""


@lru_cache
def _template() -> jinja2.Template:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment()
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string((Path(__file__).parents[1] / "chat_template.jinja").read_text())


@lru_cache
def _written() -> list[tuple[list[str], list[str]]]:
    """(questions, answers) of ``written/replies``, one entry a fact."""
    found = []
    for row in rows("replies"):
        if not row.startswith("!"):
            asked, said = row.split(" | ")
            found.append((asked.split("; "), [text.replace("\\n", "\n") for text in _answers(said)]))
            continue
        _, asked, said, table = row.split(" | ")
        for a, b in (entry.split("=", 1) for entry in table.split("; ")):
            found.append(
                ([q.format(a=a) for q in asked.split("; ")], [text.format(a=a, b=b) for text in said.split("; ")])
            )
    return found


def _answers(said: str) -> list[str]:
    """Alternatives begin with a capital letter; a semicolon before a small one belongs to the sentence."""
    parts: list[str] = []
    for part in said.split("; "):
        if parts and not part[:1].isupper():
            parts[-1] += f"; {part}"
        else:
            parts.append(part)
    return parts


def _talk(question: str, answer: str) -> list[Message]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def small_talk(rng: random.Random, material: Material) -> Talk:
    messages: list[Message] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        asked, said = rng.choice(_written())
        messages += _talk(rng.choice(asked), rng.choice(said))
    return messages, []


def sums(rng: random.Random, material: Material) -> Talk:
    a, b = rng.randint(0, 30), rng.randint(0, 20)
    sign, word, result = rng.choice((("+", "plus", a + b), ("-", "minus", a - b), ("×", "times", a * b)))
    if sign == "×":
        a, b = a % 11, b % 11
        result = a * b
    if (a, sign, b) in ASKED_ELSEWHERE:
        return sums(rng, material)
    question = rng.choice(
        ("How much is {a} {w} {b}?", "What is {a} {s} {b}?", "{a} {s} {b} =", "Work out {a} {w} {b}.")
    )
    question = question.format(a=a, b=b, w=word, s=sign)
    return _talk(question, rng.choice((f"{a} {word} {b} is {result}.", f"{result}", f"{a} {sign} {b} = {result}"))), []


def meanings(rng: random.Random, material: Material) -> Talk | None:
    known = material.thesaurus.meanings
    if not known:
        return None
    word = rng.choice(material.common or list(known))
    if len(known.get(word, ())) != 1:  # with several meanings nobody knows which one is asked for
        return None
    question = rng.choice(("What does {w} mean?", 'What does "{w}" mean?', "Explain the word {w}.", "Define {w}."))
    meaning = known[word][0].rstrip(".")
    answer = rng.choice((f"{word.capitalize()}: {meaning}.", f'"{word}" means: {meaning}.'))
    return _talk(question.format(w=word), answer), []


def explained(rng: random.Random, material: Material) -> Talk | None:
    """What a line of a log says, in the words of a question about it."""
    event = rng.choice(events())
    slots = Values(rng, material.words).draw()
    clauses = [q for q in event.questions[:-1] if is_clause(q)]
    if not clauses:
        return None
    said = rng.choice(clauses).format(**slots)
    question = rng.choice(("What does this log line mean? {e}", "Explain this message: {e}", "What happened here? {e}"))
    return _talk(question.format(e=event.message.format(**slots)), f"{said[:1].upper()}{said[1:]}."), []


@dataclass(frozen=True)
class Function:
    """One line of ``calls.txt``; ``parameters`` are (name, JSON type, what it is, where its values come from)."""

    name: str
    does: str
    parameters: tuple[tuple[str, str, str, str], ...]
    requests: tuple[str, ...]

    def specification(self) -> dict[str, Any]:
        """As a request's ``tools`` name it."""
        properties = {name: {"type": kind, "description": said} for name, kind, said, _ in self.parameters}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return {"type": "function", "function": {"name": self.name, "description": self.does, "parameters": schema}}


@lru_cache
def _functions() -> tuple[Function, ...]:
    found = []
    for row in Path(__file__).with_name("calls.txt").read_text().splitlines():
        if row and not row.startswith("#"):
            name, does, parameters, requests = row.split(" | ")
            split = tuple(tuple(parameter.split(":")) for parameter in parameters.split(", "))
            found.append(Function(name, does, split, tuple(requests.split("; "))))
    return tuple(found)


_CITIES = ("Berlin", "Paris", "Rome", "Oslo", "Tokyo", "Cairo", "Lima", "Boston", "Madrid", "Vienna", "Sydney", "Delhi")
_COMMANDS = ("ls -l", "df -h", "git status", "make test", "uname -a", "uptime", "free -h", "docker ps", "pip list")
_PHRASES = (
    "weekly report",
    "lunch with Anna",
    "Save",
    "team meeting",
    "shopping list",
    "new prices",
    "Sign in",
    "summer holiday",
    "OK",
    "project plan",
    "room booking",
    "Next",
    "train to Bern",
)
_CAST: dict[str, Callable[[str], Any]] = {"integer": int, "number": float, "string": str}


def calls(rng: random.Random, material: Material) -> Talk:
    """A request that one of the offered functions answers, sometimes with its result told; or none of them fits."""
    offered = rng.sample(_functions(), rng.randint(1, 4))
    tools = [function.specification() for function in offered]
    if rng.random() < 0.2:
        messages, _ = small_talk(rng, material)
        return messages[-2:], tools
    function, drawn = rng.choice(offered), Values(rng, material.words).draw()
    drawn |= {
        "city": rng.choice(_CITIES),
        "command": rng.choice(_COMMANDS),
        "phrase": rng.choice((*_PHRASES, f"{drawn['word']} {drawn['word2']}")),
        "url": f"https://{drawn['host']}/{drawn['word']}",
        "currency": rng.choice(("dollars", "yen", "pounds", "francs")),
        "unit": rng.choice(("percent", "minutes")),
    }
    said = {name: str(drawn[source]) for name, _, _, source in function.parameters}
    arguments = {name: _CAST[kind](said[name]) for name, kind, _, _ in function.parameters}
    call = {"function": {"name": function.name, "arguments": arguments}}
    messages: list[Message] = [
        {"role": "user", "content": rng.choice(function.requests).format(**said)},
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]
    if rng.random() < 0.25:
        result = rng.choice(("done", "ok", f"error: {drawn['word']} not found", drawn["n"], drawn["word2"]))
        told = "That did not work: " + result[7:] if result.startswith("error: ") else f"The result is: {result}."
        told = "Done." if result in ("done", "ok") else told
        messages += [{"role": "tool", "content": result}, {"role": "assistant", "content": told}]
    return messages, tools


MAKERS: tuple[tuple[Callable[[random.Random, Material], Talk | None], float], ...] = (
    (small_talk, 4.0),
    (sums, 1.0),
    (meanings, 2.0),
    (explained, 1.0),
    (calls, 4.0),
)


def rendered(talk: Talk) -> tuple[str, str]:
    """(prompt up to the last assistant's turn, that turn with its end token)."""
    messages, tools = talk
    prompt = _template().render(messages=messages[:-1], tools=tools, add_generation_prompt=True)
    whole = _template().render(messages=messages, tools=tools, add_generation_prompt=False)
    return prompt, whole[len(prompt) :].removesuffix("\n")


def batch(rng: random.Random, material: Material, words: Words, rows: int, length: int) -> dict[str, np.ndarray]:
    """ids [rows, length]; at and token [rows, ANSWER]: positions behind which a token of the answer comes, and that
    token, -100 behind the answer's end."""
    out = {
        "ids": np.zeros((rows, length), np.int64),
        "at": np.zeros((rows, ANSWER), np.int64),
        "token": np.full((rows, ANSWER), -100, np.int64),
    }
    filled = 0
    while filled < rows:
        maker = rng.choices([m for m, _ in MAKERS], [w for _, w in MAKERS])[0]
        talk = maker(rng, material)
        if talk is None:
            continue
        prompt, answer = map(words.encode, rendered(talk))
        if len(prompt) + len(answer) <= length and len(answer) <= ANSWER:
            out["ids"][filled, : len(prompt) + len(answer)] = [*prompt, *answer]
            out["at"][filled, : len(answer)] = np.arange(len(answer)) + len(prompt) - 1
            out["token"][filled, : len(answer)] = answer
            filled += 1
    return out
