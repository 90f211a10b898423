"""What is asked about lines: which events stand together, what is near and not there, questions in other words, and
what is learned from an answer."""

from __future__ import annotations

import math
import random
import re
from collections import Counter

import pytest
import torch

from assets.ember.recipe import logs, meanings, objectives, retrieval
from assets.ember.recipe.events import events, slots_of, together
from assets.ember.recipe.wordings import at_time, is_asked, is_clause, reworded

NAMED = re.compile(r"(?:garden|bank) \d+")
WORDS = ["table", "river", "stone"]


@pytest.fixture
def written(monkeypatch):
    """Forty meanings of two subjects instead of those that lie in the folder."""
    said = [
        meanings.Meaning(subject, f"{subject} {i}", (f"a {subject} {i}", f"b {subject} {i}", f"last {subject} {i}"))
        for subject in ("garden", "bank")
        for i in range(20)
    ]
    for module in (meanings, retrieval):
        monkeypatch.setattr(module, "meanings", lambda held_out=False: tuple(said))
    return said


def test_lines_of_a_log_belong_together():
    rng = random.Random(0)
    areas = [Counter(event.area for event in together(rng)) for _ in range(200)]
    main = [sum(n for _, n in count.most_common(5)) / count.total() for count in areas]
    assert sum(share > 0.8 for share in main) > 120
    assert sum(share < 0.5 for share in main) > 5


def test_events_kept_for_measuring_are_asked_about_then_only():
    rng = random.Random(1)
    assert not any(event.unseen for _ in range(50) for event in together(rng))
    unseen = [event for event in events(held_out=True) if event.unseen]
    texts = {slot_free(event.message) for event in unseen}
    doc = logs.log_document(rng, 60, WORDS, wanted=12, held_out=True, unseen=True)
    asked = [doc.lines[answer] for _, answer in doc.questions if answer is not None]
    assert asked
    for line in asked:
        assert any(all(part in line.replace('\\"', '"') for part in text) for text in texts), line


def slot_free(message):
    """The longer pieces of a message between its slots."""
    text = message.format(**dict.fromkeys(slots_of(message), "\0"))
    return tuple(part for part in text.split("\0") if len(part) > 3)


def test_most_absent_questions_are_about_the_areas_of_the_log():
    rng, near, far = random.Random(2), 0, 0
    for _ in range(30):
        doc_events = together(rng)
        areas = {event.area for event in doc_events}
        values = logs.Values(rng, WORDS)
        rows = [
            logs.Row(i, event, values.draw(), logs.Line(0, 0, "host", "app", 1, event.level, event.message))
            for i, event in enumerate(doc_events)
        ]
        asker = logs.Asker(rng, values, [row.line.message for row in rows], rows, "none", False, None)
        home = Counter(
            event.area in areas for event in asker.near for question in event.questions if event not in doc_events
        )
        assert set(home) <= {True}
        for row in rows:
            question, answer = asker.absent(row)
            assert answer is None
            assert "{" not in question.replace("{{", "")
        near, far = near + len(asker.near), far + len(asker.others)
    assert 0 < near < far / 4


@pytest.mark.parametrize(
    "question",
    [
        "How many messages wait in {word}?",
        "Which user was shut out, and since when?",
        "why was the current session of {user} ended",
        "find the moment when the line went dead",
    ],
)
def test_whole_questions_stay_whole(question):
    for seed in range(80):
        said = reworded(random.Random(seed), question)
        assert slots_of(said) == slots_of(question)
        assert said.count("?") <= 1
        assert "lots of" not in said
        assert not any(frame in said for frame in ("happened that", "about this", "says that", "the line for"))


def test_questions_are_told_from_clauses_and_fragments():
    assert is_asked("At which hour did the copy end?")
    assert is_asked("show me the refund")
    assert not is_asked("disk nearly full")
    assert is_clause("the page was closed by {user}")
    assert is_clause("{user} has too many sessions")
    assert not is_clause("the drive that was replaced")
    assert not is_clause("the wrong figure on the product page")
    assert at_time("Who paid?", "10:00") == "Who paid at 10:00?"
    assert at_time("a payment failed", "10:00") == "a payment failed at 10:00"
    assert at_time("When did it end?", "10:00") is None


