"""What linters, compilers and runtimes complain of, and what they mean by it.

Sources: ruff (MIT), a wheel in the root folder; in its ``node_modules`` ESLint, its plugins, stylelint, markdownlint
(MIT), eslint-plugin-sonarjs (LGPL-3.0), axe-core (MPL-2.0) and TypeScript (Apache-2.0); in ``usr/share/doc`` the
manuals of Node.js (MIT) and Python (PSF-2.0).
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from .names import distinct, first_sentence, in_words, spelled, unmarked
from .sentences import Pair, opened
from .services import members

NAMES = (
    "count", "userName", "parser", "config", "index", "result", "options", "loadFile", "session", "total", "request",
    "callback", "render", "price", "timeout", "Account", "handler", "items", "response", "buffer", "getUser", "path",
)  # fmt: skip
_NAMED = r"\w*(?i:name|id|identifier|variable|var|argument|arg|parameter|param|function|property|prop|key|attribute)"
_QUOTED = re.compile(rf"([\"'`])(?:\{{\{{ *{_NAMED} *\}}\}}|\{{{_NAMED}\}}|%s)\1|%r")
_HOLE = re.compile(r"[{}]|%[srd(]|\*\*")
_REMEDY = re.compile(r"(?:Instead|Remove|Replace|Change|Insert|Add|Convert|Move|Did you)\b")
_TEXT = r"(?:'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`([^`$]*)`)"
_DESCRIPTION = re.compile(rf"\bdocs: ?\{{[^{{}}]*?\bdescription[\"']?: *{_TEXT}", re.DOTALL)
_FIRST_DESCRIPTION = re.compile(rf"\bdescription[\"']?: *{_TEXT}")
_MESSAGES = re.compile(r"\bmessages(?::| =) ?(?:ruleMessages\(ruleName, )?\{(.*?)\n?\s*\}[,;)]?\s*\n", re.DOTALL)
_MESSAGE = re.compile(rf"[\w\]\"']+: *{_TEXT}")


def filled(message: str) -> str:
    """A message's template with names of a program in its quoted holes, or "" where other holes are left."""
    picked = iter(range(zlib.crc32(message.encode()), 1 << 40))
    name = lambda: NAMES[next(picked) % len(NAMES)]  # noqa: E731
    message = _QUOTED.sub(lambda _: f"'{name()}'", message)
    return "" if _HOLE.search(message) or _REMEDY.match(message) else unmarked(message)


def capital(sentence: str) -> str:
    """The sentence with a capital, unless it begins with code."""
    return sentence[:1].upper() + sentence[1:] if re.match(r"[a-z]+[ ,]", sentence) else sentence


def of_ruff(rules: list[dict[str, str]]) -> Iterator[Pair]:
    """(what it looks for, message) and (why that is bad, what it looks for) of ``ruff rule --all`` as JSON."""
    for rule in rules:
        parts = dict(re.findall(r"^## ([^\n]*)\n+(.*?)(?=^## |\Z)", rule["explanation"], re.DOTALL | re.MULTILINE))
        what = re.sub(r"^Checks (?:for|that) ", "", first_sentence(parts.get("What it does", "")))
        what = capital(what)
        why = first_sentence(parts.get("Why is this bad?", ""))
        yield what, filled(rule["summary"])
        yield why, filled(rule["summary"])
        yield why, spelled(rule["name"])


def explained(program: bytes) -> list[dict[str, str]]:
    """All rules as the program ruff tells them; CalledProcessError where it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ruff"
        path.write_bytes(program)
        path.chmod(0o700)
        command = [path, "rule", "--all", "--output-format", "json"]
        rules: list[dict[str, str]] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return rules


def of_script(source: str, name: str) -> Iterator[Pair]:
    """Pairs of the source of an ESLint or stylelint rule of that name: description, name and messages."""
    found = _DESCRIPTION.search(source) or _FIRST_DESCRIPTION.search(source)
    said = (
        first_sentence(next(part for part in found.groups() if part).replace("\\", ""))
        if found and any(found.groups())
        else ""
    )
    said = capital(said)
    if said:
        yield said, spelled(name)
    block = _MESSAGES.search(source)
    first = _MESSAGE.search(block[1]) if block else None  # further ones are of special cases
    if first and len((message := filled("".join(first.groups("")).replace("\\", ""))).split()) > 2:
        yield said or in_words(name), message


def of_options(source: str) -> Iterator[Pair]:
    """(what it does, name) of the compiler options in TypeScript's source."""
    said = dict(re.findall(r"^ +(\w+): diag\(\d+, \d[^,]*, \"[^\"]*\", \"((?:[^\"\\]|\\.)*)\"", source, re.MULTILINE))
    for name, key in re.findall(r"\bname: \"(\w+)\",(?:(?!\bname:)[^{}])*?description: Diagnostics\.(\w+)", source):
        yield first_sentence(said.get(key, "").replace('\\"', '"')), name


