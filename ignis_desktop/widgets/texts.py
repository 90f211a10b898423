"""Every text a person sees in the window, in English and Korean (assets/translations)."""

from __future__ import annotations

import json
import locale
from typing import Literal

from ignis_desktop.store.paths import assets_dir

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = ("en", "ko")

_texts: dict[str, str] = {}


def load(language: Language) -> dict[str, str]:
    """The catalogue of one language."""
    path = assets_dir() / "translations" / f"{language}.json"
    catalogue: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return catalogue


def use_language(choice: str = "system") -> Language:
    """Selects the texts from now on: "en", "ko", or "system" for what the system's locale says."""
    language: Language = "ko" if choice == "ko" or (choice == "system" and _system_is_korean()) else "en"
    _texts.clear()
    _texts.update(load(language))
    return language


def _system_is_korean() -> bool:
    name = locale.getlocale()[0] or ""
    return name.lower().startswith(("ko", "korean"))


def tr(key: str, **values: object) -> str:
    """The text ``key`` in the language in use with ``{names}`` filled in; raises ``KeyError`` for an unknown key."""
    if not _texts:
        use_language("en")
    text = _texts[key]
    return text.format(**values) if values else text
