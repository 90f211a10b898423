"""From a stored message to what the list shows of it: notes, numbers, errors with what mends them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from ignis_desktop.store.chats import Message
from ignis_desktop.widgets.message_item import ChatItem
from ignis_desktop.widgets.texts import tr

if TYPE_CHECKING:
    from ignis_desktop.panels.running import Running

_TITLE_LENGTH = 60
PATIENCE_MS = 1000
"""After so long without a lane a message says that it waits for one. Timers may come 5 % early."""
CONTEXT_CODES = frozenset({"context_length_exceeded"})
"""Error codes that a shorter conversation mends."""


def title_of(text: str) -> str:
    """A conversation's first title: its question on one line, cut between words."""
    return shorten(text, _TITLE_LENGTH, placeholder="…")


def chat_item(
    message: Message,
    *,
    siblings: Sequence[str],
    running: Running | None,
    unfolded: bool,
    numbered: bool,
    last: bool,
) -> ChatItem:
    return ChatItem(
        id=message.id,
        role=message.role,
        text=message.content,
        images=tuple(picture.data for picture in message.images),
        streaming=running is not None,
        thinking=message.thinking,
        thinking_label=_thinking_label(message, running),
        unfolded=unfolded,
        note=_running_note(message, running) if running else _ended_note(message),
        error=message.error,
        mend=mend_label(message),
        branch=(siblings.index(message.id) + 1, len(siblings)),
        numbers=numbers_line(message.numbers) if numbered and message.role == "assistant" else "",
        last=last,
    )


def needs_new_conversation(message: Message) -> bool:
    """Whether the message failed because the conversation no longer fits."""
    return message.numbers.get("code") in CONTEXT_CODES


def mend_label(message: Message) -> str:
    if not message.error:
        return ""
    return tr("chat.mend_new") if needs_new_conversation(message) else tr("chat.mend_again")


def numbers_line(numbers: dict[str, Any]) -> str:
    """What the engine reported about an answer, in one line."""
    if "output_tokens" not in numbers:
        return tr("chat.no_numbers")
    tokens, seconds = numbers["output_tokens"], numbers["decode_seconds"]
    parts = [tr("chat.n_tokens", count=f"{tokens:,}")]
    if seconds > 0:
        parts.append(tr("chat.n_rate", rate=f"{tokens / seconds:.1f}"))
    parts.append(tr("chat.n_first", seconds=f"{numbers['first_token_seconds']:.2f}"))
    parts.append(tr("chat.n_prompt", count=f"{numbers['prompt_tokens']:,}", cached=f"{numbers['cached_tokens']:,}"))
    parts.append(tr("chat.n_seed", seed=numbers["seed"]))
    return "  ·  ".join(parts)


def _thinking_label(message: Message, running: Running | None) -> str:
    if not message.thinking:
        return ""
    if running is not None and running.thinking_ended is None:
        return tr("chat.thinking")
    if running is not None and running.thinking_ended is not None:
        seconds = running.thinking_ended - running.began
    else:
        seconds = message.numbers.get("thinking_seconds", 0.0)
    return tr("chat.thought", seconds=f"{seconds:.1f}")


def _running_note(message: Message, running: Running) -> str:
    if message.content or message.thinking:
        return ""
    done, total = running.progress
    if total:
        return tr("chat.reading", done=f"{done:,}", total=f"{total:,}")
    return tr("chat.waiting") if time.monotonic() - running.began >= 0.9 * PATIENCE_MS / 1000 else tr("chat.starting")


def _ended_note(message: Message) -> str:
    reason = message.numbers.get("reason")
    if reason == "cancelled":
        return tr("chat.was_stopped")
    if reason == "length":
        return tr("chat.was_cut")
    if message.role == "assistant" and not reason and not message.error:
        return tr("chat.was_interrupted")
    return tr("chat.was_empty") if reason == "stop" and not message.content.strip() else ""
