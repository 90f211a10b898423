"""Rewording of function phrases, so that the words of a tooltip are not all there is to a meaning."""

from __future__ import annotations

import random
import re

_GROUPS = """
show display reveal; remove delete erase; open load; change alter modify adjust; choose pick select;
start begin launch; stop halt end; find locate look-for; picture image photo; text words writing; window frame; file
document; folder directory; display screen monitor; program application app; enable turn-on switch-on activate;
disable turn-off switch-off; add insert put-in; copy duplicate; move shift; save store keep; send deliver dispatch;
message note; close shut; view look-at see; size dimensions; current present; item entry; large big;
small little; list listing; previous earlier last; next following; quickly fast; information details; increase
raise; decrease lower reduce; colour color tint; line row; edit change; print put-on-paper; undo take-back; redo
repeat; search look; web internet; page sheet; set specify; allow permit; border edge; automatically
by-itself
"""
_SAME: dict[str, list[str]] = {}
for _group in _GROUPS.replace("\n", " ").split(";"):
    _words = _group.split()
    for _word in _words:
        _SAME.setdefault(_word, []).extend(w.replace("-", " ") for w in _words if w != _word)


def reword(phrase: str, rng: random.Random) -> str:
    """`phrase` with some of its words replaced by others of the same meaning."""
    return re.sub(
        r"[a-z]+", lambda m: rng.choice(_SAME[m[0]]) if m[0] in _SAME and rng.random() < 0.45 else m[0], phrase
    )
