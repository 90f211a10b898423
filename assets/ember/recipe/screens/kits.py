"""CSS kits from npm (`kits.toml`) and the class names by which each spells the same parts of a page."""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

_TABLE = Path(__file__).with_name("kits.toml")


@dataclass(frozen=True)
class Kit:
    """Style sheets (below node_modules) and classes by part; parts a kit does not style fall back to plain HTML."""

    family: str
    name: str
    sheets: tuple[str, ...]
    parts: dict[str, str] = field(default_factory=dict)
    body: str = ""
    dark: str = ""


def every_kit(modules: Path) -> list[Kit]:
    """The kits whose style sheets are installed below `modules`."""
    table = tomllib.loads(_TABLE.read_text())
    kits = []
    for family, entry in table.items():
        parts = table[entry["like"]]["parts"] if "like" in entry else entry.get("parts", {})
        for name in entry.get("names", "").split() or [""]:
            sheets = tuple(sheet.replace("{}", name) for sheet in entry["sheets"])
            title = f"{family}-{name}" if name else family
            kits.append(Kit(family, title, sheets, parts, entry.get("body", ""), entry.get("dark", "")))
    return [kit for kit in kits if all((modules / sheet).exists() for sheet in kit.sheets)]


def choose(kits: list[Kit], rng: random.Random) -> Kit:
    """A kit at random; a family of many (bootswatch) counts as five at most."""
    size = {kit.family: sum(other.family == kit.family for other in kits) for kit in kits}
    return rng.choices(kits, [min(1.0, 5 / size[kit.family]) for kit in kits])[0]
