"""Ember's screens: drawing is repeatable and well-formed, packs and shards give back what was put in."""

from __future__ import annotations

import random
import re
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from assets.ember.recipe.screens.canvas import Canvas, Kit
from assets.ember.recipe.screens.draw import draw, kit
from assets.ember.recipe.screens.framing import asked, is_order, spoken
from assets.ember.recipe.screens.labels import Subjects, stock
from assets.ember.recipe.screens.meanings import reword
from assets.ember.recipe.screens.pack import Pack, Shard, check_screen, encode_picture, write_pack, write_shard
from assets.ember.recipe.screens.words import Words, load_labels
from tests.recipe.mini_pack import make_pack


@pytest.fixture(scope="module")
def pack_file(tmp_path_factory):
    return make_pack(tmp_path_factory.mktemp("screens") / "mini.pack")


@pytest.fixture(scope="module", autouse=True)
def opened(pack_file):
    return kit(pack_file)


@pytest.mark.parametrize("size", [(640, 480), (1024, 768), (1920, 1080)])
def test_drawing_is_repeatable_and_boxes_lie_inside(size):
    drawn = 0
    for seed in range(6):
        image, items = draw(seed, *size)
        again, same = draw(seed, *size)
        assert image.shape == (size[1], size[0], 3)
        assert image.dtype == np.uint8
        assert np.array_equal(image, again)
        assert items == same
        shown = [item for item in items if item["box"] is not None]
        check_screen({"w": size[0], "h": size[1], "source": f"seed {seed}", "split": "train", "items": shown})
        drawn += len(shown)
    assert drawn > 60


def test_an_element_shows_something():
    """What a box is asked for is really there: an icon's box is not one flat colour."""
    seen = 0
    for seed in range(8):
        image, items = draw(seed, 1024, 768)
        for item in items:
            if item["kind"] in ("icon", "window-control", "button"):
                x0, y0, x1, y1 = map(int, item["box"])
                assert np.ptp(image[y0 : y1 + 1, x0 : x1 + 1].reshape(-1, 3), axis=0).max() > 8, (seed, item)
                seen += 1
    assert seen > 30


def test_questions_have_one_answer():
    for seed in range(12):
        _, items = draw(seed, 1024, 768)
        bare = [
            query["q"].lower()
            for item in items
            for query in item["queries"][:1]
            if query["by"] == "text" and item["kind"] == "button"
        ]
        assert len(bare) == len(set(bare))


def test_held_out_screens_use_none_of_the_training_material():
    for held, ours, theirs in ((False, "alpha", "omega"), (True, "omega", "alpha")):
        said = [
            query["q"].lower()
            for seed in range(6)
            for item in draw(seed, 1024, 768, held)[1]
            for query in item["queries"]
        ]
        assert any(ours in question for question in said)
        assert not any(theirs in question for question in said)


def test_held_out_phrases_are_kept_apart(opened):
    train, held, unseen = Words(opened, random.Random(0), False), Words(opened, random.Random(0), True), 0
    for i, (spellings, _, functions) in enumerate(load_labels()):
        if len(functions) > 1:
            first, second = train._row(i, 99), held._row(i, 99)
            assert first is None or second is None or not set(first.functions) & set(second.functions), spellings
            assert second is None or functions[-1] in second.functions, spellings
            unseen += first is not None and not first.functions
    assert unseen > 10


