"""Labels, and what they are for as people say it: tips without their boilerplate, as orders where they can be."""

from __future__ import annotations

import re

from assets.ember.recipe.pairs.sentences import plain, says, split, untagged
from assets.ember.recipe.screens.framing import VERBS, is_order, spoken

LONGEST, MOST_WORDS = 34, 5
"""Characters and words of a label."""
SHORTEST, LENGTH = 10, 100
"""Characters of what it is for."""
SHARED = 0.6
"""Part of a function's words that may stand in its label."""

_ACCELERATOR = re.compile(r"\(&\w\)|(?<!&)&(?=[^\s&])|_(?=\w)|~(?=\w)")
_STRANGE = re.compile(r"[<>{}\\@|\n\t_=^~`*#$]|%\S|::|https?:|www\.|\.\.\.\S|[a-z][A-Z]\w*\.|/\w+/|\[\w+\]|--\w")
_CODE = re.compile(
    r"\b(const|TRUE|FALSE|eg|string describing|model column|"
    r"pointers?|deprecated|obsolete|callbacks?|widgets?|G?[Oo]bject type|structs?|enum\w*|booleans?"
    r"|NULL|nullptr|"
    r"API|internal(ly)?|unused|not (yet )?(implemented|used|supported)|TODO|FIXME|hack|RNA|bitmask|bitfield|PSpec|"
    r"GObject|debug\w*|args?|params?|argv|stdin|stdout|stderr|uint\d*|gboolean|signal handler|tuples?|subclass\w*|"
    r"mutex|malloc|regress\w*|translators?|placeholder|lorem|foo|i18n|qqq|message is|do not translate|xml"
    r"|json|schema)\b"
    r"|\b(Gtk|Gdk|Gst|Gegl|Gimp|Q|G|wx|RNA)[A-Z]\w+|\b[a-z]+[A-Z]\w*\(|\b\w+\(\)|\b[a-z]+_[a-z]+",
)
_DULL = re.compile(
    r"(Static b|B)inding|(is|are|was|will|should|can|must|has|may|could|does|used|=)\b|"
    r"used by\b|same as\b|see\b|default[s:]|no (longer|tooltip)|click here$|unknown|none\b|not? "
    r"(needed|available)|copyright|example|e\.g\.|note:|warning:|todo|test|name of the (property|attribute|"
    r"parameter|argument)|(a|an|the) (string|integer|float|list|boolean)\b|this (string|message|text)\b"
    r"|translat|tooltip|"
    r"(I|it|they|he|she|its|their|these|those|them|also|here)\b",
    re.IGNORECASE,
)
"""Beginnings of what says nothing about a control."""
_STATE = (
    r"(?:enabled?|checked|ticked|set|selected|on|true|activated?|active|turned on|marked|chosen"
    r"|switched on|yes|specified)"
)
_THING = (
    r"(?:option|setting|button|field|check ?box|box|switch|toggle|property|parameter|value|command|action|menu|tool|"
    r"page|tab|list|dialog|preference|entry|item|checkbutton|slider|number|plugin|module|feature|function"
    r"|effect|filter|"
    r"attribute|variable|control|widget|flag|mode|menu item|input|combo ?box|drop-?down|section|panel)"
)
_BEGINNINGS = [
    (re.compile(pattern, re.IGNORECASE), with_)
    for pattern, with_ in (
        (rf"(?:if|when) (?:this |it |the )?(?:{_THING} )?(?:is )?(?:not )?{_STATE}(?: to true)?,? (?:then )?", ""),
        (rf"(?:if|when) (?:you )?(?:check|tick|enable|select|activate|set)(?: this| it)?(?: {_THING})?, ", ""),
        (r"\(?(?:optional|required|advanced|experimental|hint|tip|info|note)\)?[.:)-]\s*", ""),
        (rf"this(?: {_THING})? (?:is|can be|may be) (?:used to|for) ", ""),
        (rf"(?:this|the following)(?: {_THING})?(?: will| can| may)? ", ""),
        (rf"(?:a |an |the )?{_THING} (?:to|that) (?=\w)", ""),
        (
            rf"(?:use|using|select|check|tick|enable|activate|choose|click|press|set|mark"
            rf"|turn on)(?: (?:on )?(?:this|it|here))?"
            rf"(?: {_THING})?(?: to (?:true|yes|on))? (?:if|when) you (?:want|wish|would like|need"
            rf"|prefer) (?:to )?",
            "",
        ),
        (
            rf"(?:use|using|check|tick|enable|activate|click|press|select|turn on|set)(?: (?:on )?(?:this|it"
            rf"|here))?(?: {_THING})?"
            r"(?: to (?:true|yes|on))? (?:in order )?to (?=[a-z])",
            "",
        ),
        (r"(?:here )?you can (?:use this to |also )?(?=\w)", ""),
        (r"(?:it )?(?:allows?|lets?|enables?|permits?) (?:you|users?|one|the users?|people) (?:to )?", ""),
        (r"(?:allows?|permits?|used|useful|helps?|intended|designed) to (?=[a-z])", ""),
        (r"(?:used|useful|intended|meant) (?:for|when) ", ""),
        (r"whether or not to ", ""),
        (r"(?:whether|if) to ", ""),
        (
            r"(?:controls?|determines?|specif(?:y|ies)|defines?|sets?|indicates?|selects?|decides?|configures?"
            r"|toggles?|choose|"
            r"specify) (?:if|whether)(?: or not)? to ",
            "",
        ),
        (
            r"(?:controls?|determines?|specif(?:y|ies)|defines?|sets?|indicates?|selects?|decides?|configures?"
            r"|toggles?|chooses?) "
            r"(?:if|whether)(?: or not)? ",
            "whether ",
        ),
        (
            r"(?:controls?|determines?|specif(?:y|ies)|defines?|sets?|indicates?|decides?|configures?) (?=(how"
            r"|where|when|which|what) )",
            "",
        ),
        (r"(?:please|simply|just|automatically) ", ""),
        (r"enable/disable ", "turn on or off "),
        (r"(?:show|hide)/(?:show|hide) ", "show or hide "),
        (r"(?:true|yes) (?:if|when|to) ", ""),
        (r"the (?=(name|number|amount|maximum|minimum|color|colour|size|width|height|time|type|kind|path) )", "the "),
    )
]
_ALSO_TOGETHER = """
affect seek issue specify define indicate describe contain determine represent display
"""
_ALSO = frozenset(_ALSO_TOGETHER.split())
"""Verbs of tooltips that nobody begins a wish with."""
_NOUNS_TOGETHER = """
files lists lines shows changes values names places points marks tags images links filters views records results
keys orders numbers limits levels controls pages times types uses groups sorts scales scans tests starts stops ends
notes objects reports messages matches plans steps signs prints parts packages loads covers shares visits posts
blocks locks titles searches tracks copies plays splits turns ranks rates colours colors filters masks rounds
shapes tops bottoms guides comments requests
"""
_NOUNS = frozenset(_NOUNS_TOGETHER.split())
"""What may as well be several of something."""
_PERSON = re.compile(r"([A-Za-z]+?)(ies|es|s)\b")
_NO_OBJECT = r"(of|to|for|in|that|which|from|with|by|on|at|used|per|and|or)\b"
_CUT = re.compile(
    r"(?:, (?:where|which|so|but|and|e\.g|or|as|because|if|even|while|unless|for example|instead|since)\b|; "
    r"| - | so that ).*"
)
_FINITE = re.compile(
    r"\b(is|are|was|were|will|would|can|could|must|should|has|have|does|do|may|might|cannot|gets|appears?"
    r"|shows|means|needs)\b"
)
_RELATIVE = re.compile(r"\b(that|which|who|whose|where|when|while|if|how|what|as|because|until|after|before)\b")
_LITTLE_TOGETHER = """
a an the of to in on for and or with by from is are be as at that than if when which this these those it its into
all any each will can not no use used using you your current selected
"""
_LITTLE = frozenset(_LITTLE_TOGETHER.split())


