"""The words that prompts are made of: common, neutral English, so that a tokenizer treats them as it treats text."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DETERMINERS = ("the", "a", "this", "that", "each", "one", "some", "our", "every", "any")
ADJECTIVES = _words(
    """small large early late quiet open clear common simple recent daily local public green northern southern warm cold
    short long narrow wide heavy light new old plain steady careful regular useful final first second third main whole
    empty full dry wet soft hard round flat high low near"""
)
NOUNS = _words(
    """garden river report table window market school letter bridge station village kitchen road paper field worker
    teacher engine harbour island forest mountain valley library museum office building corner street morning evening
    winter summer season week month year hour minute price number list order plan project meeting visit journey train
    ship boat wagon bicycle horse bird fish tree flower leaf stone wall door floor roof lamp clock map picture book page
    line word sentence story song concert game team player path lake shore wind rain snow cloud light shadow colour
    answer question reason result method process change part piece side end beginning middle centre
    group member"""
)
VERBS = _words(
    """follows reaches crosses opens closes shows keeps carries brings moves turns holds finds leaves meets joins builds
    covers fills marks counts measures describes explains repeats begins ends supports watches passes collects prepares
    delivers returns records compares divides connects surrounds feeds cleans repairs paints lifts lowers"""
)
PREPOSITIONS = ("near", "behind", "before", "after", "under", "over", "beside", "with", "without", "from", "into", "of")
FILLERS = ("and", "then", "so", "now", "also", "there", "here", "again", "still", "only")
"""Words that may stand anywhere; they bring a text to its exact length."""

PATTERN = (DETERMINERS, ADJECTIVES, NOUNS, VERBS, DETERMINERS, NOUNS, PREPOSITIONS, DETERMINERS, ADJECTIVES, NOUNS)
"""A sentence, word by word."""

WORDS = tuple(dict.fromkeys(word for words in (*PATTERN, FILLERS) for word in words))
