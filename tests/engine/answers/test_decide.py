"""Typed questions over one state: what is read, what it becomes, and that nothing is sampled."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from engine import Engine
from engine.answers.asking import CancelledError
from engine.answers.decide import Choice, Multi, Noul, Number, Place, Score, decide, located
from engine.answers.decide.answers import number, softmax
from engine.answers.decide.labels import labels
from engine.answers.decide.prompts import Prompts
from engine.answers.decide.questions import QuestionError
from engine.messages import EngineError, RequestError
from engine.sample.sampler import Sampler
from tests.conftest import LoadTiny
from tests.engine.requests import Passes, read, settled

STATE = "08:01 the pump started\n08:02 pressure 3.1 bar\n08:03 the pump stopped, valve closed by hand\n" * 2
COLOURS = ("red", "green", "blue")


def colour(name: str = "colour") -> Choice:
    return Choice(name, "Which colour is the pump?", COLOURS, COLOURS)


@pytest.fixture
def unsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any sampling step fails the test."""
    monkeypatch.setattr(Sampler, "start", lambda *_, **__: pytest.fail("a token was sampled"))


@pytest.mark.usefixtures("unsampled")
def test_every_type_is_answered_without_sampling(tiny: Engine) -> None:
    questions = [
        Noul("runs", "Is the pump running?"),
        Noul("door", "Is the valve open?", "It is open.", "It is closed."),
        colour(),
        Score("grade", "How bad is it?", ("fine", "bad", "worse"), ("fine", "bad", "worse")),
        Multi("parts", "Which part is named?", ("pump", "valve"), ("pump", "valve")),
    ]
    decision = decide(tiny, STATE, questions)
    assert decision.output_tokens == 0
    assert list(decision.answers) == [question.id for question in questions]
    for question in questions:
        answer = decision.answers[question.id]
        assert not isinstance(answer, EngineError), answer
        assert 0 < answer.mass <= 1 + 1e-9
        sizes = {"runs": 1, "door": 1, "colour": 3, "grade": 3, "parts": 2}
        assert answer.probabilities.shape == (sizes[question.id],)
        if question.id in ("colour", "grade"):
            assert answer.probabilities.sum() == pytest.approx(1)
    grade = decision.answers["grade"]
    assert not isinstance(grade, EngineError)
    assert grade.value == pytest.approx(grade.probabilities @ [0, 1, 2])


def test_probabilities_are_the_labels_logits(tiny: Engine) -> None:
    """Read by hand, with the prompt written out as the chat template writes it."""
    body = "Which colour is the pump?\nA. red\nB. green\nC. blue\nAnswer with the letter only."
    messages = [{"role": "system", "content": STATE}, {"role": "user", "content": body}]
    tokens = tuple(token for _, token in labels(tiny.tokenizer, 3))
    assert [label for label, _ in labels(tiny.tokenizer, 3)] == ["A", "B", "C"]
    by_hand = read(tiny, tiny.chat_prompt(messages).ids, labels=tokens).scores
    assert by_hand is not None
    assert by_hand.labels is not None
    wanted, mass = softmax(by_hand.labels)
    answer = decide(tiny, STATE, [colour()]).answers["colour"]
    assert not isinstance(answer, EngineError)
    if np.diff(np.sort(wanted)[-2:])[0] >= 0.1:
        np.testing.assert_allclose(answer.probabilities, wanted, atol=1e-5)
        assert answer.mass == pytest.approx(mass, abs=1e-5)


