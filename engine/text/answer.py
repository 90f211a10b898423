"""Reading an answer while it streams in: reasoning, text and tool calls, told apart at any boundary."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.text.stream import overlap
from engine.text.thinking import CLOSE, OPEN, ThinkingSplitter
from engine.text.tool_calls import CALL, FUNCTION, CallArguments, CallBegun, CallReader, Text

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reasoning:
    text: str


AnswerEvent = Reasoning | Text | CallBegun | CallArguments
Tools = Mapping[str, Mapping[str, Any]]
"""JSON schemas of the parameters by the tools' names."""


class AnswerParser:
    """Feed it text in any pieces; put together, the events are always the same.

    - Reasoning is a ``<think>`` block where the answer begins, or after another block or a call.
    - White space around calls and blocks belongs to nothing.
    - What looks like a call but cannot be read is text, with all its tags.
    - A call inside reasoning is reasoning, unless the answer ends with it and nothing closed the block: then the model
      forgot to.
    - ``<function=…>`` of a known tool where a line begins is a call also without the tag around it.
    """

    def __init__(
        self,
        tools: Tools | None = None,
        *,
        opened: bool = False,
        most: int | None = None,
        exclusive: bool = False,
    ) -> None:
        """
        Args:
            tools: what may be called; None looks for no calls at all.
            opened: the prompt opened a reasoning block already.
            most: calls after so many are left out.
            exclusive: an answer that says something calls nothing: what looks like a call in it is text.
        """
        self.opened = opened
        self._tools = tools
        self._most = most
        self._exclusive = exclusive
        self._bare = tuple(f"{FUNCTION}{name}>" for name in tools or ())
        self._tag = re.compile("|".join(map(re.escape, (CALL, *self._bare))))
        self._splitter = ThinkingSplitter(opened=opened)
        self._thoughts = _Thoughts(tools)
        self._state: Callable[[], bool] = self._thinking
        self._reader: CallReader | None = None
        self._held = ""
        self._events: list[AnswerEvent] = []
        self._space = ""
        """White space that is text only if text follows."""
        self._edge = True
        """No text since the answer began or a call ended."""
        self._said = False
        """Some text was given out; what follows another call is set apart from it."""
        self._reasoned = self._apart = False
        """Some reasoning was given out; what comes next is of another block."""
        self._begun = 0

    @property
    def calls(self) -> int:
        """How many calls were given out."""
        return self._begun if self._most is None else min(self._begun, self._most)

    @property
    def cut_off(self) -> bool:
        """The answer ended inside a call that was given out."""
        inside = self._reader is not None and self._reader.inside
        return inside and (self._most is None or self._begun <= self._most)

    def push(self, text: str) -> list[AnswerEvent]:
        """What became certain with this text."""
        self._held += text
        while self._state():
            pass
        return self._take()

    def finish(self, *, cut: bool = False) -> list[AnswerEvent]:
        """What was held back, at the end of the answer.

        ``cut``: the model did not end it itself. A call then stays as it is, with part of its arguments; otherwise end
        tags that the model left out are taken as written.
        """
        if self._state == self._thinking:
            rest = self._splitter.flush()
            self._emit_all(self._thoughts.push(rest.reasoning))
            self._emit_all(self._thoughts.finish(self._begun, calls=not cut and not self._splitter.closed))
            self._held = rest.content
        if self._reader is not None:
            events = self._reader.finish(cut=cut)
            self._emit_all(events)
            if not events:
                self._space = ""
        self._say(self._held)
        if self._space and not (self._edge and self._begun):
            self._events.append(Text(self._space))
        self._held = self._space = ""
        return self._take()

    def _take(self) -> list[AnswerEvent]:
        events, self._events = self._events, []
        return events

    # Each state reads what it can of what is held, and says whether there may be more to read.

    def _thinking(self) -> bool:
        text, self._held = self._held, ""
        split = self._splitter.push(text)
        self._emit_all(self._thoughts.push(split.reasoning))
        if self._splitter.closed:
            self._emit_all(self._thoughts.finish(self._begun, calls=False))
        if not split.content:
            return False
        self._held = split.content
        self._state = self._plain if self._tools is None else self._between
        return True

    def _plain(self) -> bool:
        self._events.append(Text(self._held))
        self._held = ""
        return False

    def _between(self) -> bool:
        """Where a block of reasoning may begin."""
        begun = self._held.lstrip()
        if begun.startswith(OPEN):
            self._splitter, self._thoughts = ThinkingSplitter(opened=True), _Thoughts(self._tools)
            self._held, self._state = begun[len(OPEN) :], self._thinking
            self._apart = self._reasoned
        elif begun.startswith(CLOSE):
            self._held = begun[len(CLOSE) :]
        elif OPEN.startswith(begun) or CLOSE.startswith(begun):
            return False
        else:
            self._state = self._text
        return True

    def _text(self) -> bool:
        if self._exclusive and (self._said or (self._held.strip() and not self._may_begin_call())):
            self._say(self._held)
            self._held = ""
            return False
        found = self._tag.search(self._held)
        if found is None:
            at = self._held.rfind("<")
            tail = self._held[at:] if at >= 0 else ""
            keep = len(tail) if tail and any(tag.startswith(tail) for tag in (CALL, *self._bare)) else 0
            self._say(self._held[: len(self._held) - keep])
            self._held = self._held[len(self._held) - keep :]
            return False
        before, tag, self._held = self._held[: found.start()], found[0], self._held[found.end() :]
        line = (self._space + before).rstrip(" \t")
        if tag == CALL:
            self._say(before)
            self._begin(None)
        elif line.endswith("\n") or (not line and self._edge):
            self._say(before)
            self._begin(tag[len(FUNCTION) : -1])
        else:
            self._say(before + tag)
        return True

    def _may_begin_call(self) -> bool:
        """Whether what is held is a call's tag, or may become one."""
        begun = self._held.lstrip()
        return any(tag.startswith(begun) or begun.startswith(tag) for tag in (CALL, *self._bare))

    def _call(self) -> bool:
        reader = self._reader
        assert reader is not None
        text, self._held = self._held, ""
        self._emit_all(reader.push(text))
        if reader.rest is None:
            return False
        self._held, self._reader = reader.rest, None
        if self._begun > reader.first:
            self._edge, self._state = True, self._between
        else:  # it was no call
            self._state = self._text
        return True

    def _begin(self, bare: str | None) -> None:
        assert self._tools is not None
        self._reader, self._state = CallReader(self._tools, self._begun, bare), self._call

    # What comes out.

    def _say(self, text: str) -> None:
        """Text. White space at its end waits for what follows."""
        text = self._space + text
        kept = text.rstrip()
        self._space = text[len(kept) :]
        if not kept:
            return
        if self._edge and self._begun:
            kept = ("\n\n" if self._said else "") + kept.lstrip()
        self._edge, self._said = False, True
        self._events.append(Text(kept))

    def _emit_all(self, events: Sequence[AnswerEvent]) -> None:
        for event in events:
            self._emit(event)

    def _emit(self, event: AnswerEvent) -> None:
        if isinstance(event, Text):
            self._say(event.text)
            return
        if isinstance(event, Reasoning):
            if self._apart:
                event = Reasoning("\n\n" + event.text)
            self._reasoned, self._apart = True, False
        elif isinstance(event, CallBegun):
            self._begun = event.index + 1
            self._edge, self._space = True, ""
            if self._begun - 1 == self._most:
                logger.info("Calls after the first %d are left out, as the request asks", self._most)
        if not isinstance(event, CallBegun | CallArguments) or self._most is None or event.index < self._most:
            self._events.append(event)


