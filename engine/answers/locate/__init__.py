"""Which line, sentence or record of a text answers a question: read from attention heads, no token generated."""

from engine.answers.locate.answer import LocateAnswer, Ranked
from engine.answers.locate.run import locate

__all__ = ["LocateAnswer", "Ranked", "locate"]
