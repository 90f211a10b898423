"""Other words for what logs say."""

from __future__ import annotations

from engine.answers.locate.synonyms import _ASKED, _GROUPS, synonyms


def test_groups_go_both_ways() -> None:
    found = synonyms()
    assert all(word in found[other] for word, others in found.items() for other in others)
    assert "deny" in found["refuse"]
    assert not any(word in others for word, others in found.items())


def test_groups_are_plain_words_and_say_something() -> None:
    rows = [row.split() for row in [*_GROUPS.splitlines(), *_ASKED.split(",")] if row]
    assert all(len(row) > 1 and len(set(row)) == len(row) for row in rows)
    assert all(word.isalnum() and word == word.lower() for row in rows for word in row)
