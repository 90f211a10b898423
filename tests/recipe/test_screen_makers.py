"""The makers of Ember's screens: what icons mean, strings from sources, pages of CSS kits, accessibility records."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from assets.ember.recipe.screens import files, kits, programs, strings
from assets.ember.recipe.screens.actions import fitting, rows
from assets.ember.recipe.screens.canvas import Kit as Assets
from assets.ember.recipe.screens.icon_sets import theme_icons
from assets.ember.recipe.screens.iconify import iconify_icons
from assets.ember.recipe.screens.icons import HELD_OUT, Concepts, spoken
from assets.ember.recipe.screens.labels import stock
from assets.ember.recipe.screens.pages import Page
from assets.ember.recipe.screens.web import _queries
from assets.ember.recipe.screens.words import load_labels
from tests.recipe.mini_pack import make_pack


@pytest.fixture(scope="module")
def pack_file(tmp_path_factory):
    return make_pack(tmp_path_factory.mktemp("screens") / "mini.pack")


@pytest.mark.parametrize(
    ("spellings", "meaning"),
    [
        (["document-save"], "document-save"),
        (["document-save-symbolic"], "document-save"),
        (["content-save"], "document-save"),
        (["trash_can_outline"], "edit-delete"),
        (["settings-fill"], "preferences-system"),
        (["something-odd", "gtk-cut"], "edit-cut"),
        (["nothing-known"], None),
    ],
)
def test_icon_names_lead_to_meanings(spellings, meaning):
    found = Concepts().find(spellings)
    assert (found.key if found else None) == meaning


def test_every_concept_and_label_has_names_and_functions():
    for concept in Concepts().by_name.values():
        assert concept.names, concept.key
        assert concept.functions, concept.key
    for spellings, kinds, functions in load_labels():
        assert spellings[0], kinds
        assert set(kinds.split()) <= set("bmctlfnh"), spellings
        assert functions, spellings


def test_no_phrase_of_training_is_a_question_of_the_held_out_screens():
    records = json.loads((Path(__file__).parents[1] / "data/screens/screens.json").read_text())
    queries = [query for record in records for item in record["items"] for query in item["queries"]]
    asked = {query["q"].lower() for query in queries if query["by"] == "function"}
    assert len(asked) > 200
    taught = {phrase.lower() for concept in Concepts().by_name.values() for phrase in concept.functions[:-1]}
    taught |= {phrase.lstrip("=").lower() for *_, functions in load_labels() for phrase in functions[:-1]}
    for head in (head for sort in ("verb", "page", "ask", "column") for head in rows()[sort]):
        for noun in fitting(head):
            names = [(f"the {name}", f"a {name}") for name in (*noun.said(False), noun.words[0].lower())]
            taught |= {way.lstrip("=").format(o=the, a=one).lower() for way in head.said(False) for the, one in names}
    for key in (*files.stems(), *(f".{ending}" for ending in files.extensions())):
        taught |= {said.lower() for meaning in files.meanings(key, False) for said in files.phrases(key, meaning)}
    assert len(taught) > 100_000
    assert not taught & asked, taught & asked


def test_names_are_spoken_without_style_words():
    assert spoken("object-rotate-left-symbolic") == "object rotate left"
    assert spoken("arrow_down_24_filled") == "arrow down"
    assert spoken("outline") == "outline"


def test_a_theme_is_read_with_its_links_as_synonyms(tmp_path):
    folder = tmp_path / "Small" / "24x24" / "actions"
    folder.mkdir(parents=True)
    (tmp_path / "Small" / "index.theme").write_text(
        "[Icon Theme]\nName=Small\nDirectories=24x24/actions\n[24x24/actions]\nSize=24\nContext=Actions\n"
    )
    picture = Image.new("RGBA", (24, 24))
    picture.paste((200, 30, 30, 255), (4, 4, 20, 12))
    picture.paste((30, 30, 200, 255), (4, 12, 20, 20))
    picture.save(folder / "edit-cut.png")
    (folder / "gtk-cut.png").symlink_to("edit-cut.png")
    icons = list(theme_icons(tmp_path, "Small", Concepts(), {}))
    assert len(icons) == 1
    assert icons[0].names[0] == "cut"
    assert icons[0].functions
    assert not icons[0].mono
    assert {24, 48} <= set(icons[0].pictures)


def test_a_set_in_json_is_read_with_aliases_and_without_style_words(tmp_path):
    pytest.importorskip("resvg_py")
    square = '<path d="M2 2h12v12H2z" fill="currentColor"/>'
    table = {
        "width": 16,
        "height": 16,
        "icons": {"trash-can-outline": {"body": square}, "odd-thing": {"body": square}, "void": {"body": "<g/>"}},
        "aliases": {"wastebasket": {"parent": "trash-can-outline"}, "tilted": {"parent": "odd-thing", "rotate": 1}},
    }
    file = tmp_path / "@iconify-json/solar/icons.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(table))
    bin_, odd = iconify_icons(tmp_path, Concepts())  # what shows nothing is left out
    assert (bin_.name, bin_.concept, bin_.set, bin_.mono) == ("trash-can", "edit-delete", "solar", True)
    assert "wastebasket" in bin_.synonyms
    assert (odd.names, odd.synonyms, odd.concept) == (["odd thing"], [], None)
    alpha = np.asarray(Image.open(io.BytesIO(bin_.pictures[48])).convert("L"))
    assert alpha[24, 24] == 255
    assert alpha[0, 0] == 0


def test_held_out_icon_sets_are_named():
    assert {"elementary-xfce", "Numix", "carbon"} <= HELD_OUT


def _archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"program-1.0/{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def test_strings_are_read_from_sources(tmp_path):
    archive = _archive(
        tmp_path / "program.tar.gz",
        {
            "src/window.c": '_("Not found: %s"), _("Quiet mode")',
            "src/main.ui": '<ui><widget><property name="text"><string>&amp;Browse</string></property></widget></ui>',
        },
    )
    assert strings.shown(archive) == {"Quiet mode", "Browse"}


def test_strings_of_held_out_programs_are_not_read(tmp_path):
    source = {"a.c": '{ "O", NULL, N_("_Open"), NULL, N_("Open a very particular file") }'}
    words = tmp_path / "words"
    words.write_text("apple\nbanana\ncherry\n")
    known, held = (
        _archive(tmp_path / "gedit_1.orig.tar.gz", source),
        _archive(tmp_path / "mousepad_1.orig.tar.gz", source),
    )
    assert strings.collect([held], words)["pairs"] == [] or "Open" not in dict(strings.collect([held], words)["pairs"])
    assert "Open" in dict(strings.collect([known], words)["pairs"])


def test_every_kit_of_the_table_is_complete(tmp_path):
    import tomllib

    for entry in tomllib.loads(kits._TABLE.read_text()).values():
        for name in entry.get("names", "").split() or [""]:
            for sheet in entry["sheets"]:
                file = tmp_path / sheet.replace("{}", name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("")
    found = kits.every_kit(tmp_path)
    assert len({kit.name for kit in found}) == len(found) > 40
    assert next(kit for kit in found if kit.name == "coreui").parts["primary"] == "btn btn-primary"


def test_a_page_marks_every_element_it_asks_for(pack_file, tmp_path):
    kit = kits.Kit("plain", "plain", (), {"primary": "main"})
    for seed in range(8):
        page = Page(kit, Assets(pack_file), random.Random(seed), tmp_path, dark=seed % 2 == 0)
        text = page.render()
        assert len(page.items) >= 4
        assert all(f'data-k="{k}"' in text for k in range(len(page.items)))
        assert all(queries for _, queries in page.items)
        placed = page.placed([{"k": "0", "box": [1, 2, 3, 4]}, {"k": "", "box": [0, 0, 9, 9]}])
        assert placed == [{"box": [1, 2, 3, 4], "kind": page.items[0][0], "queries": page.items[0][1]}]


def test_elements_of_foreign_pages_are_asked_by_their_own_words():
    blank = dict.fromkeys(("role", "type", "value", "aria", "title", "hint", "alt", "label"), "")
    kind, queries = _queries({**blank, "tag": "a", "text": "Install¶", "title": "How to set the program up"})
    assert kind == "link"
    assert queries == [{"q": "Install", "by": "text"}, {"q": "How to set the program up", "by": "function"}]
    kind, queries = _queries({**blank, "tag": "button", "text": "", "aria": "Close dialog"})
    assert queries == [{"q": "Close dialog", "by": "name"}]
    assert _queries({**blank, "tag": "input", "type": "checkbox", "text": "", "label": "Wrap lines"})[0] == "check"


def test_accessibility_records_become_items():
    def record(role, name, description, box):
        return {"role": role, "name": name, "description": description, "text": "", "box": box, "states": []}

    items = programs.items_of(
        [
            record("push button", "Save", "Save the current file", [10, 10, 40, 40]),
            record("push button", "Open a recent project", "", [50, 10, 300, 40]),
            record("menu", "File", "", [0, 0, 39, 8]),
            record("menu", "File", "", [60, 0, 99, 8]),
            record("frame", "Window", "", [0, 0, 400, 300]),
            record("menu item", "Outside", "", [390, 290, 500, 310]),
        ],
        400,
        300,
    )
    assert [item["kind"] for item in items] == ["icon", "button"]
    said = [query["q"] for query in items[0]["queries"] if query["by"] == "function"]
    assert said[0] == "save the current file"
    assert any("keep my work" in question for question in said)  # what written/labels says that Save is for
    assert all(query["by"] != "function" for query in items[1]["queries"])
    twice = [{"kind": "button", "queries": [{"q": name, "by": "text"}]} for name in ("Save", "Save Changes")]
    assert [len(item["queries"]) for item in programs.with_functions(twice)] == [1, 1]


def test_what_a_name_is_for_depends_on_the_element_and_is_joined_where_it_is_the_same():
    rows = [row for row in stock().rows if "Agenda" in row.spellings]
    assert len({row.file for row in rows}) == 2
    agenda = programs.functions_of("agenda", "tab")
    assert all(row.phrases[0] in agenda and row.phrases[-1] not in agenda for row in rows)
    heading, list_ = programs.functions_of("size", "header"), programs.functions_of("size", "combo")
    assert heading
    assert list_
    assert not set(heading) & set(list_)
    assert ("merge", "button") not in programs.unclear()  # a desktop program means what desktop programs do
    assert ("title", "field") in programs.unclear()
    assert not programs.functions_of("title", "field")
    said = [
        query["q"] for query in programs.with_functions([{"kind": "tab", "queries": [{"q": "Agenda"}]}])[0]["queries"]
    ]
    assert not any(question.startswith("=") for question in said)
    assert len(said) == 1 + len(agenda)


def test_names_of_several_meanings_are_those_of_several_rows():
    spelled = Counter(name.lower() for row in stock().rows for name in {s.rstrip(".") for s in row.spellings})
    assert all(spelled[name] > 1 for name in programs._SEVERAL)


def test_what_an_open_menu_hides_is_not_asked_for():
    record = {"description": "", "text": "", "states": []}
    shown = programs.items_of(
        [
            {**record, "role": "menu item", "name": "Find...", "box": [10, 30, 110, 50]},
            {**record, "role": "push button", "name": "Undo the change", "box": [90, 35, 260, 60]},
            {**record, "role": "push button", "name": "Print the page", "box": [112, 35, 280, 60]},
            {**record, "role": "menu", "name": "Search", "box": [10, 10, 60, 30]},
        ],
        400,
        300,
    )
    assert [item["queries"][0]["q"] for item in shown] == ["Find...", "Print the page", "Search"]


def test_icons_are_chosen_by_meaning_and_common_meanings_more_often(pack_file):
    assets = Assets(pack_file)
    icons = assets.sets[False]["known-mono"]
    for i, number in enumerate(icons):
        entry = assets.icons[number]
        entry["concept"] = "document-save" if i == 0 else "bicycle"  # one common meaning, many pictures of a rare one
        if i > 9:
            entry.update(concept=None, functions=[])
    drawn = Counter(assets.icons[assets.choose(icons, random.Random(i), 1.0)]["concept"] for i in range(400))
    assert set(drawn) == {"document-save", "bicycle"}
    assert drawn["document-save"] > 2 * drawn["bicycle"]
    assert any(not assets.icons[assets.choose(icons, random.Random(i), 0.0)]["functions"] for i in range(40))
    assert assets.meaning(icons, "document-save", random.Random(1)) == icons[0]
    assert assets.meaning(icons, "mail-inbox", random.Random(1)) is None


def test_flat_regions_show_nothing():
    picture = np.zeros((40, 40, 3), np.uint8)
    picture[10:20, 10:20] = 255
    assert programs.shows(picture, [5, 5, 25, 25])
    assert not programs.shows(picture, [25, 25, 39, 39])
