"""Reading one tool call while it streams in, in either form that models write.

::

    <tool_call>                                     <tool_call>
    <function=read>                                 {"name": "read", "arguments": {"path": "a.txt"}}
    <parameter=path>                                </tool_call>
    a.txt
    </parameter>
    </function>
    </tool_call>

The left form is Qwen3-Coder's and its successors', where parameters are plain text that the tool's schema gives types
to; the right one is Qwen3's and Ember's. The left form is given out as it comes. The right one is given out when it has
been read whole, so that what is no JSON can still be told as the text that it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.text.stream import overlap
from engine.text.tool_arguments import (
    NAME,
    UnfinishedError,
    argument_json,
    argument_types,
    dump,
    read_call,
    read_cut_call,
)

logger = logging.getLogger(__name__)

CALL, CALL_END = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"

_FUNCTION_TAG = re.compile(rf"<function=({NAME})>")
_FUNCTION_CUT = re.compile(r"<function=[^\s<>]{0,128}")
_PARAMETER_CUT = re.compile(r"<parameter=[^<>\n]{0,256}")
KEY = r"[^<>\n]{1,256}"
"""What a parameter may be called within its tag."""
_INSIDE = re.compile(rf"<parameter=({KEY})>|</function>|</tool_call>")
_AFTER_VALUE = {PARAMETER_END: (PARAMETER, FUNCTION_END, CALL_END), FUNCTION_END: (CALL_END,)}
"""What ends a parameter's value, and what must follow there: a value may hold such a tag as well."""
_VALUE_END = re.compile("|".join(_AFTER_VALUE))


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class CallBegun:
    index: int
    name: str


@dataclass(frozen=True)
class CallArguments:
    """A piece of a call's arguments. All pieces together are a JSON object, unless the answer was cut off."""

    index: int
    piece: str


CallEvent = Text | CallBegun | CallArguments


