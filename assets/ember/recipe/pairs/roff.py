"""Manual pages as tagged paragraphs: roff's man macros (.TP, .IP, and .PP with .RS as asciidoc writes them) and mdoc's
lists, as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Item(NamedTuple):
    section: str
    """Heading of the section, in capitals."""
    tag: str
    """What is explained: an option, a setting, a value."""
    text: str
    """The first paragraph of the explanation."""


_SIGNS = dict(
    sign.rsplit(" ", 1)
    for sign in r"""\- -;\e \;\' '
\` `;\(aq ';\(cq ';\(oq ';\(dq ";\(lq ";\(rq ";\(co (C);\(en -;\(em -;\(mi -;\(ha ^;\(ti ~
\(rs \;\(ga `;\(ul _;\(or |;\(-> ->;\(+- +-;\(mu x;\(la <;\(ra >;\(lB [;\(rB ]""".replace("\n", ";").split(";")
)
_SIGNS |= {"\\ ": " ", "\\~": " "} | dict.fromkeys(
    (r"\&", r"\|", r"\^", r"\/", r"\,", r"\:", r"\%", r"\(bu", r"\(sq"), ""
)
_SIGN = re.compile("|".join(re.escape(sign) for sign in sorted(_SIGNS, key=len, reverse=True)))
_FONTS = ("B", "I", "R", "SM", "SB", "BR", "RB", "IR", "RI", "BI", "IB", "MR", "SY", "OP")
_ENCLOSED = {
    "Dq": '""',
    "Qq": '""',
    "Sq": "''",
    "Ql": "''",
    "Pq": "()",
    "Op": "[]",
    "Bq": "[]",
    "Aq": "<>",
    "Brq": "{}",
}
_CALLED = re.compile(
    r"(Ar|Cm|Ic|Li|Pa|Ev|Em|Sy|Va|Vt|Fa|Fn|Ft|Dv|Er|No|Tn|Ux|Bx|Nx|Fx|Ox|At|Ad|An|Ms|Do|Dc|So|Sc|Po|Pc|Oo|Oc|Ao|Ac|Bo|Bc|Xo|Xc|Mt|Lk|"
    r"Sm|Bk|Ek|Ta|St|Nd|Cd|Qo|Qc|Fo|Fc)$"
)


def unescaped(text: str) -> str:
    """A roff string as it is printed, without fonts and sizes."""
    text = re.sub(r"\\f(\[\w*\]|\(..|.)|\\s[-+]?\d+|\\m\[\w*\]|\\[hvwo]'[^']*'|\\c$|\s*\\\".*$|\\k.", "", text)
    text = re.sub(r"\\\[(\w\w)\]", r"\\(\1", text)
    text = re.sub(r"\\\*\(?([lr]q|[LR]\"|Aq|C[+'`])", lambda m: {"A": "'", "C": "'"}.get(m[1][0], '"'), text)
    return _SIGN.sub(lambda match: _SIGNS[match[0]], text)


def _words(line: str) -> list[str]:
    """Arguments of a macro; quoted ones are one."""
    return [a.replace('""', '"') or b for a, b in re.findall(r'"((?:[^"]|"")*)"|(\S+)', line.replace(r"\ ", "\\~"))]


def _font(macro: str, arguments: str) -> str:
    """A font macro's words; of two fonts in turn the words stand without a space between."""
    return ("" if len(macro) == 2 and macro not in ("SM", "SB", "SY", "OP") else " ").join(_words(arguments))


def mdoc(line: str, page: str) -> str:
    """The text of one mdoc macro line, whose macros call others."""
    out: list[str] = []
    ending, glued = "", False
    words = _words(line)
    for at, word in enumerate(words):
        if word == "Ns":
            glued = True
        elif word == "Fl":
            flag = words[at + 1] if at + 1 < len(words) and not _CALLED.match(words[at + 1]) else ""
            out.append("-" if flag else " -")
            glued = bool(flag)
        elif word == "Nm" and (at + 1 == len(words) or not re.match(r"\w", words[at + 1])):
            out.append(page)
        elif word == "Xr" or word == "Nm" or _CALLED.match(word):
            continue
        elif word in _ENCLOSED:
            out.append(_ENCLOSED[word][0])
            ending, glued = _ENCLOSED[word][1] + ending, True
        else:
            if at > 1 and words[at - 2] == "Xr" and re.fullmatch(r"\w+", word):
                word, glued = f"({word})", True
            if re.fullmatch(r"[.,;:)!?]+", word) and out:
                word, ending, glued = f"{ending}{word}", "", True
            if glued and out:
                out[-1] += word
            else:
                out.append(word)
            glued = word in ("(", "[")
    return (" ".join(out) + ending).strip()


def items(text: str, page: str) -> Iterator[Item]:
    """The tagged paragraphs of a manual page."""
    is_mdoc = bool(re.search(r"^\.Sh ", text, re.MULTILINE))
    section, tag, waiting, before = "", "", False, ""
    body: list[str] = []
    full = skipped = False

    def done() -> Iterator[Item]:
        said = re.sub(r"\s+", " ", " ".join(body)).strip()
        if tag and said:
            yield Item(section, re.sub(r"\s+", " ", tag).strip(), said)

    for raw in re.sub(r"\\\n", "", text).splitlines():
        if raw.startswith(('.\\"', "'\\\"", "'''")):
            continue
        if raw.startswith(".el "):
            continue
        raw = raw.removeprefix(".ie n ")
        line, macro, rest = raw, "", ""
        if raw[:1] in (".", "'") and (found := re.match(r"[.']\s*([A-Za-z]+)\s*(.*)", raw)):
            macro, rest = found[1], unescaped(found[2])
        if macro in ("nf", "EX", "Bd", "TS", "ig", "de"):
            skipped, full = True, True
        elif macro in ("fi", "EE", "Ed", "TE") or raw == "..":
            skipped = False
        elif skipped:
            continue
        elif macro in ("SH", "Sh", "SS", "Ss"):
            yield from done()
            tag, body, waiting = "", [], False
            section = rest.strip(' "').upper() if macro in ("SH", "Sh") or section != "ERRORS" else section
        elif macro == "TP" or macro == "TQ":
            yield from done()
            tag, body, waiting, full = "", [], True, False
        elif macro == "IP" or (macro == "It" and is_mdoc):
            yield from done()
            words = _words(rest)
            tag, body, waiting, full = (
                (words[0] if words else "") if macro == "IP" else mdoc(rest, page),
                [],
                False,
                False,
            )
        elif macro == "RS" and before and not tag:
            tag, body, full = before, [], False
        elif macro in ("PP", "P", "LP", "Pp", "sp", "RE", "RS", "El", "Bl", "HP"):
            if body:
                full = True
            if macro in ("PP", "P", "LP", "RE", "El", "HP"):
                yield from done()
                tag, body, waiting = "", [], False
            before = ""
        else:
            if macro in _FONTS:
                line = _font(macro, rest)
            elif macro and is_mdoc and macro[0].isupper():
                line = mdoc(f"{macro} {rest}", page)
            elif macro:
                continue
            else:
                line = unescaped(raw)
            if not line.strip():
                full = full or bool(body)
            elif waiting:
                tag, waiting = line, False
            elif tag and not full:
                body.append(line.strip())
            elif not tag:
                before = f"{before} {line}".strip()
    yield from done()
