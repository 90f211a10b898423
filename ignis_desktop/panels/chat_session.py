"""What the Chat panel does, without its widgets: conversations, branches, answers on their way, what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from engine.messages import EngineError, Finished
from ignis_desktop.engine_thread import EngineThread, Turn
from ignis_desktop.panels.chat_items import PATIENCE_MS, chat_item, title_of
from ignis_desktop.panels.presets import sampling_of
from ignis_desktop.panels.running import Running
from ignis_desktop.store.chat_worker import ChatWorker
from ignis_desktop.store.chats import Conversation, Message, MessageTree, Picture, new_id
from ignis_desktop.widgets.conversation_list import ConversationRow
from ignis_desktop.widgets.message_item import ChatItem
from ignis_desktop.widgets.texts import tr


class ChatSession(QObject):
    """All conversations; one of them is open. Nothing here waits for the disk or the engine."""

    rows_changed = Signal()
    opened = Signal()
    """Another conversation is shown, or another branch of it: everything in the list of messages is new."""
    messages_changed = Signal(bool)
    """Messages were added; True when the view should go to the end."""
    message_changed = Signal(str)
    running_changed = Signal()
    failed = Signal(str)

    def __init__(self, engine: EngineThread, worker: ChatWorker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._worker = worker
        self._conversations: dict[str, Conversation] = {}
        self._found: list[str] | None = None
        """Ids of the conversations that a search found; None when nothing is searched."""
        self._trees: dict[str, MessageTree] = {}
        self._running: dict[str, Running] = {}
        self._unfolded: set[str] = set()
        self._numbered: set[str] = set()
        self.current: Conversation | None = None
        worker.failed.connect(self._on_store_failure)
        worker.call("conversations", then=self._on_loaded)

    # Conversations

    def rows(self) -> list[ConversationRow]:
        """The list at the left, newest first."""
        shown = list(self._conversations.values())
        if self._found is not None:
            shown = [self._conversations[key] for key in self._found if key in self._conversations]
        newest = sorted(shown, key=lambda conversation: -conversation.updated)
        return [ConversationRow(c.id, c.title, c.updated, c.id in self._running) for c in newest]

    def search(self, text: str) -> None:
        if not text.strip():
            self._found = None
            self.rows_changed.emit()
            return
        self._worker.call("conversations", text, then=self._on_found)

    def open(self, conversation: str) -> None:
        if self.current is not None and self.current.id == conversation:
            return
        self.current = self._conversations[conversation]
        if conversation in self._trees:
            self._announce_open()
        else:
            self._worker.call("messages", conversation, then=lambda found: self._on_messages(conversation, found))

    def new(self) -> None:
        """Shows an empty conversation. It is kept with its first message."""
        self.current = None
        self._announce_open()

    def rename(self, conversation: str, title: str) -> None:
        self._change(conversation, title=title)
        self.rows_changed.emit()

    def set_options(self, system_prompt: str, preset: str, thinking: bool) -> None:
        if self.current is None:
            self._create(tr("chat.untitled"))
            self._announce_open()
        assert self.current is not None
        self._change(self.current.id, system_prompt=system_prompt, preset=preset, thinking=thinking)

    def delete(self, conversation: str) -> None:
        """Takes it out of the list; ``undelete`` brings everything back."""
        if conversation in self._running:
            self._running[conversation].reply.cancel()
        self._conversations.pop(conversation)
        self._worker.call("set_deleted", conversation, True)
        if self.current is not None and self.current.id == conversation:
            self.new()
        self.rows_changed.emit()

    def undelete(self, deleted: Conversation) -> None:
        self._conversations[deleted.id] = deleted
        self._worker.call("set_deleted", deleted.id, False)
        self.rows_changed.emit()
        self.open(deleted.id)

    def conversation(self, conversation: str) -> Conversation:
        return self._conversations[conversation]

    def with_messages(self, conversation: str, then: Callable[[], None]) -> None:
        """Calls ``then`` once the messages of a conversation are in memory."""
        if conversation in self._trees:
            then()
            return

        def keep(messages: list[Message]) -> None:
            self._on_messages(conversation, messages)
            then()

        self._worker.call("messages", conversation, then=keep)

    def tree_of(self, conversation: str) -> MessageTree:
        """Raises ``KeyError`` when its messages are not in memory."""
        return self._trees[conversation]

    # Messages

    @property
    def tree(self) -> MessageTree | None:
        return self._trees.get(self.current.id) if self.current is not None else None

    @property
    def running(self) -> bool:
        """Whether an answer is being written in the open conversation."""
        return self.current is not None and self.current.id in self._running

    @property
    def running_anywhere(self) -> int:
        return len(self._running)

    def items(self) -> list[ChatItem]:
        """The branch that is shown."""
        tree = self.tree
        if tree is None:
            return []
        branch = tree.branch()
        return [self._item(tree, message, message is branch[-1]) for message in branch]

    def item(self, message_id: str) -> ChatItem | None:
        """One message of the branch that is shown, None if it is not in it."""
        tree = self.tree
        if tree is None or message_id not in tree:
            return None
        return self._item(tree, tree[message_id], message_id == tree.head)

    def send(self, text: str, pictures: Sequence[Picture] = (), *, instead_of: str | None = None) -> bool:
        """Adds a question and starts its answer. ``instead_of``: a message this is an edited version of.

        False when it cannot be now: the conversation is still being read, or an answer is being written in it.
        """
        if self.current is None:
            self._create(title_of(text) or (pictures[0].name if pictures else tr("chat.untitled")))
            self.opened.emit()
        conversation, tree = self.current, self.tree
        assert conversation is not None
        if tree is None or conversation.id in self._running:
            return False
        if not len(tree) and conversation.title == tr("chat.untitled"):
            self.rename(conversation.id, title_of(text) or conversation.title)
        parent = tree[instead_of].parent if instead_of else tree.head
        question = Message(new_id(), conversation.id, parent, "user", text, created=time.time(), images=tuple(pictures))
        tree.add(question)
        self._worker.call("save_message", question)
        self._answer(question.id)
        return True

    def regenerate(self, answer: str) -> None:
        """Writes another answer beside ``answer``, which stays."""
        tree = self.tree
        if tree is None or self.running:
            return
        parent = tree[answer].parent
        if parent is not None:
            self._answer(parent)

    def stop(self) -> None:
        if self.current is not None and self.current.id in self._running:
            self._running[self.current.id].reply.cancel()

    def step(self, message_id: str, by: int) -> None:
        """Shows the alternative ``by`` places after ``message_id``."""
        tree = self.tree
        if tree is None or self.current is None:
            return
        siblings = tree.siblings(message_id)
        place = next(i for i, message in enumerate(siblings) if message.id == message_id) + by
        if 0 <= place < len(siblings):
            tree.show(siblings[place].id)
            self._change(self.current.id, head=tree.head)
            self.messages_changed.emit(False)

    def toggle(self, what: str, message_id: str) -> None:
        """Folds or unfolds thinking ("fold"), shows or hides "numbers"."""
        chosen = self._unfolded if what == "fold" else self._numbered
        chosen.symmetric_difference_update({message_id})
        self.message_changed.emit(message_id)

    def close(self) -> None:
        """Keeps what has been written of every answer and ends them all: nobody is left to read on."""
        for conversation, running in self._running.items():
            self._worker.call("save_message", self._trees[conversation][running.message])
            running.reply.leave()
        self._running.clear()

    # Answers

    def _answer(self, question: str) -> None:
        conversation, tree = self.current, self.tree
        assert conversation is not None
        assert tree is not None
        turns = [Turn(m.role, m.content, tuple(p.data for p in m.images)) for m in tree.branch(question) if not m.error]
        answer = Message(new_id(), conversation.id, question, "assistant", "", created=time.time())
        tree.add(answer)
        self._worker.call("save_message", answer)
        self._change(conversation.id, head=answer.id, updated=answer.created)
        reply = self._engine.generate(
            turns,
            system=conversation.system_prompt,
            sampling=sampling_of(conversation.preset),
            thinking=conversation.thinking,
        )
        key = conversation.id
        self._running[key] = Running(reply, answer.id, time.monotonic())
        reply.progressed.connect(lambda done, total: self._on_progress(key, done, total))
        reply.arrived.connect(lambda thought, text: self._on_text(key, thought, text))
        reply.finished.connect(lambda finished: self._on_finished(key, finished))
        reply.failed.connect(lambda error: self._on_failed(key, error))
        self.messages_changed.emit(True)
        self.rows_changed.emit()
        self.running_changed.emit()
        # A request that waits in the queue sends no events: after a moment the message itself says that it waits.
        QTimer.singleShot(PATIENCE_MS, self, partial(self.message_changed.emit, answer.id))

    def _on_progress(self, key: str, done: int, total: int) -> None:
        running = self._running[key]
        running.progress = (done, total)
        self.message_changed.emit(running.message)

    def _on_text(self, key: str, thought: str, text: str) -> None:
        running = self._running[key]
        tree = self._trees[key]
        message = tree[running.message]
        message = tree.update(message.id, content=message.content + text, thinking=message.thinking + thought)
        if running.take(thought, text):
            self._worker.call("save_message", message)
        self.message_changed.emit(message.id)

    def _on_finished(self, key: str, finished: Finished) -> None:
        running = self._running.pop(key)
        self._settle(key, running.message, numbers=running.numbers(finished))

    def _on_failed(self, key: str, error: EngineError) -> None:
        running = self._running.pop(key)
        self._settle(key, running.message, error=error.message, numbers={"code": error.code})

    def _settle(self, key: str, message_id: str, **values: object) -> None:
        message = self._trees[key].update(message_id, **values)
        self._worker.call("save_message", message)
        self.message_changed.emit(message_id)
        self.rows_changed.emit()
        self.running_changed.emit()

    # What is kept

    def _create(self, title: str) -> None:
        now = time.time()
        self.current = Conversation(new_id(), title, now, now)
        self._conversations[self.current.id] = self.current
        self._trees[self.current.id] = MessageTree([], None)
        self._worker.call("save_conversation", self.current)

    def _change(self, conversation: str, **values: object) -> None:
        changed = replace(self._conversations[conversation], **values)  # type: ignore[arg-type]
        self._conversations[conversation] = changed
        if self.current is not None and self.current.id == conversation:
            self.current = changed
        self._worker.call("save_conversation", changed)

    def _item(self, tree: MessageTree, message: Message, last: bool) -> ChatItem:
        running = self._running.get(message.conversation)
        return chat_item(
            message,
            siblings=[sibling.id for sibling in tree.siblings(message.id)],
            running=running if running is not None and running.message == message.id else None,
            unfolded=message.id in self._unfolded,
            numbered=message.id in self._numbered,
            last=last,
        )

    def _announce_open(self) -> None:
        self.opened.emit()
        self.rows_changed.emit()
        self.running_changed.emit()

    def _on_loaded(self, conversations: list[Conversation]) -> None:
        for conversation in conversations:
            self._conversations.setdefault(conversation.id, conversation)
        self.rows_changed.emit()

    def _on_found(self, conversations: list[Conversation]) -> None:
        self._found = [conversation.id for conversation in conversations]
        self.rows_changed.emit()

    def _on_messages(self, conversation: str, messages: list[Message]) -> None:
        head = self._conversations[conversation].head if conversation in self._conversations else None
        self._trees.setdefault(conversation, MessageTree(messages, head))
        if self.current is not None and self.current.id == conversation:
            self._announce_open()

    def _on_store_failure(self, reason: str) -> None:
        self.failed.emit(tr("chat.store_failed", reason=reason))
