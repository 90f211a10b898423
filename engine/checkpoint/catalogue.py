"""Which models there are: the bundled Ember, folders in the models directory, and any folder by its path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.json_file import read_json

BUNDLED = Path(__file__).resolve().parents[2] / "assets" / "ember"
MODELS_VARIABLE = "IGNIS_MODELS"


@dataclass(frozen=True)
class KnownModel:
    """``id`` is the name on the API and the command line, ``name`` what people read."""

    id: str
    name: str
    path: Path
    bundled: bool = False


def bundled_model() -> KnownModel:
    """Ember, which ships with the program."""
    return _known(BUNDLED, bundled=True)


def models_directories() -> list[Path]:
    """Where models are looked for: the folders of ``IGNIS_MODELS`` (as in PATH), then the user's data folder."""
    given = [Path(part).expanduser() for part in os.environ.get(MODELS_VARIABLE, "").split(os.pathsep) if part]
    return [*given, user_data_path("ignis", appauthor=False) / "models"]


def list_models() -> list[KnownModel]:
    """Ember first, then every folder with a config.json in the models directories; the first of equal ids counts."""
    found = {model.id: model for model in reversed([bundled_model(), *_installed()])}
    return sorted(found.values(), key=lambda model: (not model.bundled, model.id))


def resolve_model(wanted: Path | str | None) -> KnownModel:
    """The model meant by a path, by an id from :func:`list_models`, or by None (Ember).

    Raises ``CheckpointError`` naming the models there are when nothing fits.
    """
    if wanted is None:
        return bundled_model()
    path = Path(wanted).expanduser()
    if path.exists():
        return _known(path.resolve())
    models = list_models()
    for model in models:
        if model.id == str(wanted).lower():
            return model
    known = ", ".join(model.id for model in models)
    raise CheckpointError(f"There is no model {str(wanted)!r}: give the folder of a checkpoint or one of {known}.")


def _installed() -> Iterator[KnownModel]:
    for directory in models_directories():
        if directory.is_dir():
            for folder in sorted(directory.iterdir()):
                if (folder / "config.json").is_file():
                    yield _known(folder)


def _known(path: Path, *, bundled: bool = False) -> KnownModel:
    """Names a checkpoint folder: config.json's ``ignis_name`` where it has one, else the folder's own name."""
    name = path.name
    if (path / "config.json").is_file():
        try:
            given = read_json(path / "config.json").get("ignis_name")
        except CheckpointError:
            given = None  # a listing shows a broken folder too; opening it says what is wrong
        name = given if isinstance(given, str) and given else name
    return KnownModel(path.name.lower(), name, path, bundled or path == BUNDLED)
