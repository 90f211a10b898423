from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from engine.checkpoint import CheckpointError
from engine.checkpoint.catalogue import bundled_model, list_models, models_directories, resolve_model


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty models directory, the only one besides the user's own, which is empty too."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("IGNIS_MODELS", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def add(directory: Path, name: str, **config: object) -> Path:
    folder = directory / name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3_5", **config}))
    return folder


def test_ember_is_the_default(models: Path) -> None:
    ember = resolve_model(None)
    assert (ember.id, ember.name, ember.bundled) == ("ember", "Ember", True)
    assert (ember.path / "config.json").is_file()
    assert list_models() == [ember] == [bundled_model()]
    assert resolve_model("ember") == resolve_model(ember.path) == ember


def test_folders_of_the_models_directories_are_listed(models: Path, tmp_path: Path) -> None:
    first = add(models, "Qwen3.8-27B-NVFP4", ignis_name="Qwen3.8 27B")
    add(models, "broken").joinpath("config.json").write_text("{")
    (models / "no model").mkdir()
    second = add(tmp_path / "data" / "ignis" / "models", "mine")
    assert [model.id for model in list_models()] == ["ember", "broken", "mine", "qwen3.8-27b-nvfp4"]
    assert resolve_model("Qwen3.8-27B-NVFP4").path == first
    assert resolve_model("qwen3.8-27b-nvfp4").name == "Qwen3.8 27B"
    assert resolve_model("mine").path == second


def test_the_first_directory_counts(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNIS_MODELS", os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")]))
    assert models_directories()[:2] == [tmp_path / "a", tmp_path / "b"]
    add(tmp_path / "a", "same", ignis_name="A")
    add(tmp_path / "b", "same", ignis_name="B")
    assert resolve_model("same").name == "A"
    assert len(list_models()) == 2


def test_a_path_is_taken_as_it_is(models: Path, tmp_path: Path) -> None:
    folder = add(tmp_path / "elsewhere", "model")
    assert resolve_model(folder).path == folder.resolve()
    assert resolve_model(str(folder)).id == "model"


def test_an_unknown_model_names_those_there_are(models: Path) -> None:
    add(models, "mine")
    with pytest.raises(CheckpointError) as caught:
        resolve_model("qwen")
    assert caught.value.message == "There is no model 'qwen': give the folder of a checkpoint or one of ember, mine."
