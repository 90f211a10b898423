"""Settings and functions with what they are for.

Git and Linux (GPL-2), Apache (Apache-2.0), Postfix (EPL-2.0), GSettings schemas (LGPL-2.1+), options of Ansible's
modules (GPL-3+), and the manuals of Python (PSF-2.0), Django (BSD-3-Clause) and other libraries.
"""

from __future__ import annotations

import ast
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from .sentences import Pair, beginning, first, opened, plain, says, split, untagged


def keys(text: str) -> Iterator[Pair]:
    """(what it sets, key) of Git's lists of settings (asciidoc, ``core.fileMode::`` above an indented paragraph)."""
    for name, body in re.findall(r"^([a-z]\w*\.[\w.-]+)::\n((?:[ \t]+\S.*\n)+)", text, re.MULTILINE):
        text = re.sub(r"linkgit:([\w-]+)\[\d\]", r"\1", body).replace("`", "'")
        text = re.sub(r"^\s*\((Optional|Deprecated|Windows-only)\) ", "", text)
        if said := beginning(text):
            yield said, name


def git(root: Path) -> Iterator[Pair]:
    """Settings of Git's source archive."""
    for path in sorted(root.glob("git_*.orig.tar.*")):
        with tarfile.open(path) as archive:
            for member in archive:
                if "/Documentation/config/" in member.name and (file := archive.extractfile(member)):
                    yield from keys(file.read().decode("utf-8", "replace"))


def parameters(text: str) -> Iterator[Pair]:
    """(what it does, parameter) of kernel-parameters.txt: names after one tab, explanations after three."""
    for name, head, body in re.findall(r"^\t([a-z][\w.-]+=?)([^\n]*)\n((?:\t\t\t.*\n)+)", text, re.MULTILINE):
        body = re.sub(r"\A(\t+(Format|Default):?.*\n|\t+[{<].*\n|\t+\[.*\]\n)+", "", body).split("\n\n")[0]
        said = first(re.sub(r"\[[^]]*\]", "", head) + body)
        if said and said[0].isupper():
            yield said, name


def variables(text: str) -> Iterator[Pair]:
    """(what it does, variable) of the kernel's documents on sysctl: underlined headings, or ``name - TYPE`` above an
    indented paragraph."""
    found = re.findall(r"^([a-z][\w-]+)\n[=-]{3,}\n+((?:[A-Z].*\n)(?:\S.*\n)*)", text, re.MULTILINE)
    found += re.findall(r"^([a-z][\w-]+) - [A-Z].*\n((?:[ \t]+\S.*\n)+)", text, re.MULTILINE)
    for name, body in found:
        if "_" in name and (said := first(body.replace("``", "'"))):
            yield said, name


def linux(root: Path) -> Iterator[Pair]:
    """Parameters and variables of the kernel."""
    for path in sorted(root.glob("usr/share/doc/linux-doc-*/Documentation/admin-guide/kernel-parameters.txt*")):
        yield from parameters(opened(path))
    for where in ("admin-guide/sysctl/*.rst*", "networking/*sysctl*.rst*"):
        for path in sorted(root.glob(f"usr/share/doc/linux-doc-*/Documentation/{where}")):
            yield from variables(opened(path))


def apache(root: Path) -> Iterator[Pair]:
    """(description, directive) of Apache's modules, and the first sentence of what each does."""
    for path in sorted(root.glob("usr/share/doc/apache2-doc/manual/en/mod/*.html")):
        for section in opened(path).split('<div class="directive-section">')[1:]:
            name, told = (
                re.search(r'<span id="\w+">(\w+)</span>', section),
                re.search(r"Description:</a></th><td>(.*?)</td>", section, re.DOTALL),
            )
            if not name or not told:
                continue
            if says(said := untagged(told[1])):
                yield said, name[1]
            text = re.search(r"</table>\s*<p>(.*?)</p>", section, re.DOTALL)
            if text and (said := first(untagged(text[1]))) and not said.startswith("This directive is"):
                yield (
                    re.sub(rf"^The {name[1]} directive ", "", said).capitalize() if name[1] in said[:40] else said,
                    name[1],
                )