def label(text: str) -> str | None:
    """A label as it is shown, or None for one that is too long, or has placeholders or markup."""
    text = plain(re.sub(r"\\n|\n", " ", text.replace('\\"', '"')))
    if re.fullmatch(r"[a-z0-9_.]*[a-z0-9][_.][a-z0-9_.]+", text):  # a name in code
        return None
    text = re.sub(r"(?<=\w)&(?=\w)", "", text) if "&" in text and "& " not in text else text
    text = _ACCELERATOR.sub("", text, count=1) if " & " not in text else text
    text = text.replace("&&", "&").rstrip(".:* ").strip("'\" ")
    fits = 2 <= len(text) <= LONGEST and len(text.split()) <= MOST_WORDS and text.isascii()
    if not fits or _STRANGE.search(text) or not re.match(r"[A-Za-z0-9(]", text) or not re.search(r"[A-Za-z]{2}", text):
        return None
    if (
        (re.search(r"[a-z][A-Z]\w*$", text) and " " not in text)
        or re.search(r"[:;,(]$", text)
        or text.count("(") != text.count(")")
    ):
        return None
    if re.search(r"(^|\s)'\w|\w'(\s|$)", text) or text.count('"') % 2:
        return None
    if len(text) < 3 and text.lower() not in ("up", "ok", "id", "go", "no", "on"):
        return None
    return (
        None
        if re.match(r"(test|todo|unknown|unused|deprecated|none|debug|untitled|label|button)\b", text, re.IGNORECASE)
        else text
    )


