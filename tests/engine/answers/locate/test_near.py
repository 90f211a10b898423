"""Words that a model has near each other, and the rows of a log that are asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from engine.answers.fold.fold import fold
from engine.answers.fold.source import Source
from engine.answers.locate import locate, run
from engine.answers.locate.corpus import LogCorpus
from engine.answers.locate.lexical import blocks_of, rarity
from engine.answers.locate.likely import FIRST, FRAME, GRAVE, likely
from engine.answers.locate.near import SAME, Floats, nearness
from engine.answers.locate.vectors import PIECES, WordVectors, word_vectors
from engine.text.tokenizer import Tokenizer
from tests.conftest import LoadTiny
from tests.tiny import EMBER


class Given:
    """Vectors by word; other words are near nothing."""

    def __init__(self, **vectors: Sequence[float]) -> None:
        self._vectors = vectors

    def of(self, words: Sequence[str]) -> Floats:
        return np.array([self._vectors.get(word, (0, 0, 0)) for word in words], np.float32).reshape(-1, 3)


VECTORS = Given(refused=(1, 0, 0), denied=(0.4, 0.9165, 0), guest=(0, 0, 1), against=(-1, 0, 0))


def near(question: str, *texts: str) -> list[float]:
    return nearness(blocks_of(texts), len(texts), question, VECTORS).tolist()


def test_the_nearest_word_of_a_segment_counts_with_how_rare_both_are() -> None:
    refused, denied, against, nothing = near("Refused", "it was refused, denied", "was DENIED", "against", "idle")
    weight = np.sqrt([rarity(1, 4) / rarity(0, 4), rarity(2, 4) / rarity(0, 4)])
    held = np.array([1 * weight[0], 0.4 / SAME * weight[1]])
    assert [refused, denied] == pytest.approx(held * rarity(float(held.sum()), 4), rel=1e-4)
    assert (against, nothing) == (0, 0)


def test_words_that_are_written_together_are_told_apart() -> None:
    assert near("refused", "ConnectionRefusedError", "connectionrefusederror")[0] > 0
    assert near("refused", "ConnectionRefusedError", "connectionrefusederror")[1] == 0
    assert near("guest", "GUEST_denied", "x")[0] > 0


def test_what_says_nothing_is_near_nothing() -> None:
    assert near("the of 17", "the refused", "b") == [0, 0]
    assert near("refused") == []
    assert near("refused", "", "1 2 3") == [0, 0]


def test_blocks_go_on_where_the_one_before_ends() -> None:
    found = nearness([b"a\nguest\n", b"b\nc\nguest\n"], 5, "guest", VECTORS)
    assert np.flatnonzero(found).tolist() == [1, 4]


def test_vectors_of_words() -> None:
    random = np.random.default_rng(1)
    tokenizer = Tokenizer(EMBER)
    embedding = random.normal(size=(len(tokenizer), 6)).astype(np.float16)
    common = np.array([3, 0, 0, 0, 0, 4], np.float16)
    embedding += random.normal(size=(len(tokenizer), 1)).astype(np.float16) * common
    vectors = WordVectors(embedding, tokenizer)
    word, other, data = vectors.of(["server", "denied", "qzjxkvwpfhgq"])
    assert np.linalg.norm([word, other], axis=1) == pytest.approx([1, 1], rel=1e-3)
    assert abs(word @ common) / 5 < 0.05  # what all have in common is taken out
    assert len(tokenizer.encode(" qzjxkvwpfhgq")) > PIECES
    assert not data.any()
    assert np.array_equal(vectors.of(["server"])[0], word)


LOG = """\
10:00:00 INFO  ready
10:00:01 ERROR request failed
  File "a.py", line 3, in refused
    refused(x)
ValueError: refused
10:00:02 INFO  refused politely
10:00:03 WARN  late
"""


def test_an_event_counts_more_than_its_frames() -> None:
    with Source(LOG) as source:
        scores = np.array([0, 0, 2, 1, 3, 2, 0], np.float32)
        found = likely(LogCorpus(fold(source)), scores)
    gain = GRAVE * 3
    expected = [0, FIRST * 3 + gain, FRAME * 2, FRAME * 1, 3, 2, gain]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


def test_of_a_trace_the_cause_is_read_with_its_first_line() -> None:
    with Source(LOG) as source:
        corpus = LogCorpus(fold(source))
        assert corpus.shown(1) == "10:00:01 ERROR request failed ValueError: refused"
        assert [corpus.shown(unit) for unit in (0, 2, 4, 5)] == [LOG.split("\n")[unit] for unit in (0, 2, 4, 5)]
    java = "10:00:00 ERROR failed\njava.io.IOException: full\n\tat A.b(A.java:1)\nCaused by: X: y\n\tat C.d(C.java:2)\n"
    with Source(java + "10:00:01 INFO on\n") as source:
        assert LogCorpus(fold(source)).shown(0) == "10:00:00 ERROR failed java.io.IOException: full Caused by: X: y"


def test_near_words_are_looked_for_where_the_head_list_says_so(
    load_tiny: LoadTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the tiny model's random embedding no two words are near, so that a word's own row comes first."""
    asked: list[str] = []
    real = run.nearness

    def counted(blocks: Iterable[bytes], segments: int, question: str, vectors: WordVectors) -> Floats:
        asked.append(question)
        return real(blocks, segments, question, vectors)

    monkeypatch.setattr(run, "nearness", counted)
    tiny = load_tiny()
    text = "".join(f"10:00:{n:02} INFO {'kernel' if n == 7 else 'nginx'} is well\n" for n in range(30))
    for near in (0.0, 1.0):
        readout = replace(tiny.loaded.heads.readouts["line"], near=near, words=1000.0)
        monkeypatch.setattr(run, "readout_for", lambda *_, readout=readout: (readout, ""))
        assert locate(tiny, text, "What of the kernel?", kind="log").line == 8
    assert asked == ["What of the kernel?"]
    assert word_vectors(tiny) is word_vectors(tiny)
    monkeypatch.setattr(run, "WITHIN", 10)
    locate(tiny, text, "What of the kernel?", kind="log")
    assert len(asked) == 1  # every word of a long text would have to be looked at


def test_a_log_without_rows_stays_as_it_is() -> None:
    with Source("x") as source:
        assert likely(LogCorpus(fold(source)), np.zeros(0, np.float32)).tolist() == []
