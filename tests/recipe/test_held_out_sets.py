"""The held-out sets in tests/data fit their files: line numbers exist, boxes lie inside the pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from assets.ember.recipe.screens.pack import check_screen

DATA = Path(__file__).parents[1] / "data"
SCREENS = json.loads((DATA / "screens/screens.json").read_text())
QUESTIONS = json.loads((DATA / "logs/questions.json").read_text())


@pytest.mark.parametrize("log", sorted({question["log"] for question in QUESTIONS}))
def test_log_questions_point_at_lines(log):
    lines = (DATA / "logs" / log).read_text().splitlines()
    asked = [question for question in QUESTIONS if question["log"] == log]
    assert len(lines) >= 500
    for question in asked:
        assert question["kind"] in ("lexical", "paraphrase", "absent")
        assert bool(question["lines"]) == (question["kind"] != "absent"), question
        assert all(1 <= number <= len(lines) for number in question["lines"]), question


def test_lexical_questions_share_words_with_their_line():
    for question in QUESTIONS:
        if question["kind"] == "lexical":
            lines = (DATA / "logs" / question["log"]).read_text().splitlines()
            words = {word.strip('":,.').lower() for word in question["question"].replace(":", " ").split()}
            said = lines[question["lines"][0] - 1].lower()
            assert sum(word in said for word in words if len(word) > 2) >= min(2, len(words)), question


def test_there_are_enough_questions_of_each_kind():
    kinds = [question["kind"] for question in QUESTIONS]
    assert kinds.count("lexical") >= 40
    assert kinds.count("paraphrase") >= 40


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen["file"])
def test_screen_records_fit_their_pictures(screen):
    check_screen(screen)
    with Image.open(DATA / "screens" / screen["file"]) as picture:
        assert picture.size == (screen["w"], screen["h"])
    assert screen["split"] == "heldout"
    assert screen["licence"]
    assert len(screen["items"]) >= 4
    assert len(screen["absent"]) >= 2
    asked = [query["q"].lower() for item in screen["items"] for query in item["queries"]]
    assert len(asked) == len(set(asked)), "a question has two answers"


def test_screens_cover_every_way_of_asking():
    queries = [query["by"] for screen in SCREENS for item in screen["items"] for query in item["queries"]]
    assert min(queries.count(by) for by in ("text", "name", "function")) >= 30
    assert sum(item["bare"] for screen in SCREENS for item in screen["items"]) >= 30


def test_materials_hold_nothing_of_the_held_out_screens():
    """The lists from which training material is made name none of the programs that are measured on."""
    from assets.ember.recipe.screens.strings import HELD_OUT

    folder = Path(__file__).parents[2] / "assets/ember/recipe/materials"
    named = {
        word
        for path in folder.glob("*.txt")
        for line in path.read_text().splitlines()
        if not line.startswith("#")
        for word in line.split()
    }
    assert len(named) > 200
    assert not {name for name in named if any(name.startswith(program) for program in HELD_OUT)}
