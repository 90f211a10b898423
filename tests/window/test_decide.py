"""The Decide panel: building a request, what is wrong with it, the answers, files, code to paste, history."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from engine.messages import EngineError
from ignis_desktop import deciding
from ignis_desktop.panels.decide import DecidePanel
from ignis_desktop.panels.decide_request import Draft, faults, read_request, request_text
from ignis_desktop.panels.decide_snippets import curl, python
from ignis_desktop.panels.decide_words import answered
from ignis_desktop.store.chats import Picture
from ignis_desktop.store.decisions import Decided, Decisions
from ignis_desktop.widgets.answer_bars import AnswerBlock
from tests.window.conftest import Opened

QUESTIONS: dict[str, dict[str, Any]] = {
    "urgent": {"type": "noul", "instructions": "Is it urgent?"},
    "team": {"type": "choice", "instructions": "Which team?", "options": {"pay": "payments", "ship": "shipping"}},
    "mood": {"type": "score", "instructions": "How angry?", "options": ["calm", "annoyed", "angry"]},
    "topics": {"type": "multi", "instructions": "What about?", "options": ["cards", "parcels"]},
    "count": {"type": "number", "instructions": "How many?", "digits": 2},
    "line": {"type": "locate", "instructions": "Which line?", "kind": "log"},
}
EVIDENCE = "The card was declined.\nA parcel came late.\nNothing else happened."


def png(colour: str = "red") -> bytes:
    out = BytesIO()
    Image.new("RGB", (64, 48), colour).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def panel(opened: Opened) -> DecidePanel:
    opened.window.resize(1280, 800)
    opened.window.show_panel("decide")
    return opened.window.decide


def decide(panel: DecidePanel, qtbot) -> list[AnswerBlock]:
    qtbot.waitUntil(lambda: not panel.evidence.attachments.waiting, timeout=10_000)
    edit = panel.evidence.edit if panel.evidence.edit.isVisible() else panel
    qtbot.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: panel._deciding is None, timeout=60_000)
    return panel.answers.blocks


class TestRequests:
    """Text in, text out, and what may be wrong with it."""

    def test_a_request_is_what_ignis_decide_reads(self) -> None:
        text = request_text(Draft(EVIDENCE, questions=QUESTIONS))
        assert json.loads(text) == {"state": EVIDENCE, "questions": QUESTIONS}
        assert read_request(text) == Draft(EVIDENCE, questions=QUESTIONS)

    @pytest.mark.parametrize("state", ['{"total": 1.10, "items": [1e3, "é"]}', "[1, 2.50]", "  7.000 ", "null"])
    def test_numbers_of_json_stay_as_they_were_written(self, state: str) -> None:
        draft = Draft(state, is_json=True, questions={"q": {"type": "noul", "instructions": "x"}})
        text = request_text(draft)
        assert state.strip() in text
        assert read_request(text).evidence == state.strip()
        assert read_request(text).is_json

    def test_members_in_any_order(self) -> None:
        text = '\ufeff{"questions": {}, "other": [1, {"state": 2}], "state" : {"a": 1.0}}'.lstrip("\ufeff")
        assert read_request(text) == Draft('{"a": 1.0}', is_json=True, questions={})

    def test_pictures_travel_inside(self) -> None:
        draft = Draft("Look.", pictures=(Picture("a.png", png()), Picture("b.png", png("blue"))), questions=QUESTIONS)
        again = read_request(request_text(draft))
        assert [picture.data for picture in again.pictures] == [picture.data for picture in draft.pictures]
        assert again.evidence == "Look."

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{", "not JSON"),
            ("[]", "needs “state” and “questions”"),
            ('{"state": "x", "questions": {"q": {"type": "riddle"}}}', "no type that this window knows"),
            ('{"state": [{"type": "image_url", "image_url": "http://x/y.png"}], "questions": {}}', "no data URI"),
        ],
    )
    def test_files_that_are_none(self, text: str, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            read_request(text)

    @pytest.mark.parametrize(
        ("question", "field", "words"),
        [
            ({"type": "noul", "instructions": " "}, "instructions", "in words"),
            ({"type": "choice", "instructions": "x", "options": ["a"]}, "options", "two options"),
            ({"type": "multi", "instructions": "x", "options": ["a", "a"]}, "options", "the same"),
            ({"type": "score", "instructions": "x", "levels": list(map(str, range(257)))}, "options", "256"),
            ({"type": "noul", "instructions": "x", "true": "y"}, "options", "both texts"),
            ({"type": "point", "instructions": "x"}, "type", "no picture"),
            ({"type": "box", "instructions": "x"}, "type", "no picture"),
        ],
    )
    def test_faults_stand_where_their_cause_is(self, question: dict, field: str, words: str) -> None:
        found = faults(Draft("x", questions={"q": question}))
        assert list(found) == [("q", field)]
        assert words in found["q", field]

    def test_evidence_must_be_there_and_be_json_if_it_says_so(self) -> None:
        assert list(faults(Draft(" "))) == [("", "state")]
        assert "not JSON" in faults(Draft("{", is_json=True))["", "state"]
        assert faults(Draft("{}", is_json=True)) == {}

    def test_what_the_window_lets_pass_the_server_takes(self, engine_thread) -> None:
        draft = Draft(EVIDENCE, questions=QUESTIONS)
        assert faults(draft) == {}
        response = deciding.decide_request(engine_thread.engine, request_text(draft), lambda: False)
        assert set(response["answers"]) == set(QUESTIONS)

    def test_python_to_paste_is_python_with_the_request(self, tmp_path: Path) -> None:
        draft = Draft('A "quote", a \\ and """three""".\nNext.', questions=QUESTIONS)
        script = python("http://127.0.0.1:1/v1", "key", request_text(draft))
        shown = script[: script.index("request = ")] + "print(body)"
        out = subprocess.run([sys.executable, "-c", shown], capture_output=True, check=True, encoding="utf-8").stdout
        assert json.loads(out) == json.loads(request_text(draft))
        assert '"Authorization": "Bearer key"' in script

    def test_curl_to_paste(self) -> None:
        text = request_text(Draft(EVIDENCE, questions=QUESTIONS))
        assert curl("http://h/v1", "", text, "linux").startswith("curl -sS http://h/v1/decide")
        assert "Authorization: Bearer k" in curl("http://h/v1", "k", text, "linux")
        assert curl("http://h/v1", "k", text, "win32").startswith("$body = @'\n{")


def test_every_type_is_answered_with_bars(panel: DecidePanel, qtbot) -> None:
    panel.show_draft(Draft(EVIDENCE, questions=QUESTIONS))
    blocks = decide(panel, qtbot)
    assert [block.answer.id for block in blocks] == list(QUESTIONS)
    assert not any(block.answer.fault for block in blocks)
    assert [len(block.answer.bars) for block in blocks] == [2, 2, 3, 2, 2, 3]
    for block in blocks[:3]:
        assert sum(bar.share for bar in block.answer.bars) == pytest.approx(1)
        assert sum(bar.picked for bar in block.answer.bars) == 1
    assert all(0 < block.answer.mass <= 1 for block in blocks[:5])
    assert blocks[5].answer.mass is None
    assert "tokens read" in panel.took.text
    assert not panel.empty.isVisible()
    panel.questions.cards[0].words.setPlainText("Other words")
    assert "changed since" in panel.took.text


def test_nothing_is_asked_while_something_is_wrong(panel: DecidePanel, qtbot) -> None:
    decide(panel, qtbot)
    assert panel.evidence.fault.text() == "Write or drop what the questions are about."
    card = panel.questions.cards[0]
    assert card._faults["instructions"].text() == "Say in words what to decide."
    panel.evidence.edit.setPlainText(EVIDENCE)
    assert panel.evidence.fault.isHidden()
    assert card.property("invalid")
    qtbot.keyClicks(card.words, "Is it late?")
    assert not card.property("invalid")
    assert len(decide(panel, qtbot)) == 1


def test_cards_have_names_of_their_own(panel: DecidePanel, qtbot) -> None:
    panel.show_draft(Draft(EVIDENCE, questions={"q1": QUESTIONS["urgent"]}))
    qtbot.mouseClick(panel.questions.add_button, Qt.MouseButton.LeftButton)
    first, second = panel.questions.cards
    assert (second.id, second.type.value) == ("q2", "noul")
    second.words.setPlainText("And this?")
    second.name.setText("q1")
    decide(panel, qtbot)
    assert "called q1 already" in second._faults["id"].text()
    assert not first.property("invalid")
    second.removed.emit()
    assert len(decide(panel, qtbot)) == 1


def test_a_card_keeps_what_it_has_no_field_for(panel: DecidePanel) -> None:
    question = {"type": "choice", "instructions": "Which?", "options": ["a", "b"], "within": "/items", "note": 1}
    panel.show_draft(Draft("{}", is_json=True, questions={"q": question}))
    assert panel.draft().questions["q"] == question
    card = panel.questions.cards[0]
    card.options.setPlainText("a = the first\nb")
    assert card.question()["options"] == {"a": "the first", "b": "b"}
    for action in card.type.menu().actions():
        action.trigger()
    assert card.question() == {"type": "box", "instructions": "Which?", "within": "/items", "note": 1}


def test_pictures_are_pointed_on(panel: DecidePanel, qtbot, tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(png())
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "one.png"))])
    assert panel.evidence.edit.canInsertFromMimeData(data)
    panel.evidence.edit.insertFromMimeData(data)
    kinds = {kind: {"type": kind, "instructions": "The red thing"} for kind in ("box", "point")}
    panel.questions.show_questions({"frame": kinds["box"], "where": kinds["point"]})
    for block in decide(panel, qtbot):
        assert block.answer.fault == ""
        assert block.answer.bars[0].label == "Confidence"
    assert not panel.questions.cards[0]._rows["picture"].isVisible()
    panel.evidence.add_picture(Picture("two.png", png("blue")))
    qtbot.waitUntil(lambda: len(panel.draft().pictures) == 2, timeout=10_000)
    panel._changed()
    assert panel.questions.cards[0]._rows["picture"].isVisible()
    assert panel.draft().questions["where"]["image"] == 0


def test_a_text_file_is_dropped(panel: DecidePanel, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"total": 1.10}')
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "a.json"))])
    panel.evidence.edit.insertFromMimeData(data)
    assert panel.evidence.is_json
    assert panel.draft().evidence == '{"total": 1.10}'


def test_a_fault_of_the_engine_stands_at_its_question(
    panel: DecidePanel, qtbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel.show_draft(Draft("{}", is_json=True, questions={"q": {**QUESTIONS["urgent"], "within": "/gone"}}))
    decide(panel, qtbot)
    assert "nothing at '/gone'" in panel.questions.cards[0]._faults["other"].text()
    from ignis_desktop import engine_thread

    def fail(*_: object) -> None:
        raise EngineError("The engine was closed.")

    monkeypatch.setattr(engine_thread, "decide_request", fail)
    decide(panel, qtbot)
    assert panel.fault.text() == "The engine was closed."


def test_deciding_can_be_stopped(panel: DecidePanel, opened: Opened, qtbot) -> None:
    many = {f"q{i}": QUESTIONS["urgent"] for i in range(64)}
    panel.show_draft(Draft(EVIDENCE * 20, questions=many))
    panel.decide()
    assert panel.decide_button.text() == "Stop"
    qtbot.keyClick(opened.window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: panel._deciding is None, timeout=20_000)
    assert panel.fault.isHidden()
    assert panel.answers.blocks == []


def test_the_window_closes_while_deciding(open_window, qtbot) -> None:
    first = open_window()
    first.window.decide.show_draft(Draft(EVIDENCE * 20, questions={f"q{i}": QUESTIONS["urgent"] for i in range(64)}))
    first.window.decide.decide()
    second = open_window()
    qtbot.waitUntil(lambda: not second.engine.jobs._open, timeout=20_000)


def test_files(panel: DecidePanel, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "request.json"
    panel.show_draft(Draft('{"a": 1.0}', is_json=True, questions=QUESTIONS))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(file), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    panel.files.save()
    panel.show_draft(Draft())
    panel.files.choose_file()
    assert panel.draft() == Draft('{"a": 1.0}', is_json=True, questions=QUESTIONS)
    file.write_text("[]")
    panel.files.choose_file()
    assert "request.json: This is no decide request" in opened.window.toast._text.text()
    panel.files.open(tmp_path / "gone.json")
    assert "gone.json cannot be read" in opened.window.toast._text.text()


def test_copies(panel: DecidePanel, opened: Opened, qtbot) -> None:
    panel.show_draft(Draft(EVIDENCE, questions={"q": QUESTIONS["urgent"]}))
    decide(panel, qtbot)
    for what in ("answers", "request", "curl", "python"):
        panel.files.copy(what)
        text = QGuiApplication.clipboard().text()
        if what in ("answers", "request"):
            assert "q" in json.loads(text)["answers" if what == "answers" else "questions"]
        else:
            assert opened.window.server.base_url() + "/decide" in text


def test_history_is_kept(panel: DecidePanel, open_window, qtbot) -> None:
    panel.show_draft(Draft(EVIDENCE, questions={"q": QUESTIONS["urgent"]}))
    decide(panel, qtbot)
    shown = panel.answers.blocks[0].answer
    again = open_window().window.decide
    menu = again.files.history_menu()
    first = menu.actions()[0]
    assert "Is it urgent? → " in first.text()
    first.trigger()
    assert again.draft() == Draft(EVIDENCE, questions={"q": QUESTIONS["urgent"]})
    assert again.answers.blocks[0].answer == shown
    menu.actions()[-1].trigger()
    menu.deleteLater()
    assert Decisions().items == []


def test_history_is_bounded_and_survives_a_broken_file(tmp_path: Path) -> None:
    file = tmp_path / "decisions.json"
    history = Decisions(file)
    for i in range(40):
        history.add(Decided(float(i), f"request {i}", {}))
    history.add(Decided(40.0, "x" * (2 << 20), {}))
    assert len(history.items) == 30
    assert [item.time for item in Decisions(file).items][:2] == [39.0, 38.0]
    file.write_text('[{"time": 1}]')
    assert Decisions(file).items == []


def test_a_narrow_window_shows_one_part_at_a_time(panel: DecidePanel, opened: Opened, qtbot) -> None:
    assert all(part.isVisible() for part in panel._parts)
    opened.window.resize(760, 480)
    assert [part.isVisible() for part in panel._parts] == [True, False, False]
    panel.show_draft(Draft(EVIDENCE, questions={"q": QUESTIONS["urgent"]}))
    decide(panel, qtbot)
    assert [part.isVisible() for part in panel._parts] == [False, False, True]
    assert panel.isAncestorOf(opened.window.focusWidget())


def test_many_options_show_the_likeliest(qtbot) -> None:
    shares = {f"option {i}": 0.9 if i == 77 else 0.1 / 99 for i in range(100)}
    answer = {"choice": "option 77", "probabilities": shares, "label_mass": 0.9}
    question = {"q": {"type": "choice", "instructions": "x", "options": list(shares)}}
    (block,) = [AnswerBlock(one) for one in answered(question, {"q": answer})]
    qtbot.addWidget(block)
    block.resize(400, 300)
    block.grab()
    assert "option 77" in [bar.label for bar in block._bars]
    assert block._left_out == 88
    assert "option 77 90%" in block.accessibleName()


def test_the_example_can_be_asked(panel: DecidePanel, qtbot) -> None:
    panel.empty._button.click()
    qtbot.waitUntil(lambda: panel._deciding is None, timeout=60_000)
    assert len(panel.answers.blocks) == len(panel.questions.cards) == 4