def _order(word: str) -> str | None:
    """ "Shows" as "show", "Applies" as "apply", or None for what is no verb in the third person."""
    if not (found := _PERSON.fullmatch(word)):
        return None
    stem, ending = found[1].lower(), found[2]
    tries = {"ies": [stem + "y"], "es": [stem, stem + "e"], "s": [stem]}[ending]
    return next((verb for verb in tries if (verb in VERBS or verb in _ALSO) and verb != "whether"), None)


def _ordered(text: str) -> str:
    """ "Opens the file and shows its pages" as "open the file and show its pages"."""
    first, _, rest = text.partition(" ")
    verb = _order(first)
    if (
        not verb
        or (first.lower() in _NOUNS and re.match(_NO_OBJECT, rest))
        or re.match(r"(of|is|are|was|were|will|can|per)\b", rest)
    ):
        return text

    def mend(found: re.Match[str]) -> str:
        return f"{found[1]} {_order(found[2]) or found[2]}"

    return (
        verb
        + " "
        + re.sub(r"\b(and|or|then|and then) (\w+s)\b(?= (?:the|a|an|all|it|its|them|your|this|to|any)\b)", mend, rest)
    )


def _content(text: str) -> list[str]:
    return [word[:5] for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in _LITTLE]


def function(text: str) -> str | None:
    """What a control is for in one clause, from its tooltip or description: an order where it can be made one; a
    sentence of its own begins with "=". None where it does not say it plainly."""
    text = text.replace('\\"', '"').replace("\\n", "\n")
    text = text.split("\n\n")[0]
    sentences = split(untagged(text))
    if not sentences or not says(sentences[0], SHORTEST, 180) or _STRANGE.search(sentences[0]):
        return None
    said = re.sub(r"\s*\([^()]*\)(?=[.,]?$)", "", sentences[0]).rstrip(". ")
    for _ in range(3):
        before = said
        for pattern, with_ in _BEGINNINGS:
            if found := pattern.match(said):
                said = with_ + said[found.end() :]
        said = _ordered(said)
        if said == before:
            break
    if len(said) > LENGTH and len(cut := _CUT.sub("", said)) >= 30:
        said = cut
    if not SHORTEST <= len(said) <= LENGTH or len(said.split()) < 3 or _CODE.search(said) or _DULL.match(said):
        return None
    words = said.split()
    if sum(word[0].isupper() for word in words) > 0.5 * len(words) or not re.match(r"[A-Za-z]", said):
        return None
    if re.search(
        rf"\b(this|the following) {_THING}\b|^(mark|check|tick|select) (this|if)\b|\b(the|a|an|of|to|and|or"
        rf"|with|for|in|by)$|[;:?]|\bi\.e\b|!$|^'\w|\w'$|\. [a-z]",
        said,
    ):
        return None
    said = spoken(said)
    stated = not is_order(said) and (found := _FINITE.search(said)) and not _RELATIVE.search(said[: found.start()])
    return f"={said[0].upper()}{said[1:]}" if stated else said


def pair(text: str, told: str) -> tuple[str, str] | None:
    """Label and function if both are clean and the second says more than the first."""
    first, second = label(text), function(told)
    if not first or not second:
        return None
    there, said = set(_content(first)), _content(second)
    news = [word for word in said if word not in there]
    if not news or len(news) < (1 - SHARED) * len(said) or (len(news) < 2 and len(news) < len(said)):
        return None
    return first, second
