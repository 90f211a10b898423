"""Typed questions over one state, answered from the logits of labels at the last prompt position."""

from engine.answers.decide.answers import Answer, Decision, Located, located
from engine.answers.decide.asker import decide
from engine.answers.decide.questions import Choice, Multi, Noul, Number, Place, Question, Score

__all__ = [
    "Answer",
    "Choice",
    "Decision",
    "Located",
    "Multi",
    "Noul",
    "Number",
    "Place",
    "Question",
    "Score",
    "decide",
    "located",
]