def test_articles_fit_the_words_they_stand_before():
    said = {reworded(random.Random(seed), "an error of a user") for seed in range(200)}
    assert any("a fault" in text or "a problem" in text for text in said)
    assert any("an account holder" in text for text in said)
    assert not any(wrong in text for text in said for wrong in ("an fault", "an problem", "a account", "an person"))


def test_meanings_stand_among_sentences_like_them(written):
    rng, others, present, absent = random.Random(3), [f"another sentence {i}" for i in range(200)], 0, 0
    for _ in range(60):
        doc = meanings.meaning_document(rng, 20, others, wanted=8)
        for question, answer in doc.questions:
            assert "last" not in question
            (named,) = NAMED.findall(question)
            assert [NAMED.findall(line) for line in doc.lines].count([named]) == (answer is not None)
            if answer is None:
                absent += 1
            else:
                present += 1
                assert NAMED.findall(doc.lines[answer]) == [named]
    assert present > 300
    assert absent > 50
    held = meanings.meaning_document(rng, 20, others, wanted=8, held_out=True)
    assert all(question.startswith("last") for question, _ in held.questions)


def test_documents_are_made_with_and_without_meanings(written, monkeypatch):
    material = retrieval.Material(WORDS)
    assert any("garden" in doc.lines[0] or "bank" in doc.lines[0] for doc in made(material))
    for module in (meanings, retrieval):
        monkeypatch.setattr(module, "meanings", lambda held_out=False: ())
    assert not any(line.startswith(("garden", "bank")) for doc in made(material) for line in doc.lines)
    with pytest.raises(ValueError, match="meanings"):
        meanings.meaning_document(random.Random(0), 5, [], wanted=2)


def made(material):
    rng = random.Random(4)
    return [retrieval.document(rng, 20, material, wanted=4) for _ in range(60)]


def test_what_is_found_is_learned_with_a_doubt(monkeypatch):
    """Two lines of two tokens each behind the nothing slot: the loss is least where p(nothing) is the doubt."""
    line_of = torch.tensor([[-1, 0, 0, 1, 1]])
    batch = {
        "evidence": torch.zeros(1, 8, dtype=torch.long),
        "answer": torch.tensor([[1]]),
        "asked": torch.ones(1, 1, dtype=torch.bool),
    }

    def loss(nothing, right):
        """p(nothing), and of the rest the share of the second line."""
        p = torch.tensor([nothing, *[(1 - nothing) * (1 - right) / 2] * 2, *[(1 - nothing) * right / 2] * 2])
        monkeypatch.setattr(objectives, "line_scores", lambda *_: (p.log()[None, None], line_of))
        value, metrics = objectives.retrieval(None, None, batch)
        return value.item(), metrics

    doubt, absent = objectives.DOUBT
    value, metrics = loss(0.2, 0.6)
    expected = -(doubt * math.log(0.2) + (1 - doubt) * math.log(0.8)) - math.log(0.6)
    assert value == pytest.approx(expected, rel=1e-5)
    assert metrics["found"].item() == 1
    assert metrics["lost"].item() == 0
    assert loss(doubt, 0.6)[0] < min(loss(doubt / 4, 0.6)[0], loss(doubt * 4, 0.6)[0])
    assert loss(0.6, 0.6)[1]["lost"].item() == 1
    batch["answer"] = torch.tensor([[-1]])
    value, metrics = loss(0.7, 0.5)
    assert value == pytest.approx(-((1 - absent) * math.log(0.7) + absent * math.log(0.3)), rel=1e-5)
    assert metrics["none"].item() == 1


def test_small_sources_of_pairs_are_not_lost_among_large_ones():
    rows = [(f"what {n} is", f"word {n}") for n in range(909)]
    drawn = Counter(
        i < 900 for i in retrieval.Pairs(rows, ["dictionary"] * 900 + ["message"] * 9).draw(random.Random(0), 3300)
    )
    assert 220 < drawn[False] < 380  # of 3,300 a root of 9 in 30 + 3 are 300; of rows alike they would be 33
    assert 15 < sum(i >= 900 for i in retrieval.Pairs(rows).draw(random.Random(0), 3300)) < 60
