"""Calibration through the engine: random weights know nothing, and what is chosen is read again as it was judged."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from engine import Engine
from engine.answers.asking import CancelledError, Terms
from engine.answers.calibrate import calibrate, write_heads
from engine.answers.calibrate.forms import line_forms, point_forms
from engine.answers.calibrate.samples import all_heads, read_document, read_scene
from engine.answers.calibrate.scenes import make_scenes
from engine.answers.calibrate.texts import make_documents
from engine.answers.heads import HeadsError, read_heads
from engine.answers.looks import Framed
from engine.messages import HeadSpan, RequestError
from tests.conftest import LoadTiny
from tests.engine.requests import read, settled
from tests.tiny import write_tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with room for whole texts."""
    return write_tiny(tmp_path_factory.mktemp("calibrate") / "random", context=4096)


@pytest.fixture
def random_model(load_tiny: LoadTiny, folder: Path) -> Engine:
    return load_tiny(folder)


def test_random_weights_are_no_better_than_chance(random_model: Engine, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    found = calibrate(random_model, scenes=6, texts=6, on_step=lambda *step: seen.append(step))
    assert len(found.readouts) == 2
    assert set(found.worthless) == set(found.readouts) < {"point", "line", "vote"}
    for what in ("screens", "texts"):
        steps = [(done, total) for name, done, total in seen if name == what]
        assert steps == [(number, 12) for number in range(1, 13)]
    assert settled(random_model).retained == 0
    again = calibrate(random_model, scenes=6, texts=6)
    assert again == found
    write_heads(found, random_model, tmp_path / "heads.json")
    lists = read_heads(tmp_path / "heads.json")
    lists.check(random_model.loaded.config)
    assert lists.weights == random_model.info.content_hash
    for name, readout in found.readouts.items():
        assert lists.readouts[name].heads == readout.heads
        assert lists.readouts[name].prompt == readout.prompt
        assert lists.readouts[name].scale == readout.scale


def test_what_stood_there_for_the_same_weights_stays(random_model: Engine, tmp_path: Path) -> None:
    target = tmp_path / "heads.json"
    found = calibrate(random_model, subjects=("point",), scenes=5)
    write_heads(found, random_model, target)
    raw = json.loads(target.read_text())
    raw["readouts"]["point"]["zoom"] = {"factor": 2.0}
    raw["readouts"]["other"] = raw["readouts"]["point"]
    target.write_text(json.dumps(raw))
    write_heads(found, random_model, target)
    lists = read_heads(target)
    assert lists.readouts["point"].zoom is not None
    assert "other" in lists.readouts
    target.write_text(json.dumps({**raw, "weights": "00" * 32}))
    write_heads(found, random_model, target)
    assert set(read_heads(target).readouts) == {"point"}
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(HeadsError, match="cannot be written"):
        write_heads(found, random_model, tmp_path / "missing" / "heads.json")


def test_a_scenes_samples_are_what_the_heads_score(random_model: Engine) -> None:
    """One question of a scene and one of a text, read again in one prompt each."""
    heads, terms = all_heads(random_model), Terms()
    assert len(heads) == 8
    scene, document = make_scenes(1, 0)[0], make_documents(1, 0)[0]
    form = point_forms(random_model.tokenizer)[0]
    sample = read_scene(random_model, form, scene, 0, random.Random(1), terms)[3]
    item = random.Random(1).sample(scene.items, 8)[3]
    framed = Framed(random_model, form.every_head(heads), random_model.prepare_image(scene.picture))
    span = HeadSpan(heads, framed.start, framed.end, (framed.start - 1, framed.end))
    whole = read(random_model, framed.whole(item.question), heads=span).scores
    assert whole is not None
    np.testing.assert_allclose(sample.scores, whole.heads[:, :-2], atol=1e-4)
    np.testing.assert_allclose(sample.before, whole.heads[:, -2], atol=1e-4)
    rows, columns = framed.grid
    x, y = (item.box[0] + item.box[2]) / 2, (item.box[1] + item.box[3]) / 2
    middle = int(y * rows / scene.picture.height) * columns + int(x * columns / scene.picture.width)
    assert middle in sample.gold
    for form in line_forms(random_model.tokenizer):
        samples = read_document(random_model, form, document, 0, terms)
        assert len(samples) == 8
        assert all(sum(one.lengths) == one.scores.shape[1] for one in samples)
        gold = [random_model.tokenizer.encode(document.lines[line] + "\n") for _, line in document.questions]
        assert [len(one.gold) for one in samples] == [*map(len, gold), 0, 0]
        assert (samples[0].baseline is None) == (form.baseline is None)


def test_giving_up_leaves_nothing_behind(random_model: Engine) -> None:
    steps: list[int] = []
    with pytest.raises(CancelledError):
        calibrate(random_model, scenes=6, on_step=lambda *step: steps.append(step[1]), cancelled=lambda: len(steps) > 2)
    assert settled(random_model).retained == 0


def test_a_model_without_eyes_is_calibrated_for_lines(load_tiny: LoadTiny, tmp_path: Path) -> None:
    engine = load_tiny(write_tiny(tmp_path / "blind", context=4096, vision=False))
    with pytest.raises(RequestError, match="takes no pictures"):
        calibrate(engine, subjects=("point",))
    assert set(calibrate(engine, texts=5).readouts) <= {"line", "vote"}


def test_embers_trained_layer_is_found(ember: Engine) -> None:
    found = calibrate(ember, subjects=("point",), scenes=5)
    readout, figures = found.readouts["point"], found.figures["point"]
    assert 11 in readout.layers
    assert readout.prompt[-1] == "<|point|>"
    assert figures.better_than_chance
    assert figures.right > 0.5
