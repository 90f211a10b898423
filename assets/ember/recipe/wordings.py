"""Questions in other words: synonyms, frames, and words said by what they mean.

None of this knows what a question is about; it keeps a model from learning the few phrases that were written for an
event instead of their meaning.
"""

from __future__ import annotations

import random
import re

_GROUPS = """
log-in login sign-in log-on; logged-in signed-in; logged-out signed-out; user ~person account-holder; password
passphrase; machine computer ~box; server ~machine; disk drive; folder directory; ~document file; program application
~piece-of-software; ~background-program daemon; connection ~link; crashed ~died; ended ~finished; started began;
removed deleted ~thrown-away ~taken-away; refused rejected turned-down ~turned-away; allowed permitted; slow sluggish;
quick fast; missing ~absent lacking; broken damaged defective; unknown unfamiliar; e-mail mail; request ~inquiry;
answer reply; timeout time-out; gave-up ~lost-patience; changed altered modified; copied duplicated; saved stored; sent
dispatched; found discovered; too-many ~more-than-allowed; limit maximum ~ceiling; exceeded went-over; space room;
processor CPU; memory RAM; electricity ~power; device ~gadget; customer buyer client; task job; queue ~waiting-line;
backup ~safety-copy; expired ran-out lapsed; renewed prolonged; blocked shut-out; visitor guest; ~update upgrade;
~release version; somebody someone; happened occurred took-place; error ~fault ~problem; whole entire; nearly almost;
shop store; car ~vehicle; money ~cash; price ~cost; wanted wished; suddenly all-at-once; several ~a-few; ~forbidden
prohibited; bought purchased; doctor ~physician; picture image; begin start; repeatedly again-and-again; often
frequently; tried attempted; needs requires; fetched ~collected; nobody no-one; anybody anyone; cannot ~can-not
"""
_FRAMES = (
    *["{q}"] * 8,
    "find: {q}",
    "find the entry: {q}",
    "which line is about this: {q}",
    "where does it say this: {q}",
    "show me this: {q}",
    "I am looking for this: {q}",
    "the line for: {q}",
    "look this up: {q}",
    "Which line is about this: {q}?",
    "Where is this said: {q}?",
    "is there something like this: {q}",
)
_LOG_FRAMES = (*_FRAMES, "When did this happen: {q}?", "What does the log say about this: {q}?")
_ASKED_FRAMES = (
    *["{q}"] * 12,
    "I need to know this: {q}",
    "please tell me: {q}",
    "look it up: {q}",
    "what I would like to know: {q}",
)
_CLAUSE_FRAMES = (
    "Which line says that {q}?",
    "Where do we see that {q}?",
    "Where does it say that {q}?",
    "which line says that {q}",
    "where is it written that {q}",
    "which entry tells that {q}",
    "at what point is it said that {q}",
)
_LOG_CLAUSE_FRAMES = (*_CLAUSE_FRAMES, "When did it happen that {q}?", "the moment when {q}")
_ASKING = re.compile(
    r"(who|whose|whom|which|what|when|where|why|how|is|isn't|am|was|were|are|did|does|do|has|have|had|can|could|will|"
    r"would|should|may|must|"
    r"(at|by|in|on|from|to|for|with|of|since|until|after|under|through|into|against|about|near) "
    r"(what|which|whom|whose|when|where))\b",
    re.IGNORECASE,
)
_ORDER = re.compile(r"(find|show|tell|list|give|look|search|point|locate|name|pick|get)\b", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(\{\w+\}|an?|the|my|our|your|his|her|its|some\w+|no|no one|nobody|nothing|every\w+|two|all|we|I|they|it)\b"
)
_SAID = re.compile(r"(is|was|were|are|has|had|cannot|can|could|did|does|will|must|got|gets|came|went|became|stays) ")
_RELATIVE = re.compile(r"\b(that|which|who|whose|where|when|what|how|why|because|since|after|before|if)\b|[:;,] ")
_SLOT_FIRST = re.compile(r"\{\w+\} ")
_BEFORE_NOUNS = frozenset(
    (
        "a",
        "an",
        "the",
        "this",
        "that",
        "each",
        "every",
        "any",
        "no",
        "for",
        "of",
        "by",
        "my",
        "your",
        "our",
        "its",
        "with",
    )
)
"""Words after which a participle stands before a noun, where only a single word takes its place."""


