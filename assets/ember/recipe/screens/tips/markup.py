"""Labels with their tooltips in interface files, settings' schemas and entries of menus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from .code import Said, in_words

_TIPS = ("tooltip-text", "tooltip-markup", "toolTip", "whatsThis", "statusTip", "subtitle")


def _root(text: str) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(re.sub(r"<\?xml[^>]*\?>|<!DOCTYPE[^\[>]*(\[[^\]]*\])?>", "", text).strip())
    except ElementTree.ParseError:
        return None


def _properties(node: ElementTree.Element) -> dict[str, str]:
    said: dict[str, str] = {}
    for prop in node.findall("property"):
        value = prop.findtext("string") or prop.findtext("cstring") or prop.text or ""
        said[prop.attrib.get("name", "").replace("_", "-")] = value.strip()
    for inner in node.findall("./child/object[@class='AtkObject']/property") + node.findall("./accessibility/property"):
        if inner.attrib.get("name", "").endswith("description"):  # LibreOffice's extended tips
            said["description"] = (inner.text or "").strip()
    return said


def widgets(name: str, text: str) -> Iterator[Said]:
    """Widgets of a Qt Designer or GtkBuilder file: those with a text of their own or with a label beside them."""
    if (root := _root(text)) is None:
        return
    beside: dict[str, str] = {}
    every = [
        (node, _properties(node)) for node in root.iter() if node.tag in ("widget", "action", "object", "addaction")
    ]
    for _, said in every:
        if partner := said.get("mnemonic-widget") or said.get("buddy"):
            beside[partner] = said.get("label") or said.get("text") or ""
    for node, said in every:
        own = said.get("text") or said.get("label") or said.get("title") or said.get("iconText")
        shown = own or beside.get(node.attrib.get("id") or node.attrib.get("name", ""), "")
        for tip in ("description", *_TIPS):
            if shown and said.get(tip):
                yield shown, said[tip]


def schema(file: str, text: str) -> Iterator[Said]:
    """Settings of GSettings' schemas, KDE's configuration files and darktable's."""
    if (root := _root(text)) is None:
        return
    for key in root.iter():
        said = {child.tag.rsplit("}", 1)[-1]: re.sub(r"\s+", " ", "".join(child.itertext())).strip() for child in key}
        if "summary" in said and "description" in said:
            yield said["summary"], said["description"]
        if "shortdescription" in said and "longdescription" in said:
            yield said["shortdescription"], said["longdescription"]
        if key.tag.endswith("entry") and "label" in said:
            for told in ("whatsthis", "tooltip"):
                if told in said:
                    yield said["label"], said[told]
            name = key.attrib.get("name") or key.attrib.get("key", "")
            if re.search(r"[a-z][A-Z]", name) and not re.search(r"[a-z]{14}", name):
                yield in_words(name), said["label"]


def described(name: str, text: str) -> Iterator[Said]:
    """Names with descriptions in any XML: effects of kdenlive, extensions of Inkscape."""
    if (root := _root(text)) is None:
        return
    for node in root.iter():
        tag = node.tag.rsplit("}", 1)[-1]
        if tag == "effect":
            yield node.findtext("name") or "", node.findtext("description") or ""
        if tag == "parameter":
            yield node.findtext("name") or "", node.findtext("comment") or ""
        shown = node.attrib.get("gui-text") or node.attrib.get("_gui-text")
        if told := node.attrib.get("gui-description") or node.attrib.get("_gui-description"):
            yield shown or "", told
        if tag == "param" and not shown and node.text and (told := node.attrib.get("appearance-description")):
            yield node.text, told
        menu = node.attrib.get("menu-tip") or next(
            (child.text for child in node if child.tag.rsplit("}", 1)[-1] == "menu-tip"), None
        )
        if tag == "effect" and menu:
            yield "".join(root.findtext("{*}name") or ""), menu


def entries(name: str, text: str) -> Iterator[Said]:
    """Entries of menus, plugins and pages of settings (.desktop, .service and their like)."""
    for group in re.split(r"^\[", text, flags=re.MULTILINE):
        said = dict(re.findall(r"^_?(Name|GenericName|Comment)\s*=\s*(.+)$", group, re.MULTILINE))
        for told in ("Comment", "GenericName"):
            if "Name" in said and told in said:
                yield said["Name"], said[told]


def blueprint(name: str, text: str) -> Iterator[Said]:
    """Widgets of a Blueprint file."""
    marked = r"(?:C_\(\s*\"[^\"]*\"\s*,\s*|_\(\s*)[\"']((?:[^\"'\\\n]|\\.)*)[\"']\s*\)"
    for block in re.findall(r"\{([^{}]*)\}", text):
        said = dict(re.findall(rf"(label|title|tooltip-text|subtitle)\s*:\s*{marked}", block))
        for tip in ("tooltip-text", "subtitle"):
            if tip in said and (shown := said.get("label") or said.get("title")):
                yield shown, said[tip]


def _walk(node: object) -> Iterator[dict[str, object]]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _walk(child)


def records(name: str, text: str) -> Iterator[Said]:
    """Objects of JSON with a label or name and a description or tooltip: plugins of KDE, settings' schemas, Cura's
    settings."""
    try:
        tree = json.loads(text)
    except ValueError:
        return
    for node in _walk(tree):
        for key, value in node.items():
            shown = in_words(key.rsplit(".", 1)[-1])
            if (
                isinstance(value, dict)
                and isinstance(value.get("description"), str)
                and "type" in value
                and "label" not in value
            ):
                yield str(value.get("title") or shown), str(value["description"])
        shown = next(
            (node[k] for k in ("label", "Name", "title", "name", "short_description") if isinstance(node.get(k), str)),
            None,
        )
        told = next(
            (node[k] for k in ("description", "Description", "tooltip", "Comment") if isinstance(node.get(k), str)),
            None,
        )
        if isinstance(shown, str) and isinstance(told, str):
            yield shown, told
        if (
            isinstance(node.get("description"), str) and isinstance(node.get("tooltip"), str) and shown is None
        ):  # Cinnamon
            yield str(node["description"]), str(node["tooltip"])
