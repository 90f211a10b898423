"""Questions in other words: synonyms, frames, and words said by what they mean.

None of this knows what a question is about; it keeps a model from learning the few phrases that were written for an
event instead of their meaning.
"""

from __future__ import annotations

import random
import re

_GROUPS = """
log-in login sign-in log-on; logged-in signed-in came-in got-in; logged-out signed-out; user person account-holder;
password passphrase secret; machine computer box; server host machine; disk drive; volume partition file-system;
folder directory; file document; program process application; service daemon background-program; network net;
connection link line; connected linked hooked-up; failed went-wrong did-not-work did-not-succeed; failure breakdown
fault; error problem mistake; crashed died broke-down fell-over; stopped ended halted; started began launched
came-up; removed deleted thrown-away taken-away; refused rejected turned-down turned-away denied; accepted let-in
admitted; allowed permitted entitled; slow sluggish; quick fast; full crowded filled-up; empty used-up; missing
absent not-there lacking; broken damaged defective; unknown unfamiliar not-known; wrong bad incorrect; new fresh; old
former outdated; message mail letter; request call inquiry; answer reply; address number; time-out
timeout; waited hung-on; gave-up lost-patience; restarted started-again; changed altered modified; copied
duplicated; saved stored kept; loaded read-in; sent delivered dispatched; found discovered
spotted; many lots-of plenty-of; too-many more-than-allowed; limit maximum ceiling; exceeded went-over passed; low
scarce short; memory RAM working-storage; space room; processor CPU; hot warm overheated; temperature heat;
battery accumulator; power electricity current; device gadget piece-of-hardware; printer printing-machine; paper
sheets; order purchase; customer buyer client; payment money; paid settled; job task piece-of-work; queue waiting-line;
table relation; statement query command; rows entries records; backup safety-copy; restored brought-back;
certificate proof-of-identity; expired ran-out lapsed; renewed prolonged replaced; key token; blocked shut-out
stopped; page site; visitor guest; update new-version upgrade; installed set-up put-on; version release;
somebody someone a-person; which what; happened occurred took-place; because since; again once-more; often
frequently; first earliest initial; last latest final
"""
_FRAMES = (
    "{q}",
    "{q}",
    "{q}",
    "{q}",
    "{q}",
    "find: {q}",
    "find the entry: {q}",
    "which line is about this: {q}",
    "where does it say this: {q}",
    "show me this: {q}",
    "I am looking for this: {q}",
    "the line for: {q}",
    "{q}, please",
    "look this up: {q}",
    "Which line is about this: {q}?",
    "Where is this said: {q}?",
    "When did this happen: {q}?",
    "What does the log say about this: {q}?",
    "is there something like this: {q}",
)
_CLAUSE = re.compile(r"(\{\w+\}|a|an|the|somebody|someone|nobody|two|we|nothing|everything) .*")
_CLAUSE_FRAMES = (
    "When did it happen that {q}?",
    "Which line says that {q}?",
    "Where do we see that {q}?",
    "Where does it say that {q}?",
    "which line says that {q}",
    "where is it written that {q}",
    "which entry tells that {q}",
    "at what point is it said that {q}",
    "the moment when {q}",
)
_ASKING = re.compile(r"(who|which|what|when|where|why|how|is|was|did|does)\b")


def _same(groups: str) -> dict[str, list[str]]:
    """Phrase -> the others of its groups; hyphens stand for spaces."""
    found: dict[str, list[str]] = {}
    for group in groups.replace("\n", " ").split(";"):
        words = [w.replace("-", " ") for w in group.split()]
        for word in words:
            found.setdefault(word, []).extend(w for w in words if w != word)
    return found


_SAME = _same(_GROUPS)
_PHRASE = re.compile(r"\{\w+\}|\b(?:" + "|".join(sorted(_SAME, key=len, reverse=True)) + r")\b")


def reworded(rng: random.Random, template: str, share: float = 0.35) -> str:
    """A question with some words replaced by others of the same meaning, in a frame; ``{slots}`` stay."""

    def other(match: re.Match[str]) -> str:
        return rng.choice(_SAME[match[0]]) if match[0] in _SAME and rng.random() < share else match[0]

    text = _PHRASE.sub(other, template)
    if _CLAUSE.fullmatch(text) and rng.random() < 0.45:
        return _framed(rng, _CLAUSE_FRAMES, text)
    text = _framed(rng, _FRAMES, text)
    if _ASKING.match(text):
        text = text + rng.choice(("", "", "?"))
    return text[:1].upper() + text[1:] if rng.random() < 0.3 else text


def _framed(rng: random.Random, frames: tuple[str, ...], text: str) -> str:
    return rng.choice(frames).replace("{q}", text)


USUAL = 3
"""Meanings of a word that are used; dictionaries name the usual ones first."""


class Thesaurus:
    """Common words with what they mean, from paraphrase pairs (word, meaning)."""

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        self.meanings: dict[str, list[str]] = {}
        for first, second in rows:
            for word, said in ((first, second), (second, first)):
                if re.fullmatch(r"[a-z]{4,12}", word) and 1 < len(said.split()) < 8 and said.isascii():
                    known = self.meanings.setdefault(word, [])
                    if len(known) < USUAL:
                        known.append(said)

    def of(self, word: str) -> list[str]:
        """Meanings of a word or of what it is an inflection of."""
        low = word.lower()
        stems = (low, low.removesuffix("s"), low.removesuffix("d"), low.removesuffix("ed"), low.removesuffix("ing"))
        return next((self.meanings[stem] for stem in stems if stem in self.meanings), [])

    def described(self, rng: random.Random, words: list[str], kept: float) -> str | None:
        """``words`` with most of them said by what they mean; None when too few can be. About ``kept`` stay."""
        said = []
        described = 0
        for word in words:
            meanings = self.of(word)
            if meanings and rng.random() >= kept:
                said.append(rng.choice(meanings))
                described += 1
            elif rng.random() < 0.5 + kept / 2:
                said.append(word)
        return ", ".join(said) if described >= max(1, len(words) // 3) else None
