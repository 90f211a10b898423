"""What one new token does to an answer: text, and whether it ends there."""

from __future__ import annotations

from dataclasses import dataclass

from engine.messages import FinishReason
from engine.schedule.job import Sequence


@dataclass(frozen=True)
class Taken:
    """A token that was booked and that nobody was told of yet."""

    shown: tuple[int, ...]
    """The token, but for an end token."""
    text: str
    """What became certain with it."""
    reason: FinishReason | None = None
    """Why the answer ends with it; None when it goes on."""
    stop: str | None = None
    """The stop string that was met."""


def take(sequence: Sequence, token: int) -> Taken:
    """Book one new token: end tokens, stop strings, length. Tells nobody."""
    assert sequence.text is not None
    sequence.generated.append(token)
    if token in sequence.job.end_ids:
        return Taken((), sequence.text.flush(), "stop")
    text = sequence.text.push(token)
    if sequence.text.stopped is not None:
        return Taken((token,), text, "stop", sequence.text.stopped)
    if len(sequence.generated) >= sequence.job.cap:
        return Taken((token,), text + sequence.text.flush(), "length")
    return Taken((token,), text)
