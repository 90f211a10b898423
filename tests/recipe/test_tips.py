"""What controls are for: parsers of programs' files, and labels and phrases made of what they say."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile

import pytest

from assets.ember.recipe.screens import strings, tips
from assets.ember.recipe.screens.tips import phrases


@pytest.mark.parametrize(
    ("tip", "said"),
    [
        ("Whether to show line numbers beside the text.", "show line numbers beside the text"),
        ("Opens the file and shows its pages", "open the file and show its pages"),
        ("If enabled, remember the last folder", "remember the last folder"),
        ("This option allows you to hide the bar", "hide the bar"),
        ("Only for those who read", "only for those who read"),
        ("Sets a limit for the speed", "set a limit for the speed"),
        ("The pages will be shown in two columns", "=The pages will be shown in two columns"),
        ("Maximum number of steps to undo", "maximum number of steps to undo"),
        ("Files of the current folder", "files of the current folder"),
        ("A deprecated callback for the widget", None),
        ("See the manual for more of this", None),
        ("Shows %s in the list of names", None),
        ("Show", None),
    ],
)
def test_tips_become_what_people_ask_for(tip, said):
    assert phrases.function(tip) == said


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("_Save As...", "Save As"),
        ("&Browse", "Browse"),
        ("Cut & Paste", "Cut & Paste"),
        ("Width:", "Width"),
        ("<b>Bold</b>", None),
        ("Found %d files", None),
        ("allow_search", None),
        ("The pages that are to be shown here", None),
    ],
)
def test_labels_are_cleaned(text, label):
    assert phrases.label(text) == label


def test_what_repeats_its_label_is_no_pair():
    assert phrases.pair("Show line numbers", "Show the line numbers") is None
    assert phrases.pair("Ruler", "Show the width of each page") == ("Ruler", "show the width of each page")


@pytest.mark.parametrize(
    ("name", "text", "pair"),
    [
        ("a.c", '{ "Save", "icon", N_("_Save"), "<control>S", N_("Write this file to the disk"), f },', "Save"),
        (
            "a.c",
            'b = gtk_button_new (_("Wipe"));\nset_tooltip (b, _("Write this file to the disk"));',
            "Wipe",
        ),
        ("a.c", 'RNA_def_property_ui_text(prop, "Keep", "Write this file " "to the disk");', "Keep"),
        ("a.c", 'prefs_register_bool_preference(m, "k", "Store", "Write this file to the disk", &v);', "Store"),
        ("a.c", 'g_param_spec_int ("k", "Store", "Write this file to the disk", 0, 1)', "Store"),
        ("a.c", 'property_int (k, _("Store"), 3)\n  description (_("Write this file to the disk"))', "Store"),
        ("a.c", '{ "store_all", "Write this file to the disk", OFFSET(k), 1 },', "Store all"),
        ("a.c", '#define K_TEXT N_("Store")\n#define K_LONGTEXT N_( \\\n "Write this file to the disk")', "Store"),
        ("a.cpp", 'a->setText(i18nc("@x", "&Store"));\na->setToolTip(i18n("Write this file to the disk"));', "Store"),
        ("a.cpp", 'd->label = L("Store");\nd->tooltip = L("Write this file to the disk");', "Store"),
        ("a.py", 'x = forms.CharField(label=_("Store"), help_text=_("Write this file to the disk"))', "Store"),
        ("a.py", "bl_label = 'Store'\n    bl_description = 'Write this file to the disk'", "Store"),
        (
            "a.ui",
            '<ui><widget class="Q" name="k"><property name="text"><string>Store</string></property>'
            '<property name="toolTip"><string>Write this file to the disk</string></property></widget></ui>',
            "Store",
        ),
        (
            "a.ui",
            '<interface><object class="GtkLabel" id="l"><property name="label">Store</property><property name='
            '"mnemonic_widget">k</property></object><object class="GtkEntry" id="k"><child internal-child="accessible">'
            '<object class="AtkObject" id="q"><property name="AtkObject::accessible-description">'
            "Write this file to the disk</property></object></child></object></interface>",
            "Store",
        ),
        (
            "a.gschema.xml",
            "<s><key><summary>Store</summary><description>Write this file to the disk</description></key></s>",
            "Store",
        ),
        ("a.kcfg", '<k><entry name="StoreAll"><label>Write this file to the disk</label></entry></k>', "Store all"),
        (
            "effects/a.xml",
            "<effect><name>Store</name><description>Write this file to the disk</description></effect>",
            "Store",
        ),
        ("a.desktop", "[Desktop Entry]\nName=Store\nComment=Write this file to the disk\n", "Store"),
        ("a.blp", 'Button { label: _("Store"); tooltip-text: _("Write this file to the disk"); }', "Store"),
        ("a.def.json", json.dumps({"k": {"label": "Store", "description": "Write this file to the disk"}}), "Store"),
        (
            "homeassistant/components/k/strings.json",
            json.dumps(
                {
                    "user": {
                        "data": {"a": "[%key:common::data::store%]"},
                        "data_description": {"a": "Write this file to the disk"},
                    }
                }
            ),
            "Store",
        ),
        ("languages/default", "K_LABEL;Store\nK_TOOLTIP;Write this file to the disk\n", "Store"),
        ("i18n/en.json", json.dumps({"k": "Store", "tooltip-k": "Write this file to the disk [x]"}), "Store"),
        ("devices/a.js", '.withLabel("Store").withDescription("Write this file to the disk")', "Store"),
        (
            "a.pot",
            '#. Default: "Store"\nmsgid "label_k"\n\n#. Default: "Write this file to the disk"\nmsgid "help_k"\n',
            "Store",
        ),
    ],
)
def test_every_kind_of_file_gives_labels_with_tips(name, text, pair):
    found = {phrases.pair(*said) for said in tips.said(name, text)}
    assert (pair, "write this file to the disk") in found


def test_archives_wheels_and_folders_are_read(tmp_path):
    text = "Name=Store\nComment=Write this file to the disk\n"
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("a/a.desktop")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("a.desktop", text)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a.desktop").write_text(text)
    for origin in ("a.tar.gz", "a.whl", "folder"):
        assert list(tips.read(tmp_path / origin)) == [("Store", "write this file to the disk")]


def test_questions_of_the_held_out_screens_are_left_out(tmp_path):
    asked = strings.held_out_questions()
    assert len(asked) > 500
    question = next(q for q in sorted(asked) if phrases.pair("Zzz", q) and not phrases.function(q).startswith("="))
    (tmp_path / "a.desktop").write_text(f"Name=Zzz\nComment={question}\n")
    assert tips.collect([tmp_path]) == {"Zzz": [phrases.function(question)]}
    assert tips.collect([tmp_path], asked) == {}