def is_asked(question: str) -> bool:
    """Whether it is a whole question, an order, or framed as one: it stands on its own."""
    parts = re.split(r"[,:] (?:so |and |but |or )?", question)  # "the key is gone, what now"
    return question.endswith("?") or bool(any(map(_ASKING.match, (parts[0], *parts[-1:]))) or _ORDER.match(question))


def is_clause(question: str) -> bool:
    """Whether it says that something is so: a clause that may follow "that"."""
    if is_asked(question) or not (_SLOT_FIRST.match(question) or _CLAUSE.match(question)):
        return False
    verb = re.search(rf" {_SAID.pattern}", f"{question} ")
    return verb is not None and not _RELATIVE.search(question[: verb.start()])


def at_time(question: str, clock: str) -> str | None:
    """The question about what happened at a time of day; None when it asks for the time itself."""
    if re.match(r"(when|since when|until when|how long|(at|from|since|until) (what|which))\b", question, re.IGNORECASE):
        return None
    return f"{question.rstrip('?.')} at {clock}{'?' if question.endswith('?') else ''}"


def _same(groups: str) -> dict[str, list[str]]:
    """Phrase -> the others of its group; hyphens stand for spaces (but in "e-mail" and "time-out"). What has a ``~``
    takes the others' place and never gives up its own, because it means other things as well."""
    found: dict[str, list[str]] = {}
    for group in groups.replace("\n", " ").split(";"):
        words = [w if w.lstrip("~") in ("e-mail", "time-out") else w.replace("-", " ") for w in group.split()]
        for word in words:
            if not word.startswith("~"):
                found.setdefault(word, []).extend(w.lstrip("~") for w in words if w != word)
    return found


_SAME = _same(_GROUPS)
_PHRASE = re.compile(
    r"(?P<slot>\{\w+\})|(?P<before>\b[A-Za-z]+ )?\b(?P<word>"
    + "|".join(sorted(_SAME, key=len, reverse=True))
    + r")\b(?![-'])"
)


def _exchanged(rng: random.Random, text: str, share: float) -> str:
    """``text`` with about ``share`` of the words that have others of the same meaning replaced by one of these."""

    def other(match: re.Match[str]) -> str:
        if match["slot"] or rng.random() >= share:
            return match[0]
        before = match["before"] or ""
        words = _SAME[match["word"]]
        if before.strip().lower() in _BEFORE_NOUNS:
            words = [w for w in words if " " not in w or not match["word"].endswith("ed")]
        if not words:
            return match[0]
        word = rng.choice(words)
        if before.strip() in ("a", "an"):
            before = "an " if word[0] in "aeiou" and not word.startswith("use") else "a "
        return before + word

    return _PHRASE.sub(other, text)


def reworded(rng: random.Random, template: str, share: float = 0.3, *, log: bool = True) -> str:
    """A question with some words replaced by others of the same meaning, in a frame; ``{slots}`` stay. A whole question
    is left nearly as it is, and now and then typed in haste. Without ``log`` no frame speaks of a log or a time."""
    if is_asked(template):
        text = _framed(rng, _ASKED_FRAMES, _exchanged(rng, template, share / 2))
        if rng.random() < 0.25:
            text = _lower(text).rstrip("?")
        return text
    text = _exchanged(rng, template, share)
    if is_clause(text) and rng.random() < 0.45:
        return _framed(rng, _LOG_CLAUSE_FRAMES if log else _CLAUSE_FRAMES, text)
    text = _framed(rng, _LOG_FRAMES if log else _FRAMES, text)
    return text[:1].upper() + text[1:] if rng.random() < 0.3 else text


def _framed(rng: random.Random, frames: tuple[str, ...], text: str) -> str:
    frame = rng.choice(frames)
    if frame.startswith("{q}"):
        return frame.replace("{q}", text)
    low = _lower(text)
    return frame.replace("{q}", low.rstrip("?") if frame.endswith("?") else low)


def _lower(text: str) -> str:
    """Without the capital it begins with, unless that belongs to a name."""
    first, _, rest = text.partition(" ")
    if first == "I" or not first.isalpha() or first[1:] != first[1:].lower():
        return text
    return f"{first.lower()} {rest}".rstrip()


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
