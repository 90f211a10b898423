"""Rewording of function phrases, so that the words of a tooltip are not all there is to a meaning."""

from __future__ import annotations

import random
import re

_VERBS = """
show display reveal; remove delete erase; change alter modify adjust; choose pick select; start begin launch; stop halt
end; find locate look-for; enable turn-on switch-on activate; disable turn-off switch-off; add insert put-in; copy
duplicate; move shift; save store keep; send deliver dispatch; close shut; view look-at see; increase raise; decrease
lower reduce; edit change; print put-on-paper; undo take-back; redo repeat; search look-through; set specify; allow
permit; make produce; let allow; bring fetch
"""
_OTHERS = """
picture image photo; text words writing; window frame; file document; folder directory; display screen monitor; program
application app; message note; size dimensions; present current; item entry; large big; small little; previous earlier;
next following; quickly fast; information details; colour color tint; page sheet; border edge; automatically by-itself;
computer machine; everything all-of-it; people others; web internet; mistake error; words terms; letter mail; disk drive
"""


def _same(groups: str) -> dict[str, list[str]]:
    """Word -> the others of its groups, hyphens as spaces."""
    same: dict[str, list[str]] = {}
    for group in groups.replace("\n", " ").split(";"):
        words = group.split()
        for word in words:
            same.setdefault(word, []).extend(w.replace("-", " ") for w in words if w != word)
    return same


_PARTICLE = re.compile(r" (\S+ \S+ )?(up|out|away|off|down|back|from|aside|over)\b")
_FIRST, _LATER = _same(_VERBS), _same(_OTHERS)


def reword(phrase: str, rng: random.Random) -> str:
    """`phrase` with some of its words replaced by others of the same meaning; verbs only where it begins."""

    def other(match: re.Match[str]) -> str:
        if _PARTICLE.match(phrase, match.end()):  # "set up", "keep away": the pair has a meaning of its own
            return match[0]
        same = _FIRST if match.start() == 0 else _LATER
        return rng.choice(same[match[0]]) if match[0] in same and rng.random() < 0.45 else match[0]

    return re.sub(r"[a-z]+", other, phrase)
