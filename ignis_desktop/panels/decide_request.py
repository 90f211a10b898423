"""A decide request as it is built in the window, and as the file that ``ignis decide`` reads."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ignis_desktop.store.chats import Picture
from ignis_desktop.widgets.texts import tr

TYPES = ("noul", "choice", "score", "multi", "number", "locate", "point", "box")
_ALIASES = {"boolean": "noul", "scalar": "number"}
_OPTIONED = ("choice", "score", "multi")
_URI = re.compile(r"data:image/[\w.+-]+;base64,", re.ASCII)
_MAGIC = (
    (b"\x89PNG", "png"),
    (b"\xff\xd8", "jpeg"),
    (b"GIF8", "gif"),
    (b"RIFF", "webp"),
    (b"BM", "bmp"),
)


@dataclass(frozen=True)
class Draft:
    """``evidence``: a text, or with ``is_json`` JSON as it was written; ``questions``: by id, in order."""

    evidence: str = ""
    is_json: bool = False
    pictures: tuple[Picture, ...] = ()
    questions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def kind_of(question: Mapping[str, Any]) -> str:
    """The type without its aliases."""
    return _ALIASES.get(str(question.get("type")), str(question.get("type")))


def request_text(draft: Draft) -> str:
    """The request as JSON, laid out for people. Numbers of JSON evidence stay as they were written."""
    questions = ",\n".join(f"  {_json(name)}: {_json(dict(body))}" for name, body in draft.questions.items())
    return f'{{\n "state": {_state(draft)},\n "questions": {{\n{questions}\n }}\n}}\n'


def _state(draft: Draft) -> str:
    if not draft.pictures:
        return draft.evidence.strip() if draft.is_json else _json(draft.evidence)
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": uri(p.data)}} for p in draft.pictures]
    if draft.evidence.strip():
        parts.append({"type": "text", "text": draft.evidence})
    return "[\n  " + ",\n  ".join(map(_json, parts)) + "\n ]"


def uri(data: bytes) -> str:
    """An encoded picture as a data URI."""
    kind = next((kind for magic, kind in _MAGIC if data.startswith(magic)), "png")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def read_request(text: str) -> Draft:
    """Raises ``ValueError`` with one sentence for a file that is none."""
    try:
        body = json.loads(text)
    except ValueError as error:
        raise ValueError(tr("decide.not_json", reason=str(error))) from None
    if not isinstance(body, dict) or "state" not in body or not isinstance(body.get("questions"), dict):
        raise ValueError(tr("decide.no_request"))
    questions = body["questions"]
    for name, question in questions.items():
        if not isinstance(question, dict) or kind_of(question) not in TYPES:
            raise ValueError(tr("decide.unknown_type", name=name, types=", ".join(TYPES)))
    state = body["state"]
    if isinstance(state, str):
        return Draft(state, questions=questions)
    if isinstance(state, list) and state and all(_is_part(part) for part in state):
        pictures = [_picture(part, i) for i, part in enumerate(state, 1) if part["type"] == "image_url"]
        texts = [part["text"] for part in state if part["type"] == "text"]
        return Draft("\n".join(texts), pictures=tuple(pictures), questions=questions)
    return Draft(dict(_members(text))["state"], is_json=True, questions=questions)


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and (
        part.get("type") == "image_url" or (part.get("type") == "text" and isinstance(part.get("text"), str))
    )


def _picture(part: Mapping[str, Any], number: int) -> Picture:
    link = part.get("image_url")
    url = link.get("url") if isinstance(link, dict) else link
    head = _URI.match(url) if isinstance(url, str) else None
    if head is None:
        raise ValueError(tr("decide.no_picture", number=number))
    try:
        return Picture(tr("decide.picture", number=number), base64.b64decode(str(url)[head.end() :], validate=True))
    except (binascii.Error, ValueError):
        raise ValueError(tr("decide.no_picture", number=number)) from None


def _members(text: str) -> Iterator[tuple[str, str]]:
    """Names of an object's members with their values as they were written."""
    decoder = json.JSONDecoder()

    def skip(at: int) -> int:
        while text[at : at + 1].isspace():
            at += 1
        return at

    at = skip(skip(0) + 1)
    while text[at] == '"':
        name, at = decoder.raw_decode(text, at)
        start = skip(skip(at) + 1)
        _, end = decoder.raw_decode(text, start)
        yield name, text[start:end]
        at = skip(end)
        at = skip(at + 1) if text[at] == "," else at


# What is wrong with it


def faults(draft: Draft) -> dict[tuple[str, str], str]:
    """(question's id, its field) → a sentence that says what to do; the evidence's are those of ("", "state")."""
    found: dict[tuple[str, str], str] = {}
    if not draft.pictures and not draft.evidence.strip():
        found["", "state"] = tr("decide.no_evidence")
    elif draft.is_json and not draft.pictures and (reason := json_fault(draft.evidence)):
        found["", "state"] = reason
    for name, question in draft.questions.items():
        kind = kind_of(question)
        if not str(question.get("instructions") or question.get("question") or "").strip():
            found[name, "instructions"] = tr("decide.no_instructions")
        if kind in _OPTIONED:
            options = question.get("options", question.get("levels", ()))
            if len(options) < 2:
                found[name, "options"] = tr("decide.few_options")
            elif len(options) > 256:
                found[name, "options"] = tr("decide.many_options", count=len(options))
            elif isinstance(options, list) and len(set(options)) < len(options):
                found[name, "options"] = tr("decide.same_options")
        if kind == "noul" and bool(question.get("true")) != bool(question.get("false")):
            found[name, "options"] = tr("decide.one_text")
        if kind in ("point", "box") and not draft.pictures:
            found[name, "type"] = tr("decide.point_needs_picture")
        if kind == "locate" and draft.pictures and not draft.evidence.strip():
            found[name, "type"] = tr("decide.locate_needs_text")
    return found


def json_fault(text: str) -> str:
    """Why a text is not JSON, with the place; "" when it is."""
    try:
        json.loads(text)
    except ValueError as error:
        return tr("decide.not_json", reason=str(error))
    return ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
