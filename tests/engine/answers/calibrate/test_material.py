"""The material that heads are chosen on: what is asked has one answer, and the same seed makes the same."""

from __future__ import annotations

import numpy as np
import pytest

from engine.answers.calibrate.scenes import Scene, make_scenes
from engine.answers.calibrate.texts import Document, make_documents

SCENES = make_scenes(30, 3)
DOCUMENTS = make_documents(30, 3)


@pytest.mark.parametrize("scene", SCENES, ids=range(len(SCENES)))
def test_everything_asked_about_is_drawn_once(scene: Scene) -> None:
    width, height = scene.picture.size
    assert len(scene.items) >= 12
    pixels = np.asarray(scene.picture).astype(int)
    for item in scene.items:
        x0, y0, x1, y1 = item.box
        assert 0 <= x0 < x1 <= width
        assert 0 <= y0 < y1 <= height
        assert np.ptp(pixels[y0:y1, x0:x1], axis=(0, 1)).max() > 40, item
    questions = [item.question.lower() for item in scene.items]
    assert len(set(questions)) == len(questions)
    for one in scene.items:
        for other in scene.items:
            overlap = max(one.box[0], other.box[0]) < min(one.box[2], other.box[2]) and max(
                one.box[1], other.box[1]
            ) < min(one.box[3], other.box[3])
            assert one is other or not overlap


@pytest.mark.parametrize("scene", SCENES, ids=range(len(SCENES)))
def test_what_is_absent_is_not_there_under_another_wording(scene: Scene) -> None:
    assert scene.absent
    for question in scene.absent:
        word = question.removeprefix("the ").rsplit(" ", 1)[0] if " " in question else question
        assert all(word.lower() not in item.question.lower().split() for item in scene.items), question


@pytest.mark.parametrize("document", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_every_question_has_one_line(document: Document) -> None:
    assert len(document.lines) >= 20
    assert len({question for question, _ in document.questions}) == len(document.questions) == 6
    for question, answer in document.questions:
        line = document.lines[answer]
        # What is special in the question (names, hosts, towns) stands in the line that answers.
        special = [word.strip("?,.") for word in question.split()[1:] if word[0].isupper() or word in line.split()]
        assert all(word.lower() in line.lower() for word in special), (question, line)
    assert all("\n" not in line and line.strip() for line in document.lines)
    assert len(document.absent) == 2


def test_a_seed_says_all() -> None:
    again = make_scenes(30, 3)
    assert [scene.items for scene in again] == [scene.items for scene in SCENES]
    assert [scene.picture.tobytes() for scene in again] == [scene.picture.tobytes() for scene in SCENES]
    assert make_documents(30, 3) == DOCUMENTS
    assert make_documents(30, 4) != DOCUMENTS
    assert make_scenes(1, 4)[0].items != SCENES[0].items
