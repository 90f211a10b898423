"""Pairs of cloud services, rules of linters, errors and docstrings, from inputs as their packages have them."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path

import pytest

from assets.ember.recipe.pairs import docstrings, names, rules, services


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("DeleteBucketPolicy", "delete bucket policy"),
        ("max_open-files", "max open files"),
        ("CreateDBSnapshot", "create DB snapshot"),
        ("ERR_TLS_HANDSHAKE", "err tls handshake"),
    ],
)
def test_names_in_words(name: str, words: str) -> None:
    assert names.in_words(name) == words


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<p>Stops the <code>Task</code>, i.e. <a href='x'>a run</a>.</p> <p>More.</p>", "Stops the Task, i.e. a run."),
        ("Optional. How long to wait. Default is 3.", "How long to wait."),
        ("Raised by :class:`~a.Query` when ``rows`` are *missing*.", "Raised by ~a.Query when rows are missing."),
        ("See the [guide](https://example.org) of _all_ keys", "See the guide of all keys"),
        ("Cut off in the middle,", ""),
    ],
)
def test_first_sentence(text: str, sentence: str) -> None:
    assert names.first_sentence(text).replace("~", "") == sentence.replace("~", "")


@pytest.mark.parametrize(
    ("question", "text", "good"),
    [
        ("The request was denied because too many were sent.", "ThrottlingException", True),
        ("Deletes the specified bucket policy.", "delete bucket policy", False),
        ("This operation is not supported for your account.", "put record", False),
        ("See https://example.org for how queues are drained.", "drain queue", False),
        ("Gibt an, wie viele Zeilen für den Text nötig sind.", "line count", False),
    ],
)
def test_what_is_worth_learning(question: str, text: str, good: bool) -> None:
    assert names.worth((question, text)) is good


def test_a_question_stands_once_and_a_text_at_most_twice() -> None:
    said = [
        "How long a caller waits for data.",
        "Seconds until an idle peer is dropped.",
        "Limit of a slow upstream reply.",
    ]
    pairs = [(said[0], "read timeout"), (said[0], "wait limit"), (said[1], "read timeout"), (said[2], "readTimeout")]
    assert list(names.distinct(pairs)) == [pairs[0], pairs[2]]


AMAZON = {
    "operations": {
        "StopRun": {"documentation": "<p>Halts what was begun.</p>", "errors": [{"shape": "BusyException"}]}
    },
    "shapes": {
        "BusyException": {"exception": True, "documentation": "<p>Another worker holds the lock.</p>"},
        "StopRunRequest": {"members": {"RunId": {"documentation": "<p>Which execution to halt.</p>"}, "Name": {}}},
    },
}


def test_amazon(tmp_path: Path) -> None:
    found = dict(services.of_amazon(AMAZON, random.Random(0)))
    assert names.in_words(found["Halts what was begun."]) == "stop run"
    assert "Which execution to halt." in found
    assert "" not in found
    logged = {dict(services.of_amazon(AMAZON, random.Random(s)))["Another worker holds the lock."] for s in range(20)}
    assert "An error occurred (BusyException) when calling the StopRun operation" in logged
    assert len(logged) == 2
    with zipfile.ZipFile(tmp_path / "botocore-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("botocore/data/runs/2020-01-01/service-2.json", json.dumps({"operations": {}}))
        wheel.writestr("botocore/data/runs/2024-01-01/service-2.json", json.dumps(AMAZON))
    assert "Another worker holds the lock." in dict(services.amazon(tmp_path))


def test_google() -> None:
    method = {"id": "queue.projects.topics.drain", "description": "Throws away all that waits."}
    state = {"enum": ["X_UNSPECIFIED", "CLOGGED"], "enumDescriptions": ["Unknown.", "Nothing leaves any more."]}
    api = {
        "resources": {"projects": {"resources": {"topics": {"methods": {"drain": method}}}}},
        "schemas": {
            "Topic": {"properties": {"state": state, "ackDeadline": {"description": "Optional. Time to answer."}}}
        },
    }
    found = dict(services.of_google(api, random.Random(0)))
    assert found["Throws away all that waits."] == "drain topics"
    assert found["Nothing leaves any more."] == "CLOGGED"
    assert names.in_words(found["Time to answer."]) == "ack deadline"
    assert "Unknown." not in found


def test_kubernetes() -> None:
    source = """
class V1Pod:
    max_surge: int = Field(default=None, serialization_alias="maxSurge", description="maxSurge is how many fit. X.")
    other: int = 3
"""
    ((question, text),) = services.of_kubernetes(source)
    assert (question, names.in_words(text)) == ("This is how many fit.", "max surge")


def test_ruff() -> None:
    explanation = (
        "## What it does\nChecks for imports that nothing needs.\n\n## Why is this bad?\nThey slow the start.\n"
    )
    rule = {"name": "unused-import", "summary": "`{name}` imported but unused", "explanation": explanation}
    pairs = list(rules.of_ruff([rule]))
    assert pairs[0][0] == "Imports that nothing needs."
    assert pairs[0][1].endswith("' imported but unused")
    assert pairs[1][0] == pairs[2][0] == "They slow the start."


def test_rules_of_scripts() -> None:
    source = """
    meta: { docs: { description: "disallow code that never runs", recommended: true },
        messages: {
            dead: "Unreachable statement after '{{name}}'.",
            other: "Something else.",
        },
    """
    (named, told) = rules.of_script(source, "no-unreachable")
    assert named[0] == told[0] == "Disallow code that never runs"
    assert names.in_words(named[1]) == "no unreachable"
    assert told[1].startswith("Unreachable statement after '")
    assert "{" not in told[1]


@pytest.mark.parametrize(
    "message", ["Expected {{count}} spaces", "Replace '{{name}}' with a constant", "Use `{{kind}}`"]
)
def test_messages_whose_holes_nobody_can_fill(message: str) -> None:
    assert rules.filled(message) == ""


def test_errors() -> None:
    node = "<h4><code>ERR_A</code><span></span></h4>\n<blockquote><p>Old</p></blockquote>\n<p>Left out.</p>\n"
    node += "<h4><code>ERR_LATE_REPLY</code><span></span></h4>\n<p>The <code>peer</code> took\ntoo long. It did.</p>"
    ((question, text),) = rules.of_node(node)
    assert question == "The peer took too long."
    assert text in ("ERR_LATE_REPLY", "late reply")
    python = (
        '<dt class="sig py" id="KeyError">\n<em>exception</em></dt>\n<dd><p>Raised when a mapping lacks it.</p></dd>'
    )
    ((question, text),) = rules.of_python(python)
    assert question == "A mapping lacks it."
    assert names.in_words(text) == "key error"
    script = """
  Do_not_write: diag(6012, 3 /* Message */, "Do_not_write_6012", "Write no files."),
    name: "noEmit",
    type: "boolean",
    description: Diagnostics.Do_not_write,
"""
    assert list(rules.of_options(script)) == [("Write no files.", "noEmit")]


def test_docstrings() -> None:
    source = '''
def drop_idle(pool):
    """Close what nobody uses.

    Longer.
    """
def _hidden_one():
    """Not this."""
def single():
    """Nor this."""
'''
    ((question, text),) = docstrings.of_source(source)
    assert question == "Close what nobody uses."
    assert names.in_words(text) == "drop idle"


def test_types() -> None:
    source = """
  /**
   * Whether the {@link Window} may be enlarged. Default true.
   * @since 3
   */
  readonly isResizable?: boolean;
"""
    ((question, text),) = docstrings.of_types(source)
    assert question == "Whether the Window may be enlarged."
    assert names.in_words(text) == "is resizable"
