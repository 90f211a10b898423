"""Reasoning is told from content, in whole answers and in streams, and its tokens are counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator

import openai
import pytest

from engine import Engine
from engine.messages import Event, Finished, Tokens, Usage
from engine.text.answer import AnswerParser
from ignis_desktop.server.app import create_app
from ignis_desktop.server.chat_reply import ChatReply, ReplyOptions
from ignis_desktop.server.generation import Answer
from ignis_desktop.server.settings import Settings

ANSWER = "Let me see.\n</think>\n\nIt is four."


@pytest.fixture(scope="module")
def app_state(engine: Engine) -> Iterator[object]:
    state = create_app(engine, Settings()).state.ignis
    yield state
    state.end_work()


def events(engine: Engine, text: str, size: int) -> list[Event]:
    """What the engine says of an answer whose rounds bring ``size`` tokens each."""
    ids = engine.tokenizer.encode(text, allow_special=True)
    pieces = [ids[at : at + size] for at in range(0, len(ids), size)]
    tokens = [Tokens(tuple(piece), engine.tokenizer.decode(piece)) for piece in pieces]
    return [*tokens, Finished("stop", Usage(3, 0, len(ids)))]


def reasoning_tokens(engine: Engine, text: str) -> int:
    ids = engine.tokenizer.encode(text, allow_special=True)
    closing = engine.tokenizer.token_id("</think>")
    assert closing is not None
    return ids.index(closing) + 1


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("opened", [True, False], ids=["opened by the prompt", "opened by the answer"])
def test_a_whole_answer(app_state, engine: Engine, size: int, opened: bool) -> None:
    text = ANSWER if opened else "<think>\n" + ANSWER
    answer = Answer()
    for event in events(engine, text, size):
        answer.take(event)
    whole = ChatReply(app_state, "tiny", ReplyOptions(), [AnswerParser(opened=opened)]).whole([answer])
    message = whole["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("Let me see.", "It is four.")
    assert whole["usage"]["completion_tokens_details"]["reasoning_tokens"] == reasoning_tokens(engine, text)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_stream(app_state, engine: Engine, size: int) -> None:
    class Recorded:
        """The part of a run that replies read: an answer that grows while its batches are taken."""

        answers = (Answer(),)

        async def batches(self) -> AsyncGenerator[list[tuple[int, Event]], None]:
            for event in events(engine, ANSWER, size):
                self.answers[0].take(event)
                yield [(0, event)]

    async def read() -> list[dict]:
        reply = ChatReply(app_state, "tiny", ReplyOptions(include_usage=True), [AnswerParser(opened=True)])
        frames = [frame async for frame in reply.frames(Recorded())]  # type: ignore[arg-type]
        return [json.loads(frame.removeprefix(b"data: ")) for frame in b"".join(frames).split(b"\n\n")[:-2]]

    chunks = asyncio.run(read())
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Let me see."
    assert "".join(delta.get("content", "") for delta in deltas) == "It is four."
    details = chunks[-1]["usage"]["completion_tokens_details"]
    assert details["reasoning_tokens"] == reasoning_tokens(engine, ANSWER)


def test_thinking_is_asked_for_through_the_api(client: openai.OpenAI, model: str) -> None:
    def ask(**fields: object) -> openai.types.chat.ChatCompletion:
        return client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "2 + 2?"}],
            max_tokens=6,
            temperature=0,
            extra_body={"ignore_eos": True, **fields},
        )

    for on in (
        {"enable_thinking": True},
        {"reasoning_effort": "high"},
        {"chat_template_kwargs": {"enable_thinking": True}},
    ):
        thinking = ask(**on)
        assert thinking.choices[0].message.content == ""
        assert thinking.choices[0].message.model_dump()["reasoning_content"]
        assert thinking.usage is not None
        assert thinking.usage.completion_tokens_details is not None
        assert thinking.usage.completion_tokens_details.reasoning_tokens == 6
    for off in ({}, {"enable_thinking": False}, {"reasoning_effort": "none"}):
        plain = ask(**off)
        assert plain.choices[0].message.content
        assert "reasoning_content" not in plain.choices[0].message.model_dump(exclude_none=True)
