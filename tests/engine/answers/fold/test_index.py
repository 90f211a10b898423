"""What questions restrict, and what is left of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers.fold.index import Restriction, Span, Window, read_question
from engine.answers.fold.moments import DAY, HOUR, MINUTE, SECOND, Moment


def at(hour: int, minute: int = 0, second: int = 0, unit: int = MINUTE, **date: int) -> Moment:
    return Moment(**date, clock=hour * HOUR + minute * MINUTE + second * SECOND, unit=unit)


ORDERS = [
    ("When did the replica first lose its connection?", 1, 1, "When did the replica lose its connection?"),
    ("What is the first request that got 503?", 1, 1, "What is the request that got 503?"),
    ("the very first error", 1, 1, "the error"),
    ("Where did deploy present a wrong key for the first time?", 1, 1, "Where did deploy present a wrong key?"),
    ("When was the last time root logged in?", -1, 1, "When was root logged in?"),
    ("What was the last checkpoint?", -1, 1, "What was the checkpoint?"),
    ("the most recent failed login", -1, 1, "the failed login"),
    ("latest restart", -1, 1, "restart"),
    ("earliest warning about memory", 1, 1, "warning about memory"),
    ("final message of the worker", -1, 1, "message of the worker"),
    ("the second restart", 2, 1, "the restart"),
    ("When did it fail for the third time?", 3, 1, "When did it fail?"),
    ("the 3rd deadlock", 3, 1, "the deadlock"),
    ("which is the 21st connection", 21, 1, "which is the connection"),
    ("the second to last checkpoint", -2, 1, "the checkpoint"),
    ("penultimate save", -2, 1, "save"),
    ("next-to-last restart", -2, 1, "restart"),
    ("the last 5 errors", -1, 5, "the errors"),
    ("the first three logins", 1, 3, "the logins"),
    ("When did the disk fail first?", 1, 1, "When did the disk fail?"),
    ("Which worker stopped last and why", -1, 1, "Which worker stopped and why"),
]


@pytest.mark.parametrize(("question", "order", "take", "remaining"), ORDERS)
def test_order(question: str, order: int, take: int, remaining: str) -> None:
    assert replace(read_question(question), level=None) == Restriction(remaining.strip(), order, take)


@pytest.mark.parametrize(
    "question",
    [
        "Which request took more than one second?",
        "How long did the backup last?",
        "Did the outage last for hours",
        "the Last-Modified header is missing",
        "first-class passengers",
        "What is the first name of the customer?",
        "database system was interrupted; last known up",
        "first and last login",
        "Who logged in yesterday?",
        "What happened last night?",
        "errors of the last week",
        "errors in the last hour",
        "the last few minutes",
        "Saving the final RDB snapshot before exiting",
        "oldest xmin is far in the past",
        "Which line says that VACUUM cannot run inside a transaction block?",
        'Which line says "first packet"?',
        "Who got 'last call' as a message?",
        "third-party cookie",
        "take the second half of the file",
        "What happened before the restart?",
        "after the deadlock",
        "between two checkpoints",
        "Which address is 127.0.0.1:5432?",
        "at 25:99",
        "on Feb 30",
        "How many bytes were freed?",
        "How many seconds did it take?",
        "How many replicas does the master have?",
        "What number of MB is used?",
        "Count: 17 rows",
        "Which account counts as locked?",
        "Where does it admit defeat?",
        "",
    ],
)
def test_nothing_is_restricted(question: str) -> None:
    restriction = read_question(question)
    assert restriction.empty
    assert restriction.remaining == question


WINDOWS = [
    ("What happened at 14:02?", Window("at", at(14, 2)), "What happened?"),
    ("errors on Mar 1", Window("at", Moment(None, 3, 1)), "errors"),
    ("14:02:33 login", Window("at", at(14, 2, 33, SECOND)), "login"),
    ("Who logged in during 2026-03-01?", Window("at", Moment(2026, 3, 1)), "Who logged in?"),
    ("errors after 14:02", Window("after", at(14, 2)), "errors"),
    ("errors later than 2 pm", Window("after", at(14, unit=HOUR)), "errors"),
    ("logins since Mar 1", Window("since", Moment(None, 3, 1)), "logins"),
    ("logins from 14:00 on", Window("since", at(14)), "logins on"),
    ("Which replica was lost before 14:02?", Window("before", at(14, 2)), "Which replica was lost?"),
    ("saves prior to noon", Window("before", at(12)), "saves"),
    ("saves until 14:02:10", Window("until", at(14, 2, 10, SECOND)), "saves"),
    ("Was it up by 3 o'clock?", Window("until", at(3, unit=HOUR)), "Was it up?"),
    ("what broke around 14:02", Window("around", at(14, 2)), "what broke"),
    ("what broke at about 2 pm", Window("around", at(14, unit=HOUR)), "what broke"),
    ("refused between 14:00 and 14:05", Window("between", at(14), at(14, 5)), "refused"),
    ("refused from 14:00 to 14:05", Window("between", at(14), at(14, 5)), "refused"),
    ("14:00-14:05 refused", Window("between", at(14), at(14, 5)), "refused"),
    ("between Mar 1 and Mar 3, who?", Window("between", Moment(None, 3, 1), Moment(None, 3, 3)), "who?"),
    (
        "between 2026-03-01 23:50 and 00:10 errors",
        Window("between", at(23, 50, year=2026, month=3, day=1), at(0, 10, year=2026, month=3, day=1)),
        "errors",
    ),
    (
        "errors between 14:00 and 15:00 on Mar 1",
        Window("between", at(14, month=3, day=1), at(15, month=3, day=1)),
        "errors",
    ),
    ("errors on March 3rd, 2026 at 2 pm", Window("at", at(14, unit=HOUR, year=2026, month=3, day=3)), "errors"),
    ("in the last 10 minutes: errors", Span(10 * MINUTE, from_end=True), "errors"),
    ("errors within the first 5 minutes", Span(5 * MINUTE, from_end=False), "errors"),
    ("errors in the first hour of the log", Span(HOUR, from_end=False), "errors"),
    ("errors of the final 30 seconds", Span(30 * SECOND, from_end=True), "errors of"),
    ("disk errors over the last two days", Span(2 * DAY, from_end=True), "disk errors"),
    ("in the first half an hour, saves", Span(30 * MINUTE, from_end=False), "saves"),
]


@pytest.mark.parametrize(("question", "window", "remaining"), WINDOWS)
def test_windows_of_time(question: str, window: Window | Span, remaining: str) -> None:
    restriction = read_question(question)
    assert (restriction.window, restriction.remaining) == (window, remaining)
    assert restriction.order is None
    assert not restriction.count


COUNTS = [
    ("How many times was root refused?", "was root refused?"),
    ("How often did it save?", "did it save?"),
    ("number of times the cache was flushed", "the cache was flushed"),
    ("What is the number of deadlocks?", "deadlocks?"),
    ("How many connections were refused?", "connections were refused?"),
    ("Count the deadlocks", "deadlocks"),
    ("count of failed logins", "failed logins"),
    ("How many lines mention the replica?", "lines mention the replica?"),
    ("how frequently was the disk full", "was the disk full"),
]


@pytest.mark.parametrize(("question", "remaining"), COUNTS)
def test_counts(question: str, remaining: str) -> None:
    assert read_question(question) == Restriction(remaining, count=True)


def test_all_at_once() -> None:
    both = read_question("When did the replica first lose its connection after 14:02?")
    assert both == Restriction("When did the replica lose its connection?", 1, 1, Window("after", at(14, 2)))
    count = read_question("How many logins failed between 14:00 and 14:05?")
    assert count == Restriction("logins failed?", None, 1, Window("between", at(14), at(14, 5)), count=True)


def test_right_before_and_right_after_are_the_nearest() -> None:
    assert read_question("What was logged right before 14:02?").order == -1
    assert read_question("what was logged immediately after 14:02?").order == 1
    assert read_question("the first error shortly before 14:02").order == 1


@pytest.mark.parametrize(
    ("question", "bare"),
    [
        ("What happened at 14:02?", True),
        ("first line", True),
        ("Show me the last entry of the log", True),
        ("What was logged right before 14:02:33?", True),
        ("What did the replica do at 14:02?", False),
        ("the first error", False),
        ("How many lines are there?", True),
    ],
)
def test_whether_anything_is_left_to_look_for(question: str, bare: bool) -> None:
    assert read_question(question).bare == bare


@given(st.text(max_size=120) | st.lists(st.sampled_from(ORDERS + WINDOWS + COUNTS).map(lambda c: c[0])).map(" ".join))
def test_any_question_is_read_without_a_fault(question: str) -> None:
    restriction = read_question(question)
    assert restriction.take >= 1
    assert restriction.order != 0
    # Nothing is made up, and nothing is left out of a question that restricts nothing.
    letters = iter(question)
    assert all(letter in letters for letter in restriction.remaining.replace(" ", ""))
    if restriction.empty:
        printable = re.sub(r"[\x00-\x1f\x7f]", " ", question)
        assert restriction.remaining == " ".join(printable.split())


@pytest.mark.parametrize(
    "piece", ["did last ", "how many a ", '"', "between 14:02 and ", "the first ", "' ", "1 ", "march ", "right at "]
)
def test_very_long_questions_end(piece: str) -> None:
    """Patterns that try every way to match would not."""
    assert read_question(piece * 3000).take == 1
