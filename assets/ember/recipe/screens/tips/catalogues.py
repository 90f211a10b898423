"""Labels with their explanations in files of messages, where the names of the keys tell which belong together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from .code import Said, in_words

_ENDINGS = (
    ".tooltip",
    ".description",
    ".desc",
    ".hint",
    ".help",
    ".summary",
    ".info",
    ".tooltiptext",
    ".longdesc",
    ".about",
    "help",
    "tooltip",
    "description",
    "desc",
    "hint",
    "summary",
    "about",
    "info",
    "tip",
    "longdesc",
    "subtitle",
    "explanation",
)
_LABELS = ("", ".label", ".title", ".name", ".text", "label", "title", "name")


def keyed(table: Mapping[str, str]) -> Iterator[Said]:
    """Texts whose keys differ in their ending: ``port`` and ``port.hint``, ``TP_SHARPEN_LABEL`` and ``…_TOOLTIP``."""
    plain = {re.sub(r"[-_. ]+", ".", key).lower(): value for key, value in table.items()}
    for key, told in plain.items():
        for ending in _ENDINGS:
            stem = key.removesuffix(ending).rstrip(".")
            if key.endswith(ending) and stem:
                for shown in (stem + suffix for suffix in _LABELS):
                    if shown in plain and shown != key:
                        yield plain[shown], told
                break


def lines(name: str, text: str) -> Iterator[Said]:
    """Files with a key and a text on each line: ``Key="Text"``, ``KEY;Text``, ``"key" = "Text";``."""
    found = re.findall(r"^\s*[\"']?([\w.:-]+)[\"']?\s*(?:=>|=|;)\s*(.+?)[;,]?\s*$", text, re.MULTILINE)
    return keyed({key: re.sub(r"^(?:__\(\s*)?([\"'])(.*)\1\)?$", r"\2", value) for key, value in found})


def _referred(text: str) -> str:
    """A label, or the name of the one that it refers to: "[%key:common::config_flow::data::host%]" as "Host"."""
    names = [part for part in text.strip("[]%").split("::") if part not in ("name", "title", "description")]
    return in_words(names[-1]) if text.startswith("[%key:") else text


def home_assistant(name: str, text: str) -> Iterator[Said]:
    """Fields, options and services of an integration of Home Assistant (strings.json)."""

    def walk(node: object) -> Iterator[Said]:
        if not isinstance(node, dict):
            return
        told = node.get("data_description")
        for key, value in (
            (node.get("data") or {}).items() if isinstance(told, dict) and isinstance(node.get("data"), dict) else ()
        ):
            if isinstance(value, str) and isinstance(told.get(key), str):
                yield _referred(value), told[key]
        if isinstance(node.get("name"), str) and isinstance(node.get("description"), str):
            yield _referred(node["name"]), node["description"]
        for child in node.values():
            yield from walk(child)

    try:
        yield from walk(json.loads(text))
    except ValueError:
        return


def wiki(name: str, text: str) -> Iterator[Said]:
    """Messages of MediaWiki (en.json) that are paired by their keys, and its tooltips with the texts of their links."""
    try:
        table = {key: value for key, value in json.loads(text).items() if isinstance(value, str)}
    except ValueError:
        return
    yield from keyed(table)
    for key, told in table.items():
        if found := re.match(r"tooltip-(?:(?:pt|ca|n|t|p)-)?(.+)", key):
            for shown in (found[1], f"vector-view-{found[1]}", f"{found[1]}button"):
                if shown in table:
                    yield table[shown], re.sub(r"\s*\[.*", "", told)
    for key, told in table.items():
        if (
            key.startswith(("prefs-help-", "prefs-"))
            and (shown := table.get(key.replace("prefs-help-", "prefs-")))
            and shown != told
        ):
            yield shown, told


def converters(name: str, text: str) -> Iterator[Said]:
    """Properties of devices of Zigbee: ``.withLabel("Power-on behaviour").withDescription("…")``."""
    string = r"[\"'`]((?:[^\"'`\\\n]|\\.)*)[\"'`]"
    chain = re.compile(rf"\.withLabel\(\s*{string}\s*\)(?:\s*\.\w+\([^()]*\))*?\s*\.withDescription\(\s*{string}")
    other = re.compile(rf"\.withDescription\(\s*{string}\s*\)(?:\s*\.\w+\([^()]*\))*?\s*\.withLabel\(\s*{string}")
    yield from ((m[1], m[2]) for m in chain.finditer(text))
    yield from ((m[2], m[1]) for m in other.finditer(text))


def catalogue(name: str, text: str) -> Iterator[Said]:
    """Translatable texts of Plone (.pot): a label's default and that of the help of the same name."""
    table = {
        m[2]: re.sub(r"\"\s*\n#?\.?\s*\"", "", m[1])
        for m in re.finditer(r"#\. Default: \"(.*)\"\n(?:#.*\n)*msgid \"(.*)\"", text)
    }
    table = {key: value.replace('\\"', '"') for key, value in table.items()}
    for key, told in table.items():
        for prefix in ("help_", "description_", "desc_", "text_"):
            if key.startswith(prefix):
                stem = key.removeprefix(prefix)
                for shown in (f"label_{stem}", f"title_{stem}", f"heading_{stem}", stem):
                    if shown in table:
                        yield table[shown], told
    yield from keyed(table)
