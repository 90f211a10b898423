"""The held-out sets in tests/data fit their files: line numbers exist, boxes lie inside the pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
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
