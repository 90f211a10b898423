"""Looking ahead: the next round is launched before the host knows the tokens that the last one chose.

Rounds, draws and copies run on the device in the order in which they are queued. Without lookahead the device rests
from the end of a draw until the host has read the tokens, told everybody, and launched the next round. With it, a step
of the loop does this, while round n is under way (``flight.Flight``: launched, its tokens not chosen):

1. The draw of round n is queued. All it needs of the host (masks, penalties, random numbers) follows from tokens up to
   n − 1, which the host has read.
2. Round n + 1 is queued behind it. Its tokens are read where the draw leaves them on the device; positions, pool rows
   and pages are known.
3. The host waits for the draw of n, not for what is queued behind it, books its tokens, and tells them. Penalties of
   these tokens are queued behind round n + 1, which they do not concern, and before the draw that they do concern.
4. Between two steps commands are carried out and requests admitted, as ever. Round n + 1 is under way.

Draws never run ahead, so a mask or a forced token that depends on token n is no obstacle: it is due at the draw of
n + 1, and worked out while round n + 1 runs. Nor are log probabilities, though round n + 1 writes over the logits that
they are read from: the device works them out behind the draw, and they come to the host with the tokens. What a round
needs is less: *that* a lane goes on, and *which* token. Hence (:func:`columns_ahead`) the next round waits for the
tokens when

- anything else wants the next step: a prompt that is being read, a lane that is not in this round, a late mask. The
  pipeline then drains: the round under way is finished, and the next one is launched with all that decode.
- a lane's token is not certain on the device (``Sampler.certain``): the host may have to draw it, because its cuts may
  keep more tokens than the device looks at.
- a lane may end without the device noticing, and its last state is wanted. See below.

Then it is launched as soon as the tokens are booked, before they are told; that costs the device little more. A lane
whose next token is its last allowed one is known to end, and left out of round n + 1.

**A lane that ended unforeseen** has a column in round n + 1 that nobody wants. What it gives is dropped: the lane is
given back when token n is booked, and rows of lanes that were given back are not drawn. (A lane taken by somebody else
meanwhile is initialised behind round n + 1.) Its pages may be freed at once, since whoever writes them next is queued
behind it too. The same holds for a lane that is cancelled, late, faulty, or cut off.

Its *state* is another matter: the end of an answer is kept for the conversation's next turn (``Lanes.keep_end``) at
exactly the tokens before the last one, and round n + 1 would have taken the last one in, which cannot be undone. So the
device itself looks for end tokens before the round begins (``Round``): the column of a lane whose token is one of its
end tokens leaves nothing behind. It writes no keys and values, and reads the lane's recurrent state without writing it
back, so that no second place is needed for a state, nor a copy of one. Stop strings are text, which only the host
reads, so a lane that has some and whose end is kept does not run ahead.

Parking needs nothing: between two steps a lane's state and what the host knows of it are those of round n + 1, and its
row of logits is put aside with it.

A lane has the same bits with and without lookahead as long as it has the same neighbours. One that ends unforeseen or
is cancelled stays a neighbour for one more round; as with any other neighbour, that changes the width of the round and
nothing else.

Rounds of several columns a lane fit in: their draw says how many tokens stand as well as which, and a round that was
launched behind it would read both on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many

from engine.schedule.job import Job, Sequence
from engine.schedule.round import END_IDS, Column


def columns_ahead(sequences: Many[Sequence], certain: Callable[[int], bool]) -> list[Column] | None:
    """The columns of the round after the one whose rows are being drawn, if it may be launched before the tokens are
    known.

    Args:
        sequences: of the rows that are being drawn: all that decode.
        certain: whether the token of a lane is final on the device.

    Returns:
        None when the host has to see the tokens first; else a column for each sequence but those whose answer is
        known to end with its token.
    """
    columns = []
    for row, sequence in enumerate(sequences):
        if len(sequence.generated) + 1 >= sequence.job.cap:
            continue
        if not certain(sequence.lane) or _kept_unseen(sequence.job):
            return None
        columns.append(Column(sequence, row))
    return columns


def _kept_unseen(job: Job) -> bool:
    """Whether an answer may end without the device noticing and its state is wanted then."""
    return job.keeps_end and (job.stop_strings or len(job.end_ids) > END_IDS)
