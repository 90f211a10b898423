"""What is written by hand for the recipe is well formed, said once, and in other words than what it asks about."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from assets.ember.recipe import written
from assets.ember.recipe.events import areas, by_area, events, slots_of
from assets.ember.recipe.meanings import meanings
from assets.ember.recipe.screens.words import load_labels
from assets.ember.recipe.values import Values

SLOTS = frozenset(Values(random.Random(1), ["alpha"]).draw())
COMMON = frozenset(
    re.findall(
        r"\w+",
        "the and for from with which who what when where did does its this that not has have had our they their there "
        "was were are than then",
    )
)
FLOORS = {("events", "general"): 4, ("events", None): 7, ("labels", "general"): 3, ("labels", None): 6}
"""Fewest questions of a row, by file; the older files have fewer."""
FLOORS |= {("meanings", None): 4}
MOST = {"events": 12, "labels": 12, "meanings": 8}
TEXT = {"events": 2, "labels": 0, "meanings": 0}
"""Which part of a row its questions are about."""


def rows(kind):
    """(file, row's parts, its questions) of a kind; lines that name an area are left out."""
    for subject, lines in written.subjects(kind).items():
        for line in lines:
            if not line.startswith("!"):
                parts = line.split(" | ")
                yield subject, parts, [question.strip() for question in parts[-1].split(";")]


def words(text):
    return set(re.findall(r"[a-z]{3,}", re.sub(r"{\w+}", "", text).lower())) - COMMON


@pytest.mark.parametrize(("kind", "count"), [("events", 4), ("labels", 3), ("meanings", 2)])
def test_rows_have_their_parts_and_questions(kind, count):
    wrong, seen = [], Counter()
    for subject, parts, questions in rows(kind):
        text = parts[TEXT[kind]] if len(parts) == count else ""
        said = f"{text} | {parts[1]}" if kind == "labels" else text  # a label may head a table and name a field
        seen[subject, said] += 1
        floor = FLOORS.get((kind, subject), FLOORS[kind, None])
        faults = {
            f"{len(parts)} parts instead of {count}": len(parts) != count,
            "said twice": seen[subject, said] > 1,
            f"{len(questions)} questions": not floor <= len(questions) <= MOST[kind],
            "an empty or double question": len(set(questions)) < len(questions) or not all(questions),
            "an empty part": not all(part.strip() for part in parts),
        }
        wrong += [f"{subject}: {text[:60]}: {fault}" for fault, found in faults.items() if found]
    assert not wrong, "\n".join(wrong)


def test_events_have_known_levels_areas_and_slots():
    wrong = []
    for subject, (level, _, message, _), questions in rows("events"):
        if level not in ("info", "warn", "error"):
            wrong.append(f"{subject}: level {level}: {message}")
        for text in (message, *questions):
            try:
                foreign = slots_of(text) - (slots_of(message) & SLOTS)
            except ValueError as error:
                wrong.append(f"{subject}: {error}: {text}")
                continue
            if foreign:
                wrong.append(f"{subject}: {sorted(foreign)} unknown or not in the message: {text}")
            elif text != message and "{" in text.format(**dict.fromkeys(SLOTS, "x")):
                wrong.append(f"{subject}: a brace is left: {text}")
    assert not wrong, "\n".join(wrong)


def test_areas_are_described_once_and_used():
    declared = [line.split(" | ") for line in written.rows("events") if line.startswith("!")]
    assert all(len(parts) == 3 and parts[0] == "!area" for parts in declared)
    assert len({parts[1] for parts in declared}) == len(declared)
    assert set(areas()) <= set(by_area(held_out=True))


def test_labels_stand_on_known_elements():
    for spellings, kinds, phrases in load_labels():
        assert set(kinds.split()) <= set("bmctlfnh"), spellings
        assert all(spellings), spellings
        assert len(set(spellings)) == len(spellings), spellings
        assert all(phrase.lstrip("=") for phrase in phrases), spellings


def test_meanings_are_sentences():
    for meaning in meanings(held_out=True):
        assert 6 <= len(meaning.text.split()) <= 40, meaning.text


@pytest.mark.parametrize("kind", ["events", "labels", "meanings"])
def test_most_is_asked_in_other_words(kind):
    shared, count = Counter(), Counter()
    for subject, parts, questions in rows(kind):
        known = words(parts[TEXT[kind]])
        shared[subject] += sum(bool(known & words(question)) for question in questions)
        count[subject] += len(questions)
    for subject, total in count.items():
        assert shared[subject] < 0.45 * total, f"{kind}/{subject}"


def test_a_question_belongs_to_one_event_of_its_area():
    """Two that stand in one log are not asked by the same words."""
    for area, known in by_area(held_out=True).items():
        asked = Counter(question.lower().rstrip("?") for event in known for question in event.questions)
        twice = [question for question, times in asked.items() if times > 1]
        assert not twice, f"{area}: {twice}"


def test_nothing_held_out_is_written():
    """Neither as a question of real logs nor, in what training sees, as one that is kept for measuring."""
    data = Path(__file__).parents[1] / "data/logs/questions.json"
    real = {question["question"].lower().rstrip("?. ") for question in json.loads(data.read_text())}
    asked = {
        q.lower().rstrip("?. ") for kind in ("events", "meanings") for *_, questions in rows(kind) for q in questions
    }
    assert not asked & real
    unseen = [event for event in events(held_out=True) if event.unseen]
    assert 0.02 < len(unseen) / len(events(held_out=True)) < 0.07
    assert not set(unseen) & set(events())


def test_there_is_enough_of_it():
    assert len(events(held_out=True)) >= 1600
    assert len(areas()) >= 65
    assert len(load_labels()) >= 498
