"""A text in any form as a corpus of the kind that it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import cast

from engine.answers.fold.fold import Fold, fold
from engine.answers.fold.records import find_records, parse
from engine.answers.fold.source import OnBytes, Source
from engine.answers.fold.store import Given
from engine.answers.locate.corpus import Corpus, LogCorpus, ProseCorpus, RecordCorpus
from engine.answers.segments import KINDS, is_log, sentences_of
from engine.messages import RequestError


def corpus_of(opened: ExitStack, state: object, kind: str, within: str, on_bytes: OnBytes) -> Corpus:
    """``opened`` closes what is opened here.

    Raises:
        RequestError: an unknown kind, no text, records asked of a text that has none.
        EngineError: the text cannot be read.
    """
    if kind not in KINDS:
        raise RequestError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}.", code="unknown_kind", param="kind")
    if isinstance(state, Fold):
        if kind in ("auto", "log"):
            return LogCorpus(state)
        state = state.source
    if isinstance(state, Sequence) and not isinstance(state, str | bytes | bytearray | memoryview):
        return RecordCorpus(ListedRecords(state))
    source = state if isinstance(state, Source) else opened.enter_context(Source(cast("Given", state), on_bytes))
    if not any(line.strip("\ufeff \t\r\n") for line in source.every_line()):
        raise RequestError("The text is empty; there is nothing to find in it.", code="empty_state", param="state")
    if within or kind in ("auto", "records"):
        records = find_records(source, within)
        if records is not None:
            return RecordCorpus(records)
        if kind == "records":
            raise RequestError(
                "The text holds no records: send a JSON array or one JSON object a line, or ask with kind auto.",
                code="no_records",
            )
    if kind == "prose" or (kind == "auto" and not is_log(source)):
        return ProseCorpus(sentences_of(source))
    return LogCorpus(fold(source, on_bytes))


class ListedRecords:
    """Elements of an array as records; the line of one is its place in the array, from 1."""

    def __init__(self, elements: Sequence[object]) -> None:
        self._texts = [e if isinstance(e, str) else json.dumps(e, ensure_ascii=False) for e in elements]

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, number: int) -> str:
        return self._texts[number]

    def pointer(self, number: int) -> str:
        return f"/{number}"

    def line(self, number: int) -> int:
        return number + 1

    def values(self) -> Iterator[object]:
        return map(parse, self._texts)
