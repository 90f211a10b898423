"""A conversation as a file: Markdown for people, JSON for programs."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from ignis_desktop.store.chats import Conversation, Message


def to_markdown(conversation: Conversation, branch: Sequence[Message]) -> str:
    """The branch that is shown, as Markdown. Pictures are named, not embedded."""
    parts = [f"# {conversation.title}"]
    if conversation.system_prompt:
        parts.append(f"> {conversation.system_prompt.replace(chr(10), chr(10) + '> ')}")
    for message in branch:
        parts.append("## You" if message.role == "user" else "## Answer")
        parts.extend(f"*Picture: {picture.name}*" for picture in message.images)
        if message.content:
            parts.append(message.content)
        if message.error:
            parts.append(f"*{message.error}*")
    return "\n\n".join(parts) + "\n"


def to_json(conversation: Conversation, messages: Sequence[Message]) -> str:
    """Every branch with settings, numbers and pictures (base64), ready to be read back by a program."""
    return json.dumps(
        {
            "format": "ignis-conversation-1",
            "exported": datetime.now(UTC).isoformat(timespec="seconds"),
            **asdict(conversation),
            "messages": [
                asdict(message)
                | {
                    "images": [
                        {"name": picture.name, "data": base64.b64encode(picture.data).decode("ascii")}
                        for picture in message.images
                    ]
                }
                for message in messages
            ],
        },
        ensure_ascii=False,
        indent=1,
    )
