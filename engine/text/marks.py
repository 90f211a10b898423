"""Where in a chat prompt later prompts are likely to branch off: after the system block, where an answer begins, and
after turns that the caller names."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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


def turn_ends(
    ids: Sequence[int], tokenizer: Tokenizer, roles: Sequence[str], wanted: Collection[int]
) -> tuple[int, ...]:
    """Positions after the turns that hold the messages ``wanted`` (indices), ascending.

    The last turn's end is left out: a branch point comes right behind it.

    Args:
        ids: a rendered chat that ends with the beginning of an answer.
        roles: of its messages. Results of tools that follow each other share a turn.

    A template that does not give each message its turn leaves nothing to be sure of: the answer is empty.
    """
    turn = tokenizer.token_id(TURN)
    starts = [i for i, token in enumerate(ids) if token == turn] if turn is not None else []
    turns: list[int] = []
    """Each message's turn."""
    for index, role in enumerate(roles):
        joins = role == "tool" and index > 0 and roles[index - 1] == "tool"
        turns.append(0 if not turns else turns[-1] + (not joins))
    if not turns:
        return ()
    added = len(starts) - 1 - (turns[-1] + 1)
    """1 where the template tells the model who it is although no message does."""
    if added not in (0, 1) or (added and roles[0] == "system"):
        return ()
    return tuple(sorted({starts[turns[index] + added + 1] for index in wanted if turns[index] < turns[-1]}))


def _follows(ids: Sequence[int], position: int, tokens: Sequence[int]) -> bool:
    return list(ids[position + 1 : position + 1 + len(tokens)]) == list(tokens)