def test_close_options_are_read_in_both_orders(load_tiny: LoadTiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """The average over two orders does not favour a place."""
    engine = load_tiny()
    monkeypatch.setattr("engine.answers.decide.asker.CLOSE", 2.0)
    forth = decide(engine, STATE, [colour()]).answers["colour"]
    back = decide(engine, STATE, [Choice("colour", "Which colour is the pump?", COLOURS[::-1], COLOURS[::-1])])
    other = back.answers["colour"]
    assert not isinstance(forth, EngineError)
    assert not isinstance(other, EngineError)
    np.testing.assert_allclose(forth.probabilities, other.probabilities[::-1], atol=1e-5)


def test_the_state_is_read_once(load_tiny: LoadTiny, passes: Passes) -> None:
    """The first question leaves a snapshot, the others go in waves as wide as there are lanes; the same state later
    starts from it too."""
    engine = load_tiny(lanes=3, max_context=512)
    questions = [Noul(f"q{n}", f"Is number {n} named anywhere?") for n in range(7)]
    decision = decide(engine, STATE, questions)
    lengths = [[run.length for run in runs] for runs in passes.runs]
    assert [len(runs) for runs in lengths] == [1, 1, 3, 3]
    state = lengths[0][0]
    assert state > 100
    assert all(length < 60 for runs in lengths[1:] for length in runs)
    assert decision.cached_tokens == 6 * state
    later = decide(engine, STATE, [colour()])
    assert later.cached_tokens >= state
    assert settled(engine).tokens_generated == 0


def test_numbers_are_read_digit_by_digit(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "start", lambda *_, **__: pytest.fail("a token was sampled"))
    decision = decide(tiny, STATE, [Number("bar", "What was the pressure?", 3), Number("part", "Which part?", 2, True)])
    assert decision.output_tokens == 5
    bar, part = decision.answers["bar"], decision.answers["part"]
    assert not isinstance(bar, EngineError)
    assert not isinstance(part, EngineError)
    assert bar.probabilities.shape == (3, 10)
    assert bar.value == float("".join(str(place.argmax()) for place in bar.probabilities))
    assert bar.uncertainty is not None
    assert bar.uncertainty > 0
    assert part.value is not None
    assert 0 <= part.value < 1


def test_a_chain_of_digits() -> None:
    sure = np.eye(10)
    assert number([sure[3], sure[0], sure[7]], fraction=False) == (307, 0)
    assert number([sure[3], sure[5]], fraction=True) == (pytest.approx(0.35), 0)
    half = (sure[4] + sure[6]) / 2
    assert number([sure[1], half], fraction=False) == (14, pytest.approx(2**0.5))


def test_a_place_is_one_chain_of_digits(tiny: Engine, passes: Passes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sampler, "start", lambda *_, **__: pytest.fail("a token was sampled"))
    image = tiny.prepare_image(Image.fromarray(np.full((64, 64, 3), 90, np.uint8)))
    decision = decide(tiny, [{"type": "image", "image": image}], [Place("save", "the Save button")])
    answer = decision.answers["save"]
    assert not isinstance(answer, EngineError)
    assert (decision.output_tokens, answer.probabilities.shape) == (6, (6, 10))
    # Each digit is read behind what was written before it, and only that is read again.
    chosen = [str(place.argmax()) for place in answer.probabilities]
    last = Prompts(tiny.loaded, [{"type": "image", "image": image}]).digit(Place("save", "?"), list(map(int, chosen)))
    written = tiny.tokenizer.decode(list(last.prompt.ids)).rpartition("{")[2]
    assert written == f'"x":{"".join(chosen[:3])},"y":{"".join(chosen[3:])}'
    assert max(sum(run.length for run in runs) for runs in passes.runs[-5:]) <= len('d,"y":')


def test_where_the_digits_of_a_place_point() -> None:
    sure = np.eye(10)
    point = located(np.stack([sure[d] for d in (2, 5, 0, 9, 9, 9)]))
    assert point.middle == pytest.approx((0.2505, 0.9995))
    assert (point.spread, point.confidence) == ((0, 0), 1)
    unsure = located(np.stack([(sure[2] + sure[4]) / 2, *(sure[d] for d in (5, 0, 9, 9, 9))]))
    assert (unsure.spread[0], unsure.confidence) == (pytest.approx(0.1414, abs=1e-4), 0.5)
    assert unsure.edges == pytest.approx((0.1091, 0.9995, 0.3919, 0.9995), abs=1e-4)
    box = located(np.stack([sure[d] for d in (8, 0, 0, 1, 0, 0, 4, 0, 0, 3, 0, 0)]))  # right edge first
    assert box.edges == pytest.approx((0.4005, 0.1005, 0.8005, 0.3005))
    assert box.middle == pytest.approx((0.6005, 0.2005))


def test_a_state_with_a_picture(tiny: Engine) -> None:
    image = tiny.prepare_image(Image.fromarray(np.full((64, 64, 3), 90, np.uint8)))
    state = [{"type": "text", "text": "A screen:"}, {"type": "image", "image": image}]
    decision = decide(tiny, state, [Noul("dark", "Is it dark?"), colour()])
    assert decision.cached_tokens > 64  # the second starts behind the picture
    assert not any(isinstance(answer, EngineError) for answer in decision.answers.values())


def test_labels_are_single_tokens(ember: Engine) -> None:
    found = labels(ember.tokenizer, 256)
    assert len({token for _, token in found}) == 256
    assert [label for label, _ in found[:62]] == [*map(chr, (*range(65, 91), *range(97, 123), *range(48, 58)))]
    assert all(ember.tokenizer.decode([token]) == label for label, token in found)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Choice("x", "?", ("a",), ("a",)), "2 to 256 options"),
        (lambda: Choice("x", "?", ("a", "a"), ("a", "b")), "same name"),
        (lambda: Choice("x", "?", ("a", "b"), ("a", " ")), "empty"),
        (lambda: Choice("x", " ", COLOURS, COLOURS), "in words"),
        (lambda: Noul("x", "?", "yes", None), "both"),
        (lambda: Number("x", "?", 0), "1 to 9"),
    ],
)
def test_questions_that_cannot_be_asked(make, message: str) -> None:
    with pytest.raises(QuestionError, match=message) as caught:
        make()
    assert (caught.value.status, caught.value.question) == (422, "x")


def test_the_whole_request_is_refused_when_nothing_can_be_asked(tiny: Engine) -> None:
    with pytest.raises(RequestError, match="at least one"):
        decide(tiny, STATE, [])
    with pytest.raises(RequestError, match="own"):
        decide(tiny, STATE, [colour("a"), colour("a")])


def test_a_fault_is_its_questions_alone(load_tiny: LoadTiny) -> None:
    engine = load_tiny(max_context=512)
    long = Noul("long", "Is this so? " * 200)
    decision = decide(engine, STATE, [colour(), long])
    assert isinstance(decision.answers["long"], RequestError)
    assert not isinstance(decision.answers["colour"], EngineError)


def test_cancelling(load_tiny: LoadTiny) -> None:
    engine = load_tiny()
    asked = iter([False, True])
    with pytest.raises(CancelledError):
        decide(engine, STATE, [colour(), Noul("b", "Is it?")], cancelled=lambda: next(asked, True))
    settled(engine)