def test_a_screen_is_about_one_or_two_subjects(opened):
    """Near misses stand together, what is said to be missing is of the same subjects, and every row has its turn."""
    subject = {i: k for k, (first, end) in enumerate(stock().subjects) for i in range(first, end)}
    reached, near, apart, absent, own, aimless = Counter(), 0, 0, 0, 0, 0
    for seed in range(3000):
        words = Words(opened, random.Random(seed), False)
        for kind in "nmmmbbbllllllllllltttccff":
            words.label(kind, 40)
        rows = words.subjects.used
        about = {first for first, _, _ in words.subjects.runs}
        assert len(about) <= 3
        aimless += not about
        placed = [i for i in rows if i in subject]
        assert {stock().subjects[subject[i]][0] for i in placed} <= about
        reached.update(rows)
        near += sum(bool({i - 2, i - 1, i + 1, i + 2} & rows) for i in placed)
        apart += len(placed)
        texts = {s for first, end, _ in words.subjects.runs for row in stock().rows[first:end] for s in row.spellings}
        shown = {s for i in rows for s in stock().rows[i].spellings}
        for item in words.absent:
            text = item["queries"][0]["q"]
            assert text not in shown
            absent, own = absent + 1, own + any(text == s.rstrip(".") for s in texts)
        assert words.absent is words.absent
    assert aimless < 30
    assert near > 0.7 * apart
    assert own > 0.6 * absent > 0
    counts = sorted(reached[i] for i in range(len(stock().rows)) if stock().rows[i].kinds - {"h"})
    assert counts[len(counts) // 20] > 0
    assert counts[-len(counts) // 20] < 4 * counts[len(counts) // 2]


def test_subjects_go_on_from_where_they_were():
    subjects = Subjects(random.Random(3))
    taken = []
    for _ in range(6):
        taken.append(next(subjects.candidates("l")))
        subjects.take(taken[-1])
    assert len(set(taken)) == 6
    assert not set(taken) & set(subjects.missing())


@pytest.mark.parametrize(
    ("phrase", "order"),
    [
        ("find the latest files", True),
        ("have the chapter list made for me", True),
        ("order by progress", True),
        ("not let others see me", True),
        ("not all or nothing", False),
        ("number my illustrations", True),
        ("number of my door", False),
        ("approve of this", True),
        ("time between two checks", False),
        ("place on the disk", False),
        ("free roads", False),
        ("red lines below mistakes", False),
        ("whether things are hidden", False),
        ("beautify", False),
    ],
)
def test_orders_are_told_from_things(phrase, order):
    assert is_order(phrase) is order


@pytest.mark.parametrize(
    ("phrase", "never"),
    [
        ("be told about news", "please|command to|button to|used to"),
        ("not let others see me", "want|how do|button to"),
        ("keep my work", "people who"),
        ("how do I adapt it", "the one for this|, please|want:"),
        ("quieter, please", "please, please"),
        ("I speak the language of Shakespeare", "\\bi speak"),
        ("red lines below mistakes", "to red"),
    ],
)
def test_frames_suit_their_phrases(phrase, never):
    said = {asked(spoken(phrase), random.Random(seed)) for seed in range(300)}
    assert not [question for question in said if re.search(never, question)]
    assert said


def test_tooltips_are_spoken_as_orders():
    assert spoken("Whether to show line numbers beside the text.") == "show line numbers beside the text"
    assert spoken("If enabled, keep the window on top") == "keep the window on top"
    assert spoken("PDF or image") == "PDF or image"


def test_covered_elements_are_forgotten(opened):
    canvas = Canvas(opened, random.Random(0), 200, 100, (0, 0, 0))
    canvas.add((10, 10, 50, 30), "button", [{"q": "left", "by": "text"}])
    canvas.add((150, 10, 190, 30), "button", [{"q": "right", "by": "text"}])
    canvas.cover((40, 0, 120, 100))
    assert [item["queries"][0]["q"] for item in canvas.items] == ["right"]


def test_rewording_changes_words_not_the_rest():
    said = {reword("remove the selected item", random.Random(seed)) for seed in range(40)}
    assert len(said) > 3
    assert all("the selected" in phrase for phrase in said)


def test_a_pack_gives_back_its_blobs(tmp_path):
    blobs = [b"one", b"", b"three" * 1000]
    write_pack(tmp_path / "p", {"name": "ü"}, blobs)
    pack = Pack(tmp_path / "p")
    assert pack.index == {"name": "ü"}
    assert [pack.blob(i) for i in range(len(pack))] == blobs
    (tmp_path / "q").write_bytes(b"something else entirely")
    with pytest.raises(ValueError, match="not a screens pack"):
        Pack(tmp_path / "q")


def test_a_shard_gives_back_its_screens(tmp_path):
    image, items = draw(3, 640, 480)
    flat = Image.new("RGB", (64, 48), (10, 20, 30))
    items = [item for item in items if item["box"] is not None]
    record = {"w": 640, "h": 480, "source": "drawn", "theme": "light", "split": "train", "items": items}
    small = {
        "w": 64,
        "h": 48,
        "source": "flat",
        "theme": "dark",
        "split": "heldout",
        "items": [],
        "absent": [{"q": "quit", "by": "text"}],
    }
    assert (
        write_shard(
            tmp_path / "s.tar", [(encode_picture(Image.fromarray(image)), record), (encode_picture(flat), small)]
        )
        == 2
    )
    shard = Shard(tmp_path / "s.tar")
    assert [r["source"] for r in shard.records] == ["drawn", "flat"]
    assert shard.records[0]["items"] == items
    assert np.array_equal(shard.picture(1), np.asarray(flat))
    assert np.abs(shard.picture(0).astype(int) - image).mean() < 6


def test_a_bad_screen_is_refused():
    good = {
        "w": 10,
        "h": 10,
        "source": "s",
        "theme": "light",
        "split": "train",
        "items": [{"box": [1, 1, 5, 5], "kind": "icon", "queries": [{"q": "a", "by": "name"}]}],
    }
    check_screen(good)
    for change, message in (
        ({"box": [1, 1, 50, 5]}, "leaves the 10x10 screen"),
        ({"queries": []}, "empty question"),
        ({"queries": [{"q": "a", "by": "colour"}]}, "unknown way of asking"),
    ):
        with pytest.raises(ValueError, match=message):
            check_screen({**good, "items": [{**good["items"][0], **change}]})


def test_a_missing_pack_says_what_to_do(monkeypatch):
    monkeypatch.delenv("EMBER_SCREENS_PACK", raising=False)
    monkeypatch.setattr("assets.ember.recipe.screens.draw._opened", {})
    with pytest.raises(RuntimeError, match="EMBER_SCREENS_PACK"):
        kit()


def test_icons_are_resized_and_recoloured(opened):
    mono = next(i for i, icon in enumerate(opened.icons) if icon["mono"])
    assert opened.bitmap(mono, 16).shape == (16, 16)
    canvas = Canvas(opened, random.Random(0), 40, 40, (0, 0, 0))
    canvas.icon(4, 4, 32, mono, (255, 0, 0))
    middle = np.asarray(canvas.image)[20, 20]
    assert middle[0] > 240
    assert middle[1] == 0
    assert isinstance(opened, Kit)
