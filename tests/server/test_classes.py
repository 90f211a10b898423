"""How urgent a request is: body, then model suffix, then header, the same on every route."""

from __future__ import annotations

import httpx
import pytest

from ignis_desktop.server.classes import as_class, split_model
from ignis_desktop.server.thread import ServerThread

KNOWN = ("ember", "ember 0", "team@work")
MESSAGES = [{"role": "user", "content": "Hello"}]
QUESTION = {"type": "locate", "instructions": "Which line is about the cache?"}


@pytest.mark.parametrize(
    ("word", "expected"),
    [("agent", "agent"), (" Agent ", "agent"), ("interactive", "interactive"), ("batch", "interactive")],
)
def test_words(word: str, expected: str) -> None:
    assert as_class(word) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ember", ("ember", None)),
        ("ember@agent", ("ember", "agent")),
        ("Ember 0@AGENT", ("Ember 0", "agent")),
        ("ember@interactive", ("ember", "interactive")),
        ("ember@batch", ("ember", "interactive")),
        ("ember@", ("ember", None)),
        ("team@work", ("team@work", None)),
        ("Team@Work@agent", ("Team@Work", "agent")),
    ],
)
def test_model_names(name: str, expected: tuple[str, str | None]) -> None:
    assert split_model(name, KNOWN) == expected


@pytest.fixture(scope="module")
def screen(http: httpx.Client, two_buttons: str) -> str:
    return http.post("/v1/screens", json={"image": two_buttons}).json()["id"]


@pytest.fixture(params=["chat", "completions", "decide", "screens", "point"])
def ask(request: pytest.FixtureRequest, http: httpx.Client, server: ServerThread, screen: str, two_buttons: str):
    """Asks one route with more fields and headers; gives the class that the request got."""
    route, body = {
        "chat": ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 1}),
        "completions": ("/v1/completions", {"prompt": "x", "max_tokens": 1}),
        "decide": ("/v1/decide", {"state": "a\nb", "questions": {"q": QUESTION}}),
        "screens": ("/v1/screens", {"image": two_buttons}),
        "point": (f"/v1/screens/{screen}/point", {"question": "the red button"}),
    }[request.param]

    def send(headers: dict[str, str] | None = None, **fields: object) -> str:
        http.post(route, json={**body, **fields}, headers=headers).raise_for_status()
        return server.log.records()[-1].request_class

    return send


HEADER = {"X-Ignis-Class": "agent"}


def test_each_way_to_say_it_works_on_each_route(ask, model: str) -> None:
    assert ask() == "interactive"
    assert ask(**{"class": "agent"}) == "agent"
    assert ask(model=f"{model}@agent") == "agent"
    assert ask(HEADER) == "agent"


def test_the_body_goes_before_the_suffix_and_the_suffix_before_the_header(ask, model: str) -> None:
    assert ask(HEADER, model=f"{model}@agent", **{"class": "interactive"}) == "interactive"
    assert ask(HEADER, model=f"{model}@interactive") == "interactive"
    assert ask({"X-Ignis-Class": "interactive"}, model=f"{model}@agent") == "agent"


def test_what_nobody_knows_is_interactive(ask, model: str) -> None:
    assert ask(HEADER, **{"class": "urgent"}) == "interactive"
    assert ask(HEADER, model=f"{model}@urgent") == "interactive"
    assert ask({"X-Ignis-Class": "urgent"}) == "interactive"
    assert ask(HEADER, **{"class": None}) == "agent", "null is as good as left out"


def test_another_model_is_refused_on_screens_too(http: httpx.Client, two_buttons: str) -> None:
    answer = http.post("/v1/screens", json={"image": two_buttons, "model": "gpt-x@agent"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
