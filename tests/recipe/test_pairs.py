"""Pairs from manual pages, messages, settings, package descriptions and dictionaries, as their sources look."""

from __future__ import annotations

import gzip
import io
import re
import tarfile

import pytest

from assets.ember.recipe import pairs
from assets.ember.recipe.pairs import dictionaries, manuals, messages, packages, postgres, roff, sentences, settings

MAN = r""".TH CP 1
.SH NAME
cp \- copy files and directories
.SH OPTIONS
.TP
\fB\-n\fR, \fB\-\-no\-clobber\fR
do not overwrite an existing file (overrides a
previous \fB\-i\fR option)
.TP
\fB\-\-help\fR
display this help and exit successfully
.PP
\fB\-\-sparse\fR=\fIWHEN\fR
.RS 4
Control creation of sparse files. By default they are detected.
.RE
.SH ERRORS
.TP
.B ENOSPC
.\" a comment
The device containing the file has no room for the data.
"""
MDOC = r""".Dd May 1, 2024
.Dt SSHD 5
.Sh NAME
.Nm sshd_config
.Sh OPTIONS
.Bl -tag -width Ds
.It Cm AllowAgentForwarding
Specifies whether
.Xr ssh-agent 1
forwarding is permitted.
The default is
.Cm yes .
.It Fl q
Be quiet (see
.Dq notes ) .
.El
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix in (".gz", ".dz") else text.encode())


def test_dictionaries_give_meanings_synonyms_and_examples():
    text = (
        'abandon\n    v 1: leave someone who needs you; "she abandoned him" [syn: {abandon},\n'
        '         {desert}]\n    2: stop doing; "abandon the project" [syn: {abandon}, {give up}]\n'
        "Abel\n    n 1: a person\n"
    )
    found = set(dictionaries.wordnet(text))
    assert ("leave someone who needs you", "abandon") in found
    assert ("abandon", "desert") in found
    assert ("abandon the project", "give up the project") in found
    assert not any("Abel" in pair for pair in found)
    term = "actor\n\n   1. <programming> In {object-oriented} programming, an {object} which is a process.  More.\n"
    assert list(dictionaries.foldoc(term)) == [
        ("actor", "In object-oriented programming, an object which is a process.")
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Set the value to %s before starting.",
        "It is the one that was named before.",
        "Use the <b>other</b> form of it.",
        "Directories that are searched for the",
        "Waits for (at most two seconds.",
        "See also the other manual of this program.",
        "Too short here",
    ],
)
def test_sentences_that_do_not_stand_alone_are_left_out(sentence):
    assert not sentences.says(sentence)


def test_sentences_are_whole():
    text = "Some tools, e.g. GNU tar, write them. Others don\u2019t [2]. End"
    assert sentences.split(text) == ["Some tools, e.g. GNU tar, write them.", "Others don't .", "End"]
    assert sentences.first("Closes the connection at once. Then waits.") == "Closes the connection at once."
    assert sentences.beginning("Closes the connection at once. The peer is told why.") == (
        "Closes the connection at once. The peer is told why."
    )
    assert sentences.untagged("<p>a&amp;b <code>c</code><sup>1</sup>\n d</p>") == "a&b c d"


def test_pairs_that_repeat_themselves_are_known():
    assert sentences.repeats("remove the directory entries", "Remove directory entries now")
    assert sentences.repeats("sets work_mem of a query", "work_mem")
    assert not sentences.repeats("takes a file away", "delete a file")


def test_manual_pages_are_read_as_tagged_paragraphs():
    found = {item.tag: item for item in roff.items(MAN, "cp")}
    assert found["-n, --no-clobber"].text == "do not overwrite an existing file (overrides a previous -i option)"
    assert found["--sparse=WHEN"].section == "OPTIONS"
    assert found["ENOSPC"].section == "ERRORS"
    found = {item.tag: item.text for item in roff.items(MDOC, "sshd_config")}
    assert (
        found["AllowAgentForwarding"] == "Specifies whether ssh-agent(1) forwarding is permitted. The default is yes."
    )
    assert found["-q"] == 'Be quiet (see "notes").'


def test_manual_pages_give_options_settings_and_errors(tmp_path):
    write(tmp_path / "usr/share/man/man1/cp.1.gz", MAN)
    write(tmp_path / "usr/share/man/man2/write.2.gz", MAN)
    write(tmp_path / "usr/share/man/man5/sshd_config.5.gz", MDOC)
    (tmp_path / "usr/share/man/man1/gone.1.gz").symlink_to("nowhere.1.gz")
    assert ("copy files and directories", "cp") in set(manuals.names(tmp_path))
    options = dict(manuals.options(tmp_path))
    assert options["Control creation of sparse files."].endswith("--sparse")
    assert not any("--help" in option for option in options.values())
    assert list(manuals.settings(tmp_path)) == [
        ("Specifies whether ssh-agent(1) forwarding is permitted.", "AllowAgentForwarding")
    ]
    ((said, text),) = manuals.errors(tmp_path)
    assert said == "The device containing the file has no room for the data."
    assert text in ("ENOSPC", "write: No space left on device")


def test_perl_explains_its_messages():
    page = (
        '.SH DESCRIPTION\n.ie n .IP """%s"" variable %s masks" 4\n.el .IP "other" 4\n.IX Item "x"\n'
        "(W shadow) A variable has been redeclared in the current scope.\nThis is nearly always a mistake.\n"
        '.IP "Out of memory in perl:%s:%s" 4\n(X) A call failed, so there was no room for what was asked.\n'
    )
    ((said, message),) = messages.diagnostics(page)
    assert said.startswith("A variable has been redeclared")
    assert re.fullmatch(r'"\w+" variable \w+ masks', message)