class CallReader:
    """Reads from behind ``<tool_call>`` to the call's end. Feed it text until ``rest`` is there.

    One tag may hold several functions. Text between parameters is given out as text.
    """

    def __init__(self, tools: Mapping[str, Mapping[str, Any]], first: int, bare: str | None = None) -> None:
        """
        Args:
            tools: JSON schemas of the parameters by the tools' names.
            first: index of the first call.
            bare: the function's name, when its tag was read already and no ``<tool_call>`` came before it.
        """
        self._tools = tools
        self._held = ""
        self._events: list[CallEvent] = []
        self._state: Callable[[], bool] = self._opened
        self.first = self.next = first
        """Indices of its first call and of the one after its last."""
        self.rest: str | None = None
        """What follows the call, once it has ended."""
        self._searched = 0
        self._schema: Mapping[str, Any] = {}
        self._types: frozenset[str] | None = None
        """Of the value that is being read; None for a text, which is given out at once."""
        self._value: list[str] = []
        self._values = 0
        self._stray = ""
        if bare is not None:
            self._begin(bare)

    @property
    def inside(self) -> bool:
        """A call has begun and not ended. After :meth:`finish`: it was cut off."""
        return self._state in (self._parameters, self._value_begins, self._value_goes_on)

    def push(self, text: str) -> list[CallEvent]:
        self._held += text
        while self.rest is None and self._state():
            pass
        return self._take()

    def finish(self, *, cut: bool) -> list[CallEvent]:
        """The answer ends here. See :meth:`AnswerParser.finish`."""
        if self._state == self._opened:
            if cut:
                logger.info("A tool call was cut off before its name")
            else:
                self._refuse(self._held)
        elif self._state == self._json:
            self._finish_json(cut)
        elif self._state in (self._value_begins, self._value_goes_on):
            self._finish_value(cut)
        if self.inside and not cut:
            self._end()
        return self._take()

    def _take(self) -> list[CallEvent]:
        events, self._events = self._events, []
        return events

    # Each state reads what it can of what is held, and says whether there may be more to read.

    def _opened(self) -> bool:
        begun = self._held.lstrip()
        if begun.startswith("{"):
            self._searched, self._state = 0, self._json
        elif tag := _FUNCTION_TAG.match(begun):
            self._held = begun[tag.end() :]
            self._begin(tag[1])
        elif FUNCTION.startswith(begun) or _FUNCTION_CUT.fullmatch(begun):
            return False
        else:
            self._refuse("")
        return True

    def _json(self) -> bool:
        at = self._held.find(CALL_END, self._searched)
        if at < 0:
            self._searched = max(0, len(self._held) - len(CALL_END) + 1)
            return False
        end = at + len(CALL_END)
        try:
            read = self._read_json(self._held[:at])
        except UnfinishedError:  # the tag stands in one of the call's own texts
            self._searched = end
            return True
        if read:
            self.rest = self._held[end:]
        else:
            self._refuse(self._held[:end])
        return False

    def _parameters(self) -> bool:
        found = _INSIDE.search(self._held)
        if found is None:
            at = self._held.rfind("<")
            tail = self._held[at:] if at >= 0 else ""
            may_be = any(tag.startswith(tail) for tag in (PARAMETER, FUNCTION_END, CALL_END))
            keep = len(tail) if may_be or _PARAMETER_CUT.fullmatch(tail) else 0
            self._stray_text(self._held[: len(self._held) - keep])
            self._held = self._held[len(self._held) - keep :]
            return False
        self._stray_text(self._held[: found.start()])
        self._stray = ""
        self._held = self._held[found.end() :]
        if found[1] is not None:
            self._begin_value(found[1])
        elif found[0] == FUNCTION_END:
            self._end()
        else:
            self._end()
            self.rest = self._held
        return True

    def _value_begins(self) -> bool:
        if not self._held:
            return False
        self._held, self._state = self._held.removeprefix("\n"), self._value_goes_on
        return True

    def _value_goes_on(self) -> bool:
        found = _VALUE_END.search(self._held)
        if found is None:
            keep = max(overlap(self._held, lead + tag) for lead in ("", "\n") for tag in _AFTER_VALUE)
            self._add(self._held[: len(self._held) - keep])
            self._held = self._held[len(self._held) - keep :]
            return False
        followers, rest = _AFTER_VALUE[found[0]], self._held[found.end() :].lstrip()
        if rest.startswith(followers):
            self._add(self._held[: found.start()].removesuffix("\n"))
            self._end_value()
            self._held = rest if found[0] == PARAMETER_END else self._held[found.start() :]
        elif any(tag.startswith(rest) for tag in followers):
            return False
        else:
            self._add(self._held[: found.end()])
            self._held = self._held[found.end() :]
        return True

    def _closing(self) -> bool:
        """After ``</function>``: the end of the call, or another function in the same call."""
        begun = self._held.lstrip()
        if begun.startswith(CALL_END):
            self.rest = begun[len(CALL_END) :]
        elif tag := _FUNCTION_TAG.match(begun):
            self._held = begun[tag.end() :]
            self._begin(tag[1])
        elif CALL_END.startswith(begun) or FUNCTION.startswith(begun) or _FUNCTION_CUT.fullmatch(begun):
            return False
        else:
            self.rest = self._held
        return True

    def _begin(self, name: str) -> None:
        if name not in self._tools:
            logger.warning("The model calls a tool that the request does not have; the client is left to say so")
        self._schema = self._tools.get(name, {})
        self._values = 0
        self._events.append(CallBegun(self.next, name))
        self.next += 1
        self._state = self._parameters

    def _end(self) -> None:
        self._arguments("}" if self._values else "{}")
        self._state = self._closing

    def _begin_value(self, key: str) -> None:
        self._arguments(("{" if not self._values else ", ") + dump(key) + ": ")
        self._values += 1
        types = argument_types(self._schema, key)
        self._types = types if types - {"string"} else None
        if self._types is None:
            self._arguments('"')
        self._value = []
        self._state = self._value_begins

    def _add(self, text: str) -> None:
        if self._types is None:
            self._arguments(dump(text)[1:-1])
        else:
            self._value.append(text)

    def _end_value(self) -> None:
        self._arguments('"' if self._types is None else argument_json("".join(self._value), self._types))
        self._state = self._parameters

    def _finish_value(self, cut: bool) -> None:
        if self._state == self._value_begins:
            self._held = self._held.removeprefix("\n")
        found = _VALUE_END.search(self._held)
        if found is not None:
            self._held = self._held[: found.start()].removesuffix("\n")
        elif cut:  # what may be the beginning of a tag is no part of the value
            keep = max(overlap(self._held, lead + tag) for lead in ("", "\n") for tag in _AFTER_VALUE)
            self._held = self._held[: len(self._held) - keep]
        else:
            self._held = self._held.removesuffix("\n")
        self._add(self._held)
        if cut:
            self._arguments("".join(self._value))
        else:
            self._end_value()

    def _read_json(self, text: str) -> bool:
        call = read_call(text)
        if call is None:
            return False
        self._begin(call.name)
        self._arguments(call.arguments)
        self._state = self._closing
        return True

    def _finish_json(self, cut: bool) -> None:
        text = self._held[: len(self._held) - overlap(self._held, CALL_END)]
        try:
            read = self._read_json(text)
        except UnfinishedError:
            read = False
        if read:
            return
        if not cut:
            self._refuse(self._held)
        elif begun := read_cut_call(text):
            self._begin(begun.name)
            self._arguments(begun.arguments)
        else:
            logger.info("A tool call was cut off before its name")

    def _refuse(self, text: str) -> None:
        """What was taken for a call is text after all, up to ``text``; the rest is to be read as any text."""
        logger.warning("A tool call that the model wrote cannot be read; it is given as text")
        self._events.append(Text(CALL + text))
        self.rest = self._held[len(text) :]

    def _arguments(self, piece: str) -> None:
        if piece:
            self._events.append(CallArguments(self.next - 1, piece))

    def _stray_text(self, text: str) -> None:
        """Text where none belongs is not lost. White space at its ends is."""
        text = self._stray + text
        kept = text.rstrip()
        if kept:
            logger.warning("The model wrote text between a call's parameters; it is given as text")
            self._events.append(Text(kept))
        self._stray = text[len(kept) :]
