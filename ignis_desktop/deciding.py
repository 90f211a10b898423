"""A decide request answered for the window: the same checks and the same answers as ``POST /v1/decide``, no server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.messages import RequestError
from ignis_desktop.server.errors import ApiError
from ignis_desktop.server.evidence import Evidence
from ignis_desktop.server.routes.decide import Answers, check_all

if TYPE_CHECKING:
    from engine.engine import Engine


def decide_request(engine: Engine, text: str, cancelled: Callable[[], bool]) -> dict[str, Any]:
    """``text``: a request as JSON. Returns ``answers`` by question id, ``usage`` and ``ms``.

    Raises:
        RequestError: a question that cannot be answered as it stands; ``param`` says which and what of it
            (``questions.ID.options``).
        EngineError: the work was cancelled or the engine closed.
    """
    began = time.perf_counter()
    try:
        body = json.loads(text)
        evidence = Evidence(body["state"], text.encode())
        questions, pictures = check_all(engine, body["questions"], evidence)
        answers = Answers(engine, evidence, pictures, "interactive", "window", cancelled)
        answers.answer(questions)
    except ValueError as error:
        raise RequestError(f"The request is not JSON: {error}.", code="invalid_json", param="state") from None
    except ApiError as error:
        raise RequestError(error.message, code=error.code, param=error.param) from None
    return {
        "model": engine.info.id,
        "answers": {question.id: answers.answers[question.id] for question in questions},
        "usage": {
            "input_tokens": answers.input_tokens,
            "cached_tokens": answers.cached_tokens,
            "output_tokens": answers.output_tokens,
        },
        "ms": round((time.perf_counter() - began) * 1000, 3),
    }