class _Thoughts:
    """One block of reasoning. What may be calls at its end is held back until that is decided."""

    def __init__(self, tools: Tools | None) -> None:
        self._tools = tools
        self._held = ""
        self._calls: AnswerParser | None = None
        """Reads the first call that is held and what follows it."""
        self._fed = 0
        self._events: list[AnswerEvent] = []

    def push(self, text: str) -> list[AnswerEvent]:
        self._held += text
        out = ""
        while True:
            if self._calls is None:
                at = self._held.find(CALL) if self._tools is not None else -1
                if at < 0:
                    keep = 0 if self._tools is None else overlap(self._held, CALL)
                    return self._released(out, len(self._held[: len(self._held) - keep].rstrip()))
                self._calls, self._fed, self._events = AnswerParser(self._tools), at, []
            self._events += self._calls.push(self._held[self._fed :])
            self._fed = len(self._held)
            if not any(isinstance(event, Text | Reasoning) for event in self._events):
                at = len(self._held[: self._held.index(CALL)].rstrip())
                return self._released(out, at)
            at = self._held.index(CALL) + len(CALL)
            out += self._held[:at]
            self._held, self._calls = self._held[at:], None

    def finish(self, first: int, *, calls: bool) -> list[AnswerEvent]:
        """The rest of the block; or, if they may be such, the calls that it ends with, counted from ``first``."""
        if self._calls is not None and calls:
            events = [*self._events, *self._calls.finish()]
            found = [event for event in events if isinstance(event, CallBegun | CallArguments)]
            if len(found) == len(events):
                return [replace(event, index=event.index + first) for event in found]
        self._calls = None
        return self._released("", len(self._held))

    def _released(self, out: str, length: int) -> list[AnswerEvent]:
        out += self._held[:length]
        self._held = self._held[length:]
        self._fed = max(0, self._fed - length)
        return [Reasoning(out)] if out else []
