"""What an answer means while it streams in, for every dialect of the API: its parts, its thoughts counted, its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from engine.text.answer import AnswerEvent, AnswerParser
from engine.text.thinking import CLOSE, OPEN
from ignis_desktop.server.generation import Answer, Piece

if TYPE_CHECKING:
    from engine import Engine

End = Literal["stop", "stop_sequence", "length", "tool_calls"]


class Reading:
    """Reads one answer as it comes."""

    def __init__(self, engine: Engine, parser: AnswerParser) -> None:
        self._parser = parser
        self._tags = engine.tokenizer.token_id(OPEN), engine.tokenizer.token_id(CLOSE)
        self._thinking = parser.opened
        self.reasoning_tokens = 0

    def read(self, piece: Piece, answer: Answer) -> list[AnswerEvent]:
        """What became certain with ``piece``, the answer's newest; once it has ended, also what was held back."""
        events = self._parser.push(piece.text)
        if (end := answer.finished) is not None:
            events += self._parser.finish(cut=end.reason == "length" or end.stop is not None)
        self._count_reasoning(piece.ids)
        return events

    def end(self, answer: Answer) -> End:
        """Why the answer ended. One that was cut off inside a call has not called."""
        if answer.end.reason == "length":
            return "length"
        if self._parser.calls and not self._parser.cut_off:
            return "tool_calls"
        return "stop" if answer.end.stop is None else "stop_sequence"

    def _count_reasoning(self, ids: Sequence[int]) -> None:
        begins, ends = self._tags
        self._thinking = self._thinking or (begins is not None and list(ids[:1]) == [begins])
        if self._thinking:
            self._thinking = ends is None or ends not in ids
            counted = len(ids) if ends is None or self._thinking else ids.index(ends) + 1
            self.reasoning_tokens += counted
