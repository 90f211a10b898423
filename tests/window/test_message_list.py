"""The list of messages: few widgets, steady view, fast with many messages."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from ignis_desktop.widgets.message_item import ChatItem
from ignis_desktop.widgets.message_list import MessageList
from ignis_desktop.widgets.message_view import MessageView
from ignis_desktop.widgets.theme import Theme

ANSWER = """\
Here is what it means, **line by line**:

1. the time
2. the level

```python
for line in open("app.log"):
    if "ERROR" in line:
        print(line)
```

That is all there is to it, in a sentence that is long enough to be wrapped once in the reading column of the window.
"""


def conversation(count: int) -> list[ChatItem]:
    return [
        ChatItem(str(i), "assistant", ANSWER * (1 + i % 3), last=i == count - 1)
        if i % 2
        else ChatItem(str(i), "user", f"Question {i}")
        for i in range(count)
    ]


@pytest.fixture
def messages(qtbot):
    widget = MessageList()
    qtbot.addWidget(widget)
    widget.resize(900, 700)
    widget.show()
    return widget


def measured(widget: MessageList, app: QApplication) -> None:
    """Waits until every height is known."""
    until = time.monotonic() + 60
    while widget._measure.isActive() and time.monotonic() < until:
        app.processEvents()
    assert not widget._measure.isActive()


def test_only_messages_in_view_have_widgets(messages: MessageList, qapp: QApplication) -> None:
    messages.set_items(conversation(120), to_end=True)
    measured(messages, qapp)
    assert messages.widgets_alive < 20
    bar = messages.verticalScrollBar()
    for step in range(0, 101, 5):
        bar.setValue(bar.maximum() * step // 100)
        qapp.processEvents()
        assert messages.widgets_alive < 20


def test_500_messages_stay_smooth(messages: MessageList, qapp: QApplication) -> None:
    """Bounds are ten times what an idle machine needs; figures are printed."""
    began = time.perf_counter()
    messages.set_items(conversation(500), to_end=True)
    qapp.processEvents()
    opened = time.perf_counter() - began
    measured(messages, qapp)
    bar = messages.verticalScrollBar()
    steps = []
    for value in range(bar.maximum(), max(0, bar.maximum() - 30_000), -120):
        start = time.perf_counter()
        bar.setValue(value)
        qapp.processEvents()
        steps.append(time.perf_counter() - start)
    steps.sort()
    median, worst = steps[len(steps) // 2], steps[-1]
    print(f"open {opened * 1000:.0f} ms, scroll step median {median * 1000:.1f} ms, worst {worst * 1000:.0f} ms")
    assert opened < 1.0
    assert median < 0.05


def test_streaming_touches_only_the_last_message(messages: MessageList, qapp: QApplication) -> None:
    items = conversation(120)
    messages.set_items(items, to_end=True)
    measured(messages, qapp)
    before = messages.view_of(items[-2].id)
    text, times = ANSWER * 8, []
    for end in range(0, len(text), 40):
        start = time.perf_counter()
        messages.update_item(ChatItem(items[-1].id, "assistant", text[:end], streaming=True, last=True))
        qapp.processEvents()
        times.append(time.perf_counter() - start)
    times.sort()
    print(f"update median {times[len(times) // 2] * 1000:.1f} ms, worst {times[-1] * 1000:.0f} ms")
    assert times[len(times) // 2] < 0.05
    assert before is not None
    assert messages.at_end
    bar = messages.verticalScrollBar()
    assert bar.value() == bar.maximum()


def test_view_follows_the_end_only_if_it_was_there(messages: MessageList, qapp: QApplication) -> None:
    items = conversation(20)
    messages.set_items(items, to_end=True)
    measured(messages, qapp)
    bar = messages.verticalScrollBar()
    assert bar.value() == bar.maximum()
    bar.setValue(bar.maximum() // 2)
    place = bar.value()
    assert not messages.at_end
    messages.update_item(ChatItem(items[-1].id, "assistant", ANSWER * 9, streaming=True, last=True))
    assert bar.value() == place
    messages.scroll_to_end()
    messages.update_item(ChatItem(items[-1].id, "assistant", ANSWER * 12, streaming=True, last=True))
    assert bar.value() == bar.maximum()


def test_measuring_above_does_not_move_what_is_read(messages: MessageList, qapp: QApplication) -> None:
    items = conversation(200)
    messages.set_items(items, to_end=True)
    bar = messages.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    key, view = next(iter(messages._views.items()))
    place = view.y()
    measured(messages, qapp)
    assert messages.view_of(key) is view
    assert view.y() == place


def test_actions_name_the_message(messages: MessageList, qtbot) -> None:
    items = [
        ChatItem("q", "user", "Hi", branch=(2, 3)),
        ChatItem(
            "a", "assistant", "Hello", error="The prompt is too long.", mend="Ask anew", last=True, numbers="3 tokens"
        ),
    ]
    messages.set_items(items)
    heard: list[tuple[str, str]] = []
    messages.action.connect(lambda what, key: heard.append((what, key)))
    question, answer = messages.view_of("q"), messages.view_of("a")
    assert isinstance(question, MessageView)
    assert isinstance(answer, MessageView)
    actions = question._parts["actions"]
    qtbot.mouseClick(actions._previous, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(actions._next, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(answer._parts["error"]._mend, Qt.MouseButton.LeftButton)
    for made in answer._parts["actions"]._hidden_until_hover:
        assert made.isVisible(), "the last answer shows its actions"
        qtbot.mouseClick(made, Qt.MouseButton.LeftButton)
    assert heard == [
        ("previous", "q"),
        ("next", "q"),
        ("mend", "a"),
        ("copy", "a"),
        ("regenerate", "a"),
        ("numbers", "a"),
    ]


def test_thinking_folds(messages: MessageList, qapp: QApplication) -> None:
    folded = ChatItem("a", "assistant", "Four.", thinking="two and two", thinking_label="Thought for 3.2 s", last=True)
    messages.set_items([folded])
    view = messages.view_of("a")
    assert view is not None
    low = view.height()
    assert "thinking" not in view._parts
    messages.update_item(ChatItem(**{**folded.__dict__, "unfolded": True}))
    assert view._parts["thinking"].toPlainText() == "two and two"
    assert view.height() > low
    messages.update_item(folded)
    assert view.height() == low


def test_theme_switch_restyles_documents(messages: MessageList, theme: Theme, qapp: QApplication) -> None:
    messages.set_items(conversation(4), to_end=True)
    theme.apply("dark")
    qapp.processEvents()
    code = next(widget for _, widget in messages.view_of("3")._blocks if hasattr(widget, "show_code"))
    html = code._body.document().toHtml()
    assert "#c99be8" in html.lower()


def test_a_narrow_window_still_fits(messages: MessageList, qapp: QApplication) -> None:
    messages.set_items(conversation(6), to_end=True)
    messages.resize(360, 500)
    qapp.processEvents()
    measured(messages, qapp)
    for view in messages._views.values():
        assert view.x() >= 0
        assert view.geometry().right() <= messages.viewport().width()
