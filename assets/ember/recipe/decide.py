"""Labelled choices: evidence in the system turn, a question and lettered options in the user turn, one letter as
answer.

The answer is read from the logits of the label tokens at the last prompt position, so training is cross-entropy of that
one token over the whole vocabulary. Options are shuffled, so no letter is favoured; some questions have no right option
but "none of these"; yes/no questions come lettered and as plain words.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .events import areas, events
from .logs import FORMATS, Line, log_document
from .meanings import meaning_document, meanings
from .retrieval import Material, around, document, pair_document, record_document
from .shape import Words
from .values import Values
from .wordings import is_asked
from .written import rows

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NONE = ("none of these", "none of the above", "nothing fits")
SEVERITY = {"info": "normal", "warn": "warning", "error": "failure"}


@dataclass
class Choice:
    """``answer`` is an index into ``options``, or -1 for none of them."""

    evidence: str
    question: str
    options: list[str]
    answer: int


@lru_cache
def examples() -> dict[str, tuple[str, dict[str, list[str]]]]:
    """task -> (question, label -> texts) from ``written/choices``."""
    tasks: dict[str, tuple[str, dict[str, list[str]]]] = {}
    for row in rows("choices"):
        task, question, label, texts = row.split(" | ")
        tasks.setdefault(task, (question, {}))[1][label] = [t.strip() for t in texts.split(";")]
    return tasks


def _pick(rng: random.Random, right: str, wrong: list[str], most: int) -> tuple[list[str], int]:
    """Up to ``most`` shuffled options with the right one among them, and its index."""
    wrong = [w for w in dict.fromkeys(wrong) if w != right]
    options = [right, *rng.sample(wrong, min(len(wrong), rng.randint(1, most - 1)))]
    rng.shuffle(options)
    return options, options.index(right)


def classify(rng: random.Random, material: Material, held_out: bool) -> Choice:
    task = rng.choice(list(examples()))
    question, labels = examples()[task]
    label = rng.choice(list(labels))
    text = labels[label][-1] if held_out else rng.choice(labels[label][:-1])
    options, answer = _pick(rng, label, list(labels), 8)
    return Choice(text, question, options, answer)


def event_area(rng: random.Random, material: Material, held_out: bool) -> Choice:
    event = rng.choice([e for e in events(held_out=held_out) if e.area in areas() and e.unseen == held_out])
    message = event.message.format(**Values(rng, material.words).draw())
    style = FORMATS[rng.choice(("none", "bare", "dmesg"))]
    text = style(Line(rng.randint(1_500_000_000, 1_800_000_000), 5, "host", "app", 77, event.level, message))
    if rng.random() < 0.4:
        question = rng.choice(
            ("How serious is this?", "What kind of event is this?", "Is this a normal event, a warning or a failure?")
        )
        options, answer = _pick(rng, SEVERITY[event.level], list(SEVERITY.values()), 4)
    else:
        question = rng.choice(
            ("What is this about?", "Which part is concerned?", "Which topic does this line belong to?")
        )
        options, answer = _pick(rng, areas()[event.area], list(areas().values()), 8)
    return Choice(text, question, options, answer)


def _stands_alone(question: str) -> bool:
    """Whether nothing should be put before a question: it is a whole one, or stands in a frame already."""
    return is_asked(question) or ": " in question


def pick_line(rng: random.Random, material: Material, held_out: bool) -> Choice | None:
    """The last step of locate: a question and a few original lines."""
    doc = document(rng, rng.randint(3, 12), material, wanted=1, held_out=held_out)
    if not doc.questions:
        return None
    question, answer = doc.questions[0]
    lines = doc.lines[:16]
    if answer is not None and answer >= len(lines):
        return None
    order = rng.sample(range(len(lines)), len(lines))
    question = rng.choice(
        ("Which line answers this? {}", "{}", "Pick the line that answers this. {}")
        if _stands_alone(question)
        else ("Which of these is meant: {}", "{}", "Pick the line for this: {}")
    ).format(question)
    return Choice("", question, [lines[i][:300] for i in order], -1 if answer is None else order.index(answer))


def meaning(rng: random.Random, material: Material, held_out: bool) -> Choice | None:
    count = rng.randint(2, 6)
    if meanings() and rng.random() < 0.5:
        doc = meaning_document(rng, count, around(rng, material, count), wanted=1, held_out=held_out)
    elif material.pairs:
        doc = pair_document(rng, count, material.pairs, wanted=1)
    else:
        return None
    if not doc.questions:
        return None
    question, answer = doc.questions[0]
    wording = (
        "{}" if _stands_alone(question) else rng.choice(("Which of these is meant: {}", "What fits best? {}", "{}"))
    )
    return Choice("", wording.format(question), doc.lines, -1 if answer is None else answer)


def field_of_record(rng: random.Random, material: Material, held_out: bool) -> Choice:
    values = Values(rng, material.words)
    rows = [
        {"name": v["word"].title(), "city": v["word2"].title(), "age": v["n"], "mail": v["mail"]}
        for v in (values.draw() for _ in range(rng.randint(1, 4)))
    ]
    row, key = rng.choice(rows), rng.choice(("city", "age", "mail"))
    evidence = "\n".join(", ".join(f"{k}: {v}" for k, v in r.items()) for r in rows)
    drawn = [values.draw()[{"city": "word2", "age": "n", "mail": "mail"}[key]] for _ in range(3)]
    pool = [r[key] for r in rows] + [d.title() if key == "city" else d for d in drawn]
    options, answer = _pick(rng, row[key], pool, 5)
    return Choice(
        evidence,
        rng.choice(("What is the {} of {}?", "{} of {}", "Which {} belongs to {}?")).format(key, row["name"]),
        options,
        answer,
    )


def stated(rng: random.Random, material: Material, held_out: bool) -> Choice:
    """Yes/no: does the evidence hold what is asked for?"""
    if rng.random() < 0.35:
        task = rng.choice(list(examples()))
        question, labels = examples()[task]
        label = rng.choice(list(labels))
        text = labels[label][-1] if held_out else rng.choice(labels[label][:-1])
        if set(labels) == {"yes", "no"}:
            return Choice(text, question, ["yes", "no"], 0 if label == "yes" else 1)
        yes = rng.random() < 0.5
        shown = label if yes else rng.choice([other for other in labels if other != label])
        wording = {
            "sentiment": "Is the writer {}?",
            "intent": "Does the customer want this: {}?",
            "topic": "Is the text about {}?",
            "urgency": "Is this {}?",
            "action": "Is this a request to {}?",
            "kind": "Is this an example of: {}?",
            "form": "Is this sentence a {}?",
            "time": "Does it happen in the {}?",
            "document": "Could this come from a {}?",
            "department": "Is this a matter for {}?",
            "place": "Does this happen in or at the {}?",
            "feeling": "Is this {}?",
            "spam": "Is this message {}?",
            "size": "Is it {} than a person?",
        }
        asked = wording[task].format(shown) if task in wording else f'{question} Is "{shown}" right?'
        return Choice(text, asked, ["yes", "no"], 0 if yes else 1)
    if rng.random() < 0.25:
        a, b = rng.randint(0, 200), rng.randint(0, 200)
        more = rng.random() < 0.5
        return Choice(
            f"The value is {a}.",
            f"Is the value {'above' if more else 'below'} {b}?",
            ["yes", "no"],
            0 if (a > b if more else a < b) else 1,
        )
    maker = rng.choice((log_document, record_document))
    doc = maker(rng, rng.randint(1, 5), material.words, wanted=3)
    asked = [(q, a) for q, a in doc.questions]
    if not asked or rng.random() < 0.4:
        other = maker(rng, 3, material.words, wanted=1)
        asked = [(q, None) for q, _ in other.questions] or [("a purple elephant", None)]
    question, answer = rng.choice(asked)
    wording = rng.choice(
        ("Is there an answer to this here? {}?", "Can this be answered from the text? {}?")
        if _stands_alone(question)
        else (
            "Does the text say anything about this: {}?",
            "Does it say this somewhere: {}?",
            "Is this mentioned: {}?",
        )
    )
    return Choice("\n".join(doc.lines), wording.format(question.rstrip("?")), ["yes", "no"], 1 if answer is None else 0)


MAKERS: tuple[tuple[Callable[..., Choice | None], float], ...] = (
    (classify, 2.0),
    (event_area, 2.0),
    (pick_line, 4.0),
    (meaning, 1.5),
    (field_of_record, 1.5),
    (stated, 3.0),
)


def make(rng: random.Random, material: Material, *, held_out: bool = False) -> Choice:
    while True:
        maker = rng.choices([m for m, _ in MAKERS], [w for _, w in MAKERS])[0]
        choice = maker(rng, material, held_out)
        if choice and (choice.answer >= 0 or maker in (pick_line, meaning)):
            break
    if len(choice.options) > 2 and choice.answer >= 0 and rng.random() < 0.08:  # take the right option away
        del choice.options[choice.answer]
        choice.answer = -1
    return choice


def reversed_order(choice: Choice) -> Choice:
    """The same question with its options from last to first: the letter changes, what is right does not. Yes and no
    keep their order, which ``prompt`` varies."""
    if choice.options == ["yes", "no"]:
        return choice
    answer = len(choice.options) - 1 - choice.answer if choice.answer >= 0 else -1
    return Choice(choice.evidence, choice.question, choice.options[::-1], answer)


def prompt(rng: random.Random, choice: Choice) -> tuple[str, str]:
    """(text up to the assistant's turn, answer token's text). The first layout is the product's; the rest vary it."""
    plain = choice.options == ["yes", "no"]
    system = f"<|im_start|>system\n{choice.evidence}<|im_end|>\n" if choice.evidence else ""
    tail = "<|im_end|>\n<|im_start|>assistant\n"
    if plain and rng.random() < 0.4:
        ask = rng.choice(("Answer yes or no.", "Answer with yes or no.", "Yes or no?"))
        return f"{system}<|im_start|>user\n{choice.question}\n{ask}{tail}", "Yes" if choice.answer == 0 else "No"
    options, answer = list(choice.options), choice.answer
    if plain and rng.random() < 0.5:
        options, answer = options[::-1], 1 - answer
    if answer < 0 or (not plain and len(options) > 1 and rng.random() < 0.3):
        options.append(rng.choice(NONE))
        answer = len(options) - 1 if answer < 0 else answer
        if rng.random() < 0.3:
            move = rng.randrange(len(options))
            options.insert(move, options.pop())
            answer = move if answer == len(options) - 1 else answer + (move <= answer)
    mark = rng.choice(("{}. {}", "{}. {}", "{}. {}", "{}) {}", "({}) {}", "{}: {}"))
    listed = "\n".join(mark.format(LETTERS[i], option) for i, option in enumerate(options))
    ask = rng.choice(
        (
            "Answer with the letter only.",
            "Answer with the letter only.",
            "Reply with one letter.",
            "",
            "Which letter is right?",
        )
    )
    body = f"{choice.question}\n{listed}" + (f"\n{ask}" if ask else "")
    if system and rng.random() < 0.25:
        system, body = "", f"{choice.evidence}\n\n{body}"
    return f"{system}<|im_start|>user\n{body}{tail}", LETTERS[answer]


def batch(rng: random.Random, material: Material, words: Words, rows: int, length: int) -> dict[str, np.ndarray]:
    """ids [rows, length], last [rows] (index of each prompt's last token), label [rows] (the answer's token)."""
    out = {
        "ids": np.zeros((rows, length), np.int64),
        "last": np.zeros(rows, np.int64),
        "label": np.zeros(rows, np.int64),
    }
    filled = 0
    while filled < rows:
        choice = make(rng, material)
        both = [choice, reversed_order(choice)] if rng.random() < 0.5 else [choice]
        for text, answer in (prompt(rng, each) for each in both):
            ids = words.encode(text)
            if len(ids) <= length and filled < rows:
                out["ids"][filled, : len(ids)] = ids
                out["last"][filled], out["label"][filled] = len(ids) - 1, words.encode(answer)[0]
                filled += 1
    return out
