"""The questions of ``tests/data/answers``: every one can be answered, splits share no source, files stay small."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from ignis_desktop.bench.answers.cases import FOLDER, KINDS, SPLITS, Case, read_cases
from ignis_desktop.bench.answers.documents import Unit, overlap, right, same_words, units_of
from ignis_desktop.bench.answers.screens import read_screens

Group = tuple[Case, list[Unit]]


@pytest.fixture(scope="module")
def asked() -> list[Group]:
    """Every question with the units of its text."""
    out: list[Group] = []
    for split in SPLITS:
        for text, cases in itertools.groupby(read_cases(None, split), key=lambda case: case.text):
            units = units_of(text, text.read())
            out += [(case, units) for case in cases]
    return out


def test_every_question_has_an_answer_that_can_be_found(asked: list[Group]) -> None:
    for case, units in asked:
        answers = [unit for unit in units if right(case, unit.line, unit.number, unit.text)]
        assert bool(answers) != case.absent, case
        places = {unit.number if case.text.kind == "records" else unit.line for unit in answers}
        assert places == set(case.records or case.lines), case
        for target in case.targets:
            assert any(target in answer.text for answer in answers), (case, target)


def test_there_are_enough_of_each_sort(asked: list[Group]) -> None:
    of = {kind: [(c, u) for c, u in asked if c.text.kind == kind and not c.absent and not c.asks] for kind in KINDS}
    least = {"log": 150, "prose": 60, "records": 60}
    assert all(len(of[kind]) >= least[kind] for kind in KINDS)
    for cases in of.values():
        assert 0.3 <= sum(not same_words(case, units) for case, units in cases) / len(cases) <= 0.6
    assert sum(case.absent for case, _ in asked) >= 60
    assert sum(bool(case.asks) for case, _ in asked) >= 40
    assert len(read_screens(None)) >= 300


def test_other_words_are_other_words(asked: list[Group]) -> None:
    """What counts as asked in other words shares a fifth of them with its answer on average at most."""
    shares = []
    for case, units in asked:
        if case.absent or case.asks or same_words(case, units):
            continue
        answers = [unit.text for unit in units if right(case, unit.line, unit.number, unit.text)]
        shares.append(max(overlap(case.question, answer) for answer in answers))
    assert sum(shares) / len(shares) < 0.2


def test_every_screen_has_its_picture_and_its_boxes_lie_on_it() -> None:
    sizes: dict[Path, tuple[int, int]] = {}
    for case in read_screens(None):
        if case.picture not in sizes:
            with Image.open(case.picture) as opened:
                sizes[case.picture] = opened.size
        if case.box is not None:
            left, top, right_edge, bottom = case.box
            assert 0 <= left < right_edge <= sizes[case.picture][0], case
            assert 0 <= top < bottom <= sizes[case.picture][1], case


def test_no_source_is_in_two_splits(asked: list[Group]) -> None:
    splits: dict[str, set[str]] = {}
    for case, _ in asked:
        splits.setdefault(case.text.source, set()).add(case.text.split)
    assert all(len(found) == 1 for found in splits.values()), splits


def test_no_question_is_asked_twice(asked: list[Group]) -> None:
    seen = [(case.text.name, case.question) for case, _ in asked]
    assert len(seen) == len(set(seen))


def test_questions_about_time_and_order_name_the_line_that_the_text_gives() -> None:
    """Computed answers, computed once more: a first and a last line lie at the ends of what fits, counts agree."""
    for row in json.loads((FOLDER / "questions.json").read_text(encoding="utf-8")):
        if row.get("asks") == "count":
            assert row["count"] == len(row["lines"]) >= 1
        elif row.get("asks"):
            assert len(row["lines"]) == 1
        if row.get("asks") == "time":
            wanted = re.search(r"(after|before) (\d\d:\d\d:\d\d)", row["question"])
            line = (FOLDER / row["text"]).read_text(encoding="utf-8").split("\n")[row["lines"][0] - 1]
            at = re.search(r"\d\d:\d\d:\d\d", line)
            assert wanted, row
            assert at, row
            assert (at[0] > wanted[2]) == (wanted[1] == "after"), row


def test_files_are_small_and_say_where_they_come_from() -> None:
    sizes = [path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()]
    assert max(sizes) <= 2 << 20
    assert sum(sizes) <= 12 << 20
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for source in json.loads((FOLDER / "sources.json").read_text(encoding="utf-8")):
        assert source["licence"]
        assert source["source"]
        stem = source["text"].split("/")[-1]
        assert source["text"].startswith("../") or stem in readme or f"{stem.split('-')[0]}-*.txt" in readme, source


def test_logs_hold_nothing_of_the_machine_they_were_made_on() -> None:
    private = re.compile(r"\b(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}(?:\.\d{1,3})?\b(?!-)")
    for path in sorted((FOLDER / "logs").iterdir()):
        text = path.read_text(encoding="utf-8")
        assert "/home/" not in text.replace("/home/deploy", "").replace("/home/backup2", ""), path
        assert "/tmp/" not in text, path
        found = [match[0] for match in private.finditer(text) if match[0].count(".") == 3]
        assert not found, (path, found[:5])