def of_node(page: str) -> Iterator[Pair]:
    """(explanation, error code) of Node's page of errors."""
    for code, said in re.findall(r"<h4><code>(ERR_\w+)</code>[^\n]*</h4>\s*<p>([^\0]*?)</p>", page):
        yield first_sentence(said), code if zlib.crc32(code.encode()) % 2 else in_words(code.removeprefix("ERR_"))


def of_python(page: str) -> Iterator[Pair]:
    """(when it is raised, exception) of Python's page of exceptions."""
    for name, said in re.findall(r"<dt class=\"sig[^>]* id=\"(\w+)\">.*?<dd><p>(.*?)</p>", page, re.DOTALL):
        sentence = re.sub(r"^(?:Raised when |A subclass of \w+, raised when )", "", first_sentence(said))
        yield capital(sentence), spelled(name)


RULES = {
    "eslint": "lib/rules", "stylelint": "lib/rules", "@typescript-eslint/eslint-plugin": "dist/rules",
    "eslint-plugin-unicorn": "rules", "eslint-plugin-react": "lib/rules", "eslint-plugin-vue": "dist/rules",
    "eslint-plugin-n": "lib/rules", "eslint-plugin-import": "lib/rules", "eslint-plugin-jsx-a11y": "lib/rules",
    "eslint-plugin-sonarjs": "cjs", "markdownlint": "lib",
}  # fmt: skip
"""Folders of rules, a file or folder a rule, in npm's packages."""


def scripts(root: Path) -> Iterator[Pair]:
    """Rules of ESLint, its plugins, stylelint and markdownlint, in the packages' order."""
    for package, folder in RULES.items():
        under = root / "node_modules" / package / folder
        for path in sorted([*under.rglob("*.js"), *under.rglob("*.mjs")]):
            name = path.parent.name if path.stem in ("index", "rule", "meta") else path.stem
            source = opened(path)
            if own := re.search(r'"names": \[ "MD\d+", "([\w-]+)"', source):
                name = own[1]
            if "-" in name:
                yield from of_script(source, name)


def accessibility(root: Path) -> Iterator[Pair]:
    """Rules of axe-core: what each ensures and how it is put to users."""
    for path in sorted(root.glob("node_modules/axe-core/locales/_template.json")):
        for name, rule in json.loads(path.read_text())["rules"].items():
            yield rule["description"], rule["help"]
            yield rule["help"], name


def linters(root: Path) -> Iterator[Pair]:
    """Messages and names of linters' rules with what they look for and why."""

    def every() -> Iterator[Pair]:
        for _, program in members(root, "ruff", r"/scripts/ruff$"):
            yield from of_ruff(explained(program))
        yield from scripts(root)
        yield from accessibility(root)

    yield from several(every())


def several(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Distinct pairs where a question may ask for up to two texts: a rule's message and its name."""
    seen: dict[str, int] = {}
    sides: tuple[list[Pair], list[Pair]] = ([], [])
    for question, text in pairs:
        nth = seen[question] = seen.get(question, -1) + 1
        if nth < 2:
            sides[nth].append((question, text))
    for side in sides:
        yield from distinct(side)


def errors(root: Path) -> Iterator[Pair]:
    """Node's error codes, Python's exceptions and TypeScript's compiler options with what each says."""

    def every() -> Iterator[Pair]:
        for pattern, parse in (
            ("usr/share/doc/nodejs/api/errors.html", of_node),
            ("usr/share/doc/python3*/html/library/exceptions.html", of_python),
            ("node_modules/typescript/lib/typescript.js", of_options),
        ):
            for path in sorted(root.glob(pattern)):
                yield from parse(opened(path))

    yield from distinct(every())
