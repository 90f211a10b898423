"""Pointing: a screenshot is encoded once, each question reads on from it."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest
from PIL import Image

from engine import Engine
from engine.answers.asking import CancelledError, head_span
from engine.answers.point import Screen
from engine.messages import Prompt, RequestError
from tests.conftest import LoadTiny
from tests.engine.requests import Passes, read, retain, settled, text_ids, wait_until


def screenshot(seed: int = 0, size: tuple[int, int] = (150, 100)) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(noise)


def open_screen(engine: Engine, seed: int = 0, **options) -> Screen:
    return Screen.open(engine, engine.prepare_image(screenshot(seed)), **options)


def test_an_answer_is_the_peak_of_the_heat(tiny: Engine) -> None:
    screen = open_screen(tiny)
    answer = screen.point("the save button")
    assert (screen.width, screen.height) == (150, 100)
    assert answer.heat.dtype == np.float32
    assert answer.heat.sum() == pytest.approx(1, abs=1e-5)
    rows, columns = answer.heat.shape
    row, column = divmod(int(answer.heat.argmax()), columns)
    assert abs(answer.normalized[0] * columns - (column + 0.5)) <= 1
    assert abs(answer.normalized[1] * rows - (row + 0.5)) <= 1
    assert answer.pixels == pytest.approx((answer.normalized[0] * 150, answer.normalized[1] * 100))
    assert 0 < answer.confidence <= 1
    assert 0 < answer.uncertainty < 150
    assert answer.cached_tokens > rows * columns
    assert answer.input_tokens > answer.cached_tokens


def test_the_heat_is_that_of_the_whole_prompt(tiny: Engine) -> None:
    """As if picture and question had been read at once."""
    image = tiny.prepare_image(screenshot(3))
    screen = Screen.open(tiny, image)
    answer = screen.point("here")
    readout = tiny.loaded.heads.readouts["point"]
    prompt = Prompt((*screen._framed.prefix.ids, *screen._framed.question("here")), (image,))
    scores = read(tiny, prompt, heads=head_span(readout, screen._framed.start, screen._framed.end)).scores
    combined = scores.heads.astype(np.float64).sum(0) * readout.scale
    weights = np.exp(combined - combined.max())
    assert answer.heat.flatten() == pytest.approx(weights / weights.sum(), abs=1e-5)


def test_questions_differ_and_repeat(tiny: Engine, passes: Passes) -> None:
    screen = open_screen(tiny)
    encoded = len(passes.runs)
    one, two, again = (screen.point(q) for q in ["the save button", "somewhere else entirely", "the save button"])
    assert len(passes.runs) == encoded + 3
    np.testing.assert_array_equal(one.heat, again.heat)
    assert not np.array_equal(one.heat, two.heat)
    assert open_screen(tiny, 1).point("the save button").pixels != one.pixels


def test_a_dropped_screen_is_encoded_again(load_tiny: LoadTiny) -> None:
    engine = load_tiny(retained_limit=1)
    screen = open_screen(engine)
    before = screen.point("the save button")
    retain(engine, "another", text_ids(engine, 10))
    after = screen.point("the save button")
    np.testing.assert_allclose(after.heat, before.heat, atol=1e-6)
    assert settled(engine).retained == 1


def test_many_threads_on_a_dropped_screen(load_tiny: LoadTiny) -> None:
    """One of them encodes it; none sees an error."""
    engine = load_tiny(retained_limit=1)
    screen = open_screen(engine)
    expected = screen.point("ok").pixels
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(screen.point("ok").pixels)
        except Exception as error:
            answers.append(error)

    for round_number in range(3):
        retain(engine, f"another {round_number}", text_ids(engine, 10))
        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert answers == [pytest.approx(expected, abs=1e-3)] * 18


def test_closing_frees_and_is_final(tiny: Engine) -> None:
    screen = open_screen(tiny)
    assert settled(tiny).retained == 1
    screen.close()
    screen.close()
    assert settled(tiny).retained == 0
    with pytest.raises(RequestError, match="closed") as caught:
        screen.point("anything")
    assert caught.value.code == "screen_closed"
    assert settled(tiny).retained == 0


def test_giving_up_while_encoding(tiny: Engine) -> None:
    with pytest.raises(CancelledError):
        open_screen(tiny, cancelled=lambda: True)
    assert settled(tiny).retained == 0


def test_giving_up_as_the_encoding_ends(tiny: Engine) -> None:
    """The prefix that nobody will ask for is dropped."""

    def at_the_end(done: int, total: int) -> None:
        if done == total:
            wait_until(lambda: settled(tiny).retained == 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_screen(tiny, on_progress=at_the_end)
    assert settled(tiny).retained == 0


def test_encoding_reports_its_progress(load_tiny: LoadTiny) -> None:
    engine = load_tiny(prefill_chunk=128)
    seen: list[tuple[int, int]] = []
    screen = open_screen(engine, on_progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (screen.input_tokens, screen.input_tokens)
    assert screen.encode_ms > 0


def test_what_cannot_be_pointed_at(tiny: Engine, load_tiny: LoadTiny, tiny_folder, tmp_path) -> None:
    screen = open_screen(tiny)
    with pytest.raises(RequestError, match="question is empty"):
        screen.point("  ")
    with pytest.raises(RequestError, match="Shorten"):
        screen.point("word " * 600)
    folder = shutil.copytree(tiny_folder, tmp_path / "headless")
    (folder / "heads.json").unlink()
    with pytest.raises(RequestError, match="no head list for points"):
        open_screen(load_tiny(folder))
