"""Requests made up from the OpenAPI document: whatever fits it, and what does not, is answered without a fault."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.schemas import APIOperation

from engine import Engine
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread

EXAMPLES = 5
"""Of each operation and mode."""
ANSWERS = {
    "/v1/chat/completions": "max_tokens",
    "/v1/completions": "max_tokens",
    "/v1/messages": "max_tokens",
    "/v1/responses": "max_output_tokens",
}
TOKENS = 8
"""Of an answer at most: a random model seldom ends one by itself."""
STREAMS = ("/v1/engine/events",)
"""Never ends."""


@pytest.fixture(scope="module")
def url(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("openapi")
    chosen = Settings(port=0, data_directory=folder, runtime_directory=folder, accept_any_model=True, capture=False)
    with ServerThread(engine, chosen) as server:
        yield server.url


def test_no_request_is_a_fault(url: str) -> None:
    document = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path=list(STREAMS))
    operations = [found.ok() for found in document.get_all_operations()]
    assert len(operations) > 25
    for operation in operations:
        send_many(operation, GenerationMode.POSITIVE)
        with contextlib.suppress(Unsatisfiable):  # nothing is wrong for a route that takes nothing
            send_many(operation, GenerationMode.NEGATIVE)


def send_many(operation: APIOperation, mode: GenerationMode) -> None:
    """``mode``: requests that fit the document, or that do not."""

    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    def send(case: schemathesis.Case) -> None:
        limit = ANSWERS.get(operation.path)
        if limit is not None and isinstance(case.body, dict):
            asked = case.body.get(limit)
            case.body[limit] = min(asked, TOKENS) if isinstance(asked, int) else asked or TOKENS
        answer = case.call(timeout=30)
        assert answer.status_code < 500, f"{operation.label}: {answer.status_code} {answer.text} to {case.body!r:.2000}"

    send()