def test_placeholders_are_filled_or_left_out():
    assert messages.filled("cannot copy from view") == "cannot copy from view"
    assert messages.filled('relation "%s" has %d columns').split('"')[1] in messages._NAMES
    assert messages.filled("get%sname failed") is None
    assert messages.filled("%s %s %s") is None


def test_the_journal_explains_its_messages():
    text = (
        "-- f77379a8490b408bbe5f6940505a777b\nSubject: Unit @UNIT@ stopped\nDefined-By: systemd\n\n"
        "The manager has ended every process\nthat belonged to it.\n\nThe result was @OTHER@ and nothing else.\n"
    )
    assert list(messages.catalog(text)) == [
        ("The manager has ended every process that belonged to it.", "Unit backup.service stopped")
    ]


def test_checkers_explain_their_messages(tmp_path):
    source = 'M = {"E0602": ("Undefined variable %r", "undefined", "Used when a name is read that no one set.")}'
    ((said, text),) = messages.checks(source)
    assert said == "A name is read that no one set."
    assert re.fullmatch(r"Undefined variable \w+", text)
    write(
        tmp_path / "usr/share/lintian/tags/d/dir-in-opt.tag",
        "Tag: dir-in-opt\nSeverity: error\nExplanation: Packages leave <code>/opt</code>, reserved for others.\n"
        " .\n More.\nSee-Also: policy\n",
    )
    assert list(messages.lintian(tmp_path)) == [("Packages leave /opt, reserved for others.", "dir-in-opt")]
    assert ("Nothing matches the given URI", "404 Not Found") in set(messages.statuses(tmp_path))


def test_postgres_errors_have_details_and_hints(tmp_path):
    source = (
        'ereport(ERROR, (errcode(ERRCODE_X), errmsg("cannot copy from view \\"%s\\"", name),\n'
        ' errhint("Try the COPY (SELECT ...) TO "\n "variant.")));'
    )
    ((said, message),) = postgres.reports(source)
    assert said == "Try the COPY (SELECT ...) TO variant."
    assert message.startswith('cannot copy from view "')
    table = '{"work_mem", PGC_USERSET, RESOURCES_MEM, gettext_noop("Sets the memory used by one query."), NULL }'
    with tarfile.open(tmp_path / "postgresql-15_15.1.orig.tar.gz", "w:gz") as archive:
        for name, text in (("p/guc.c", table), ("p/copy.c", source), ("p/test/copy.c", source)):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    assert list(postgres.settings(tmp_path)) == [("Sets the memory used by one query.", "work_mem")]
    assert len(list(postgres.errors(tmp_path))) == 1


