"""Where in a chat prompt later prompts are likely to branch off: after the system block and where an answer begins."""

from __future__ import annotations

from collections.abc import Sequence

from engine.text.tokenizer import Tokenizer

TURN = "<|im_start|>"
"""ChatML's turn, which all checkpoints of the family use."""
_SYSTEM, _ANSWER = "system", "assistant\n"


def branch_points(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[int, ...]:
    """Positions in the tokens of a rendered chat, ascending.

    The first is the end of the system and tools block, which conversations and sub-agents share. The last is the start
    of the answer, before anything that a template lets only the newest answer begin with (a reasoning block): there
    the next turn of this conversation, or the same turn asked again, comes by. A template without ChatML's turns gives
    the prompt's end.
    """
    turn = tokenizer.token_id(TURN)
    starts = [i for i, token in enumerate(ids) if token == turn] if turn is not None else []
    if not starts:
        return (len(ids),) if ids else ()
    answer = tokenizer.encode(_ANSWER)
    points = {starts[-1] + (1 + len(answer) if _follows(ids, starts[-1], answer) else 0)}
    if len(starts) > 1 and _follows(ids, starts[0], tokenizer.encode(_SYSTEM)):
        points.add(starts[1])
    return tuple(sorted(points - {0}))


def _follows(ids: Sequence[int], position: int, tokens: Sequence[int]) -> bool:
    return list(ids[position + 1 : position + 1 + len(tokens)]) == list(tokens)