def sphinx(page: str) -> Iterator[Pair]:
    """(first sentence, name) of classes, functions, exceptions and settings in a page that Sphinx made."""
    pattern = r'<dt class="sig[^"]*"[^>]*?id="([\w.:-]+)">.*?</dt>\s*<dd><p>(.*?)</p>'
    pattern += r"|<h2>(?:<code[^>]*>)?(?:<span[^>]*>)?([A-Z_]{5,})<.*?</h2>.*?<p>Default: .*?</p>\s*<p>(.*?)</p>"
    for name, text, setting, told in re.findall(pattern, page, re.DOTALL):
        name = re.sub(r"^(std-setting-|envvar-|c\.)", "", name) or setting
        if re.search(r"-|__|::", name):  # the anchors of options, grammar and C++, and methods that are never typed
            continue
        if said := first(untagged(text or told)):
            yield said, ".".join(name.split(".")[-2:])


def manuals(root: Path) -> Iterator[Pair]:
    """Names of the Python, Django, SQLAlchemy and other libraries' manuals."""
    for path in sorted(root.glob("usr/share/doc/*/html/**/*.html")):
        if re.search(r"/(python3|django|python-|sqlalchemy)", str(path)) and "whatsnew" not in str(path):
            yield from sphinx(opened(path))


def schemas(root: Path) -> Iterator[Pair]:
    """(description, summary) and (summary, key) of GSettings schemas."""
    for path in sorted(root.glob("usr/share/glib-2.0/schemas/*.gschema.xml")):
        for key in ElementTree.parse(path).iter("key"):
            summary, told = ((key.findtext(tag) or "").strip() for tag in ("summary", "description"))
            said, summary = beginning(told), plain(summary)
            if said and len(summary.split()) > 1:
                yield said, summary
            elif len(summary.split()) > 2:
                yield summary.rstrip("."), key.get("name", "")


def described(source: str, module: str) -> Iterator[Pair]:
    """(first sentence, "module: option") of the DOCUMENTATION text in an Ansible module."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and getattr(node.targets[0], "id", "") == "DOCUMENTATION"
            and isinstance(node.value, ast.Constant)
        ):
            text = re.sub(r"\b[CIBFVO]\(([^()]*)\)", r"'\1'", re.sub(r"\bM\(([^()]*)\)", r"\1", str(node.value.value)))
            short = re.search(r"^short_description: *['\"]?(.*?)['\"]?$", text, re.MULTILINE)
            if short and len(short[1].split()) > 2:
                yield short[1].rstrip("."), module
            for name, told in re.findall(
                r"^ {2,8}(\w+):\n +description:(?: *\n +- | )((?:(?!\n *- |\n *\w+:).)*)",
                text,
                re.MULTILINE | re.DOTALL,
            ):
                sentences = split(told.strip("'\">|- "))
                if sentences and says(sentences[0]):
                    yield sentences[0], f"{module}: {name}"


def ansible(root: Path) -> Iterator[Pair]:
    """Modules and their options."""
    for where in ("ansible/modules", "ansible_collections/*/*/plugins/modules"):
        for path in sorted(root.glob(f"usr/lib/python3/dist-packages/{where}/**/*.py")):
            if not path.stem.startswith(("fmgr_", "fortios_", "faz_")):  # generated: hundreds say the same
                yield from described(opened(path), path.stem)


def postfix(root: Path) -> Iterator[Pair]:
    """Parameters of Postfix."""
    pattern = re.compile(r'<dt><b><a name="(\w+)">.*?<dd>\s*<p>(.*?)</p>', re.DOTALL | re.IGNORECASE)
    for path in sorted(root.glob("usr/share/doc/postfix/html/postconf.5.html")):
        for name, text in pattern.findall(opened(path)):
            if said := first(untagged(text)):
                yield said, name
