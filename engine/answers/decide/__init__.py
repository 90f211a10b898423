"""Typed questions over one state, answered from the logits of labels at the last prompt position."""

from engine.answers.decide.answers import Answer, Decision
from engine.answers.decide.asker import decide
from engine.answers.decide.questions import Choice, Multi, Noul, Number, Question, Score

__all__ = ["Answer", "Choice", "Decision", "Multi", "Noul", "Number", "Question", "Score", "decide"]