def test_settings_say_what_they_are_for(tmp_path):
    key = (
        "core.fileMode::\n\tTells Git if the executable bit of files in\n\tit counts, as linkgit:git-add[1] does.\n"
        "+\nMore.\n"
    )
    assert list(settings.keys(key)) == [
        ("Tells Git if the executable bit of files in it counts, as git-add does.", "core.fileMode")
    ]
    text = "\tacpi_irq=\t[HW,ACPI]\n\t\t\tFormat: <irq>\n\t\t\tMark listed lines as used by the old bus.\n"
    assert list(settings.parameters(text)) == [("Mark listed lines as used by the old bus.", "acpi_irq=")]
    text = (
        "nr_open\n=======\n\nThe most files that one process can hold open.\n\n"
        "ip_forward - BOOLEAN\n\tPass packets on between interfaces.\n"
    )
    assert dict(settings.variables(text)) == {
        "The most files that one process can hold open.": "nr_open",
        "Pass packets on between interfaces.": "ip_forward",
    }
    page = (
        '<dt class="sig sig-object py" id="a.b.Pool.close">\n<em>x</em></dt>\n'
        "<dd><p>Ends all workers at once. More.</p></dd>"
    )
    assert list(settings.sphinx(page)) == [("Ends all workers at once.", "Pool.close")]
    module = (
        'DOCUMENTATION = """\nshort_description: Copy files to remote locations\noptions:\n'
        "  backup:\n    description:\n"
        '    - Keep what was there under C(another) name.\n    - More.\n    type: bool\n"""\n'
    )
    assert list(settings.described(module, "copy")) == [
        ("Copy files to remote locations", "copy"),
        ("Keep what was there under 'another' name.", "copy: backup"),
    ]
    write(
        tmp_path / "usr/share/glib-2.0/schemas/a.gschema.xml",
        '<schemalist><schema id="a"><key name="lock" type="b"><summary>Disable log out</summary>'
        "<description>Keep people from ending their session.</description></key></schema></schemalist>",
    )
    assert list(settings.schemas(tmp_path)) == [("Keep people from ending their session.", "Disable log out")]


def test_packages_are_described_once_and_in_other_words(tmp_path):
    stanza = "Package: {}\nDescription-md5: 0\nDescription-en: {}\n {}\n .\n  * a list\n\n"
    text = (
        stanza.format("rsync", "fast, versatile file-copying tool", "Rsync brings files on other machines up to date.")
        + stanza.format("rsync-doc", "manual of rsync", "Rsync brings files on other machines nearer still.")
        + stanza.format("old", "transitional dummy package", "Nothing at all is in this one any more.")
        + stanza.format("copy", "copies files", "Copies files from one place to another.")
    )
    write(tmp_path / "x_Translation-en", text)
    write(tmp_path / "x_Packages", "Package: rsync\nVersion: 3\nSource: rs (3)\nSize: 1\n\n")
    ((said, synopsis),) = packages.packages(tmp_path)
    assert said == "Rsync brings files on other machines up to date."
    assert synopsis in ("fast, versatile file-copying tool", "rsync: fast, versatile file-copying tool")
    assert packages.sources((tmp_path / "x_Packages").read_text()) == {"rsync": "rs"}


def test_every_source_is_capped_and_vague_questions_are_left_out(tmp_path):
    def read(root):
        yield from ((f"it counts up to the number {n}", f"counter {n}") for n in range(20))
        yield from (("Takes a boolean argument.", f"Setting{n}=") for n in range(5))
        yield "a caf\u00e9 on the corner", "coffee house"

    ((name, found),) = pairs.collect([tmp_path], [pairs.Source("made", 12, read)])
    assert name == "made"
    assert len(found) == 12
    assert all(question.startswith("it counts") for question, _ in found)
    assert found == sorted(found, key=lambda pair: int(pair[1].split()[1]))
