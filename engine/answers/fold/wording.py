"""Patterns of the words that restrict time, order and number in a question, in any case of letters."""

from __future__ import annotations

import re
from typing import Literal

from engine.answers.fold.moments import DAY, HOUR, MINUTE, MOMENT, SECOND

Relation = Literal["at", "after", "since", "before", "until", "between", "around"]

QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|`[^`]*`|(?<!\w)'[^']*'(?!\w)")
_F = re.IGNORECASE | re.VERBOSE

_UNITS = r"""(?:bytes?|[kmgt]i?b|[kmgt](?:ibi|ega|iga|era|ilo)bytes?|bits?|(?:milli|micro|nano)?seconds?|secs?|[mun]s|
    minutes?|mins?|hours?|days?|weeks?|percent|pages?|buffers?|tuples?|rows?|keys?|blocks?|characters?|dollars?|degrees)"""
COUNT = re.compile(
    rf"""\b(?: how\smany\stimes | how\s(?:often|frequently) | (?:the\s)?(?:total\s)?number\sof\s(?:times|occurrences)
      | how\smany\soccurrences(?:\sof)? | (?:what\sis\sthe\s)?(?:total\s)?number\sof(?=\s(?!{_UNITS}\b)\w+s\b)
      | ^\s*count(?:\sof|\show\smany|\sthe)?\b(?!\s*[:=(])
      | how\smany(?!\s(?:more\s)?{_UNITS}\b)
        (?!\s[\w\s]{{1,30}}?\b(?:have|has|had|take|took|contain\w*|hold|use|need|wait)\b) )\b""",
    _F,
)
DURATION = re.compile(
    r"""(?:\b(?:in|within|during|over|for)\s)? (?:\bthe\s)? \b(?P<which>first|last|final)\s
    (?:(?P<number>\d{1,4}|an?|one|two|three|five|ten|fifteen|thirty|sixty|half\san?|few)\s)?
    (?P<unit>seconds?|minutes?|mins?|hours?|days?)\b (?:\sof\s(?:the|this)\s(?:log|file|recording|run)\b)?""",
    _F,
)
NUMBERS: dict[str, float] = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "five": 5,
    "ten": 10,
    "fifteen": 15,
    "thirty": 30,
}
NUMBERS |= {"sixty": 60, "half a": 0.5, "half an": 0.5}
LENGTHS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}

_NEAR = r"(?:(?P<near>right|just|immediately|directly|shortly|straight)\s)?"
RANGE = re.compile(
    rf"""\b(?:between|from|in\sthe\stime\sfrom)\s(?P<a>{MOMENT})\s?(?:and|to|until|till|through|thru|-|–|—)\s?(?P<b>{MOMENT})
      | (?:\b(?:at|during|in|on|within)\s)?(?P<c>{MOMENT})\s?(?:-|–|—|\bto\b|\buntil\b)\s?(?P<d>{MOMENT})""",
    _F,
)
RELATIONS: tuple[tuple[Relation, str], ...] = (
    ("after", r"after|later\sthan|past|following"),
    ("since", r"since|from|starting(?:\sfrom|\sat|\son|\swith)?|as\sof|not\sbefore|on\sor\safter|at\sor\safter"),
    ("before", r"before|earlier\sthan|prior\sto|not\safter|ahead\sof"),
    ("until", r"until|till|up\sto|by|through|no\slater\sthan"),
    ("around", r"(?:at\s)?(?:around|about|approximately|roughly|circa|some\stime\saround)|near|close\sto|~"),
    ("at", r"at|on|in|during|within|dated|from\sexactly|exactly\sat"),
)
SINGLE = re.compile(
    rf"{_NEAR}(?:"
    + "|".join(rf"(?P<{name}>(?<!\w)(?:{words}))" for name, words in RELATIONS)
    + rf")\s?(?:the\s)?(?P<m>{MOMENT})|(?P<alone>{MOMENT})",
    _F,
)

WORDS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8}
WORDS |= {"ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12}
_THINGS = r"(?:time|one|line|entry|event|message|occurrence|record|instance|mention|row)"
BACK = re.compile(
    r"\b(?:(?P<nth>second|third|fourth|2nd|3rd|4th)[\s-](?:to[\s-])?last|penultimate|next[\s-]to[\s-]last)\b"
    r"(?:\s(?:time|one|occurrence)\b)?",
    _F,
)
FIRST = re.compile(
    rf"""\b(?:for\s)? (?:(?:the\s)?(?=(?:very\s)?(?:\w+|most\srecent)\s(?:time|one|occurrence)\b))? (?:very\s)?
    (?: (?P<first>first|earliest) | (?P<last>last|latest|most\srecent)
      | (?P<initial>initial|oldest)(?=\s{_THINGS}\b) | (?P<final>final|newest)(?=\s{_THINGS}\b) )
    (?![-\w])(?!\s(?:night|weekend|known|names?|class|aid|hand|half|few|(?:second|minute|hour|day|week|month|year)s?)\b)
    (?:\s(?P<take>[2-9]|[1-9]\d|two|three|four|five|ten)(?=\s\w))? (?:\s(?:time|one|ones|occurrence(?:\sof)?)\b)?""",
    _F,
)
BOTH = re.compile(r"\bfirst\s(?:and|or)\s(?:the\s)?last\b|\blast\s(?:and|or)\s(?:the\s)?first\b", re.IGNORECASE)
NTH = re.compile(
    rf"""\b(?: (?:for\s)?(?:the|a)\s(?=\w+\s(?:time|one|occurrence)\b) | (?<=\bthe\s) | (?<=\ba\s) | (?=\d) )
    (?: (?P<word>{"|".join(list(WORDS)[1:])}) | (?P<number>[1-9]\d{{0,3}})(?:st|nd|rd|th) )
    (?![-\w])(?!\s(?:half|of|after|before|later|party|person)\b)(?:\s(?:time|one|occurrence(?:\sof)?)\b)?""",
    _F,
)
VERB_LAST = re.compile(r"\b(?:long|did|does|do|will|could)\b[^?.]{0,80}?\blast(?=\s*[?.!]|\s*$|\sfor\b)", re.IGNORECASE)
TAKES = {"two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}


EMPTY = re.compile(
    r"""(?: an? | and | any | are | at | can | did | do(?:es)? | entr(?:y|ies) | events? | exactly | find | give
      | happen(?:ed|ing|s)? | have | i | in | is | it | lines? | list | log(?:s|ged)? | me | messages? | occur(?:red|s)?
      | of | on | please | records? | recorded | rows? | says? | see | show | tell | that | the | there | things? | this
      | time | to | us | was | we | went | were | what | when | where | which | who | whole | written | you | anything
      | something | everything | going )""",
    _F,
)
"""Words of a question that say nothing of what is looked for."""
LEVEL = re.compile(r"(?P<name>debug|info|notice|warn(?:ing)?|error|critical|fatal)s?", re.IGNORECASE)
OF_LEVEL = re.compile(r"with|levels?|severity", re.IGNORECASE)
"""A level as a question names it, and what may stand beside it."""
