"""Chat completions through the real openai client over a real socket."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path

import httpx
import openai
import pytest

from engine import Engine
from ignis_desktop.server.settings import Settings
from ignis_desktop.server.thread import ServerThread

HELLO = [{"role": "user", "content": "Say hello in one sentence."}]


def test_plain(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=HELLO, max_tokens=12, temperature=0)
    (choice,) = answer.choices
    assert answer.object == "chat.completion"
    assert answer.model == model
    assert answer.id.startswith("chatcmpl-")
    assert answer.system_fingerprint
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason in ("stop", "length")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 0
    assert 0 < answer.usage.completion_tokens <= 12
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens is not None


def test_the_stream_says_the_same_as_the_plain_answer(client: openai.OpenAI, model: str) -> None:
    plain = client.chat.completions.create(model=model, messages=HELLO, max_tokens=24, temperature=0)
    chunks = list(
        client.chat.completions.create(
            model=model,
            messages=HELLO,
            max_tokens=24,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == plain.choices[0].message.content
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert reasons[-1] == plain.choices[0].finish_reason
    assert reasons[:-1] == [None] * (len(reasons) - 1)
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert plain.usage is not None
    assert chunks[-1].usage.completion_tokens == plain.usage.completion_tokens


def test_without_include_usage_no_chunk_is_without_a_choice(client: openai.OpenAI, model: str) -> None:
    chunks = list(client.chat.completions.create(model=model, messages=HELLO, max_tokens=4, stream=True))
    assert all(chunk.choices for chunk in chunks)
    assert all(chunk.usage is None for chunk in chunks)


def test_the_frames_on_the_wire(http: httpx.Client, model: str) -> None:
    body = {"model": model, "messages": HELLO, "max_tokens": 4, "stream": True}
    with http.stream("POST", "/v1/chat/completions", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"
        raw = response.read().decode()
    frames = raw.split("\n\n")
    assert frames.pop() == ""
    assert frames.pop() == "data: [DONE]"
    for frame in frames:
        assert frame.startswith("data: {")
        assert "\n" not in frame
        assert json.loads(frame.removeprefix("data: "))["object"] == "chat.completion.chunk"


def test_async_client_runs_many_at_once(server: ServerThread, model: str) -> None:
    async def ask() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0, timeout=60) as client:

            async def one(number: int) -> str:
                stream = await client.chat.completions.create(
                    model=model,
                    messages=[{"role": "user", "content": f"Count to {number}."}],
                    max_tokens=8,
                    temperature=0,
                    stream=True,
                )
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

            return await asyncio.gather(*(one(number) for number in range(10)))

    together = asyncio.run(ask())
    assert len(together) == 10
    assert all(together)


def test_seed_reproduces_and_is_reported(client: openai.OpenAI, model: str) -> None:
    def ask(seed: int | None) -> tuple[str | None, int]:
        answer = client.chat.completions.create(
            model=model, messages=HELLO, max_tokens=16, temperature=1.5, seed=seed, extra_body={"ignore_eos": True}
        )
        return answer.choices[0].message.content, answer.model_dump()["timings"]["seed"]

    first, reported = ask(7)
    assert reported == 7
    assert ask(7)[0] == first
    assert len({ask(seed)[0] for seed in range(4)}) > 1
    drawn, seed = ask(None)
    assert ask(seed)[0] == drawn


@pytest.mark.parametrize("as_list", [False, True])
def test_stop_strings_end_the_text_and_are_not_in_it(client: openai.OpenAI, model: str, as_list: bool) -> None:
    whole = client.chat.completions.create(model=model, messages=HELLO, max_tokens=16, temperature=0)
    text = whole.choices[0].message.content or ""
    stop = text[len(text) // 2 :][:3]
    cut = client.chat.completions.create(
        model=model,
        messages=HELLO,
        max_tokens=16,
        temperature=0,
        stop=["@@never@@", stop] if as_list else stop,
    )
    assert cut.choices[0].finish_reason == "stop"
    assert cut.choices[0].message.content == text[: text.index(stop)]


def test_logprobs(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.create(
        model=model, messages=HELLO, max_tokens=6, temperature=0, logprobs=True, top_logprobs=3
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert answer.usage is not None
    assert len(logprobs.content) == answer.usage.completion_tokens
    for token in logprobs.content:
        assert token.logprob <= 0
        assert len(token.top_logprobs) == 3
        assert token.logprob == pytest.approx(token.top_logprobs[0].logprob, abs=1e-4)  # greedy takes the likeliest
        assert [t.logprob for t in token.top_logprobs] == sorted((t.logprob for t in token.top_logprobs), reverse=True)
        assert sum(math.exp(t.logprob) for t in token.top_logprobs) <= 1 + 1e-3
        assert bytes(token.bytes or []).decode("utf-8", "replace") == token.token


def test_logprobs_stream_one_entry_a_token(client: openai.OpenAI, model: str) -> None:
    chunks = client.chat.completions.create(
        model=model, messages=HELLO, max_tokens=6, temperature=0, logprobs=True, top_logprobs=0, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    tokens, usage = [], None
    for chunk in chunks:
        usage = chunk.usage or usage
        if chunk.choices and chunk.choices[0].logprobs:
            tokens += chunk.choices[0].logprobs.content or []
    assert usage is not None
    assert len(tokens) == usage.completion_tokens
    assert all(token.top_logprobs == [] for token in tokens)


def test_an_image_changes_the_prompt(client: openai.OpenAI, engine: Engine, model: str, two_buttons: str) -> None:
    def tokens(content: list[dict]) -> int:
        answer = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": content}], max_tokens=4, temperature=0
        )
        assert answer.usage is not None
        return answer.usage.prompt_tokens

    text = {"type": "text", "text": "Where is the red button?"}
    picture = {"type": "image_url", "image_url": {"url": two_buttons, "detail": "high"}}
    assert tokens([picture, text]) > tokens([text]) + 4


def test_max_completion_tokens_wins(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.create(
        model=model,
        messages=HELLO,
        max_tokens=9,
        max_completion_tokens=3,
        extra_body={"ignore_eos": True},
    )
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3
    assert answer.choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("name", "extra", "headers", "expected"),
    [
        ("{}", {}, {}, "interactive"),
        ("{}@agent", {}, {}, "agent"),
        ("{}", {"class": "agent"}, {}, "agent"),
        ("{}", {}, {"X-Ignis-Class": "agent"}, "agent"),
        ("{}@agent", {"class": "interactive"}, {}, "interactive"),
        ("{}", {"class": "batch"}, {}, "interactive"),
    ],
)
def test_the_class_comes_from_body_model_or_header(
    server: ServerThread, client: openai.OpenAI, model: str, name: str, extra: dict, headers: dict, expected: str
) -> None:
    client.chat.completions.create(
        model=name.format(model), messages=HELLO, max_tokens=1, extra_body=extra, extra_headers=headers
    )
    assert server.log.records()[-1].request_class == expected


def test_the_log_counts_tokens_and_holds_no_text(
    server: ServerThread, client: openai.OpenAI, model: str, wait_until: Callable[..., float]
) -> None:
    secret = "zanzibar-quokka"
    answer = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": secret}], max_tokens=5, temperature=0
    )
    wait_until(lambda: server.log.records()[-1].status is not None, 2.0)
    record = server.log.records()[-1]
    assert answer.usage is not None
    assert (record.method, record.path, record.status) == ("POST", "/v1/chat/completions", 200)
    assert (record.prompt_tokens, record.output_tokens) == (answer.usage.prompt_tokens, answer.usage.completion_tokens)
    assert record.client.startswith("127.0.0.1 ")
    assert secret not in repr(server.log.records())


def test_unknown_parameters_are_ignored(client: openai.OpenAI, model: str) -> None:
    answer = client.chat.completions.create(
        model=model, messages=HELLO, max_tokens=2, user="u", extra_body={"frobnicate": {"deep": [1]}, "seed": None}
    )
    assert answer.choices


def test_a_prompt_that_is_too_long_is_refused_with_the_counts(
    client: openai.OpenAI, engine: Engine, model: str
) -> None:
    limit = engine.info.context_length
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "a b " * limit}])
    assert any(str(shape) in refused.value.message for shape in (limit, f"{limit:,}"))


def test_another_models_name_is_not_found(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.NotFoundError, match=model) as refused:
        client.chat.completions.create(model="gpt-4o", messages=HELLO)
    assert refused.value.code == "model_not_found"


def test_models(client: openai.OpenAI, model: str) -> None:
    (only,) = client.models.list().data
    assert only.id == model
    assert client.models.retrieve(model).model_dump()["context_length"] > 0
    assert client.models.retrieve(f"{model}@agent").id == f"{model}@agent"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4o")


def test_any_name_can_be_accepted(engine: Engine, tmp_path: Path) -> None:
    settings = Settings(port=0, accept_any_model=True, runtime_directory=tmp_path)
    with (
        ServerThread(engine, settings) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client,
    ):
        answer = client.chat.completions.create(model="gpt-4o@agent", messages=HELLO, max_tokens=1)
    assert answer.model == engine.info.id
    assert server.log.records()[-1].request_class == "agent"
