"""The QThread that owns the engine, and the only way panels reach it.

Nothing here makes the window wait: prompts are prepared in a small pool, answers arrive as signals, what the status
bar and the panels show are the engine's own snapshots.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image
from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal

from engine import Engine
from engine.answers.point import Screen
from engine.config import EngineConfig
from engine.engine import new_id
from engine.messages import (
    EngineError,
    EngineSnapshot,
    Failed,
    Finished,
    GenerateRequest,
    ModelInfo,
    Prefilled,
    Started,
    Tokens,
    label_of,
)
from engine.stream import Stream
from engine.text.thinking import OPEN as THINK_OPEN
from engine.text.thinking import Split, ThinkingSplitter
from ignis_desktop.deciding import decide_request
from ignis_desktop.jobs import Job, Jobs
from ignis_desktop.log_file import Asked, LogFile, Rows, ask
from ignis_desktop.planning import Planned, WhatIf, cannot_run, plan_what_if
from ignis_desktop.store.settings import WindowSettings

log = logging.getLogger(__name__)

SNAPSHOT_MS = 50
"""How often a new snapshot may reach the panels: 20 a second."""
LIVE_MS = 33
"""The same while somebody watches the lanes: 30 a second."""
BATCH_SECONDS = 0.05
"""How long text is gathered before an answer's signal: 20 a second."""
_TAIL = 8
"""Tokens at a prompt's end among which a template opens a block of reasoning."""


@dataclass(frozen=True)
class Turn:
    """One message of a conversation. ``images`` are encoded files."""

    role: str
    text: str
    images: tuple[bytes, ...] = ()


class Reply(QObject):
    """One answer on its way: ``progressed``* , ``arrived``*, then exactly one ``finished`` or ``failed``."""

    progressed = Signal(int, int)
    """Prompt tokens read, prompt tokens in all."""
    arrived = Signal(str, str)
    """More reasoning, more text."""
    finished = Signal(object)
    """``Finished``"""
    failed = Signal(object)
    """``EngineError``"""
    _submitted = Signal(object, object)
    _rung = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._stream: Stream | None = None
        self._splitter = ThinkingSplitter()
        self._cancelled = False
        self._ended = False
        self._last_read = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._read)
        self._submitted.connect(self._take_stream, Qt.ConnectionType.QueuedConnection)
        self._rung.connect(self._on_ring, Qt.ConnectionType.QueuedConnection)

    def cancel(self) -> None:
        """Ends the answer within one round; ``finished`` follows with reason "cancelled"."""
        self._cancelled = True
        if self._stream is not None:
            self._stream.cancel()

    def leave(self) -> None:
        """Cancels it, and tells nobody any more: whoever listened is about to go."""
        for signal in (self.progressed, self.arrived, self.finished, self.failed):
            signal.disconnect()
        self.cancel()

    def submit(self, make: Callable[[], tuple[Stream, bool]]) -> None:
        """In the pool: prepares the prompt and queues the request. ``make`` also tells whether the prompt has opened
        a block of reasoning already."""
        try:
            stream, opened = make()
        except EngineError as error:
            self._submitted.emit(None, error)
        except Exception as error:
            log.exception("preparing a prompt")
            self._submitted.emit(None, EngineError(f"{type(error).__name__}: {error}"))
        else:
            self._splitter = ThinkingSplitter(opened=opened)
            self._submitted.emit(stream, None)

    def _take_stream(self, stream: Stream | None, error: EngineError | None) -> None:
        if stream is None:
            self._end(self.failed, error)
            return
        self._stream = stream
        if self._cancelled:
            stream.cancel()
        # Called in the engine's thread: all it does is post an event to the window's.
        stream.notify(self._rung.emit)

    def _on_ring(self) -> None:
        wait = BATCH_SECONDS - (time.monotonic() - self._last_read)
        if wait <= 0:
            self._read()
        elif not self._timer.isActive():
            self._timer.start(round(wait * 1000))

    def _read(self) -> None:
        if self._stream is None or self._ended:
            return
        self._last_read = time.monotonic()
        text: list[str] = []
        end: Finished | Failed | None = None
        for event in self._stream.poll():
            if isinstance(event, Tokens):
                text.append(event.text)
            elif isinstance(event, Prefilled):
                self.progressed.emit(event.done, event.total)
            elif isinstance(event, Started):
                self.progressed.emit(0, 0)
            elif isinstance(event, Finished | Failed):
                end = event
        split = self._splitter.push("".join(text))
        self._give(split)
        if end is not None:
            self._give(self._splitter.flush())
        if isinstance(end, Finished):
            self._end(self.finished, end)
        elif isinstance(end, Failed):
            self._end(self.failed, end.error)

    def _give(self, split: Split) -> None:
        if split.reasoning or split.content:
            self.arrived.emit(split.reasoning, split.content)

    def _end(self, signal: Any, value: object) -> None:
        self._ended = True
        signal.emit(value)
        self.deleteLater()


class EngineThread(QThread):
    """Owns one engine after the other: ``restart`` closes the one that runs and loads the next."""

    snapshot_changed = Signal(object)
    """``EngineSnapshot``, at most 20 a second (30 after ``set_live``), only when the engine published a new one."""
    engine_replaced = Signal(object)
    """The new ``Engine``, before it loads."""

    def __init__(self, config: EngineConfig, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("engine")
        self.engine = Engine(config)
        self._next: Engine | None = None
        self._stopping = False
        self._seen: EngineSnapshot | None = None
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prepare")
        self.jobs = Jobs(self)
        self._timer = QTimer(self, interval=SNAPSHOT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._publish)
        self._timer.start()
        self.finished.connect(self._start_next)

    def run(self) -> None:
        """In the thread of its own: loads and serves until the engine is closed or fails."""
        self.engine.run()

    @property
    def snapshot(self) -> EngineSnapshot:
        return self.engine.snapshot()

    @property
    def info(self) -> ModelInfo | None:
        """What is loaded; None until the engine is ready."""
        return self.engine.info if self.snapshot.state == "ready" else None

    def plan(self, wanted: WhatIf) -> Planned:
        """What memory the engine would take with some options changed; takes a few milliseconds.

        Raises ``EngineError`` when there is no such plan, however much memory there was.
        """
        return plan_what_if(self.engine.config, wanted, self.snapshot.memory_plan)

    def cannot_run(self, wanted: WhatIf) -> str:
        """Why the engine cannot be loaded like this although it can be planned; "" when it can."""
        return cannot_run(self.engine.config, wanted)

    def set_live(self, on: bool) -> None:
        """Whether somebody watches the lanes: then snapshots come more often."""
        self._timer.setInterval(LIVE_MS if on else SNAPSHOT_MS)

    def cancel(self, request_id: str) -> None:
        """Ends a request within one round, whoever asked for it; does nothing when it has ended."""
        self.engine.cancel(request_id)

    def park(self, request_id: str) -> None:
        """Makes a running agent give its lane to whoever waits. Raises ``RequestError`` for an interactive request."""
        self.engine.park(request_id)

    def restart(self, config: EngineConfig) -> None:
        """Closes the engine (what runs ends as cancelled) and loads again with ``config``. Returns at once."""
        self._next = Engine(config)
        self.engine_replaced.emit(self._next)
        if self.isRunning():
            self.engine.close(0.0)
        else:
            self._start_next()

    def _start_next(self) -> None:
        if self._next is not None and not self._stopping:
            self.engine, self._next = self._next, None
            self.start()

    def stop(self, timeout: float = 10.0) -> bool:
        """Closes the engine and ends the thread; False when it did not end in ``timeout`` seconds."""
        self._stopping = True
        self._timer.stop()
        self.engine.close(0.0)
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.jobs.close()
        return self.wait(round(timeout * 1000))

    def generate(
        self, turns: Sequence[Turn], *, system: str = "", sampling: dict[str, Any] | None = None, thinking: bool = False
    ) -> Reply:
        """Starts an answer to ``turns``. ``sampling`` replaces some of the checkpoint's own defaults
        (``SamplingParams`` fields)."""
        reply = Reply(self)
        engine = self.engine

        def make() -> tuple[Stream, bool]:
            messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
            messages += [_message(engine, turn) for turn in turns]
            prompt = engine.chat_prompt(messages, enable_thinking=thinking)
            params = replace(engine.sampling_defaults(thinking), **(sampling or {}))
            label = label_of(turns[-1].text)
            opened = engine.tokenizer.decode(list(prompt.ids[-_TAIL:])).rstrip().endswith(THINK_OPEN)
            request = GenerateRequest(new_id("chat"), prompt, params, client="window", label=label or "picture")
            return engine.submit(request), opened

        self._pool.submit(reply.submit, make)
        return reply

    def check_image(self, data: bytes) -> Job:
        """Decodes and sizes a picture as the model will see it; ``done`` brings the ``ImageInput``."""
        job = Job(self)
        engine = self.engine
        self._pool.submit(job.run, lambda _: engine.prepare_image(data))
        return job

    def open_log(self, path: Path) -> Job:
        """Opens a log and finds its lines; ``done`` brings the ``LogFile``. Progress counts bytes."""
        return self.jobs.start(lambda job: LogFile(path, job.tell))

    def fold_log(self, log: LogFile) -> Job:
        """Finds a log's templates. Progress counts bytes."""
        return self.jobs.start(lambda job: log.fold(job.tell))

    def count_log(self, log: LogFile) -> Job:
        """Estimates how many tokens a log has. The model must be loaded."""
        tokenizer = self.engine.tokenizer
        return self.jobs.start(lambda _job: log.count_tokens(lambda text: len(tokenizer.encode(text))))

    def locate(self, log: LogFile, question: str, rows: Rows | None = None) -> Job:
        """Finds the line of a log, or of some rows of it, that answers; ``done`` brings what was ``Asked``. Progress
        counts tokens."""
        engine = self.engine

        def work(job: Job) -> Asked:
            return ask(engine, log, question, rows, job.tell, lambda: job.cancelled)

        return self.jobs.start(work)

    def open_screen(self, image: Image.Image) -> Job:
        """Encodes a screenshot (RGB); ``done`` brings the ``Screen``. Progress counts tokens."""
        engine = self.engine

        def work(job: Job) -> Screen:
            return Screen.open(
                engine,
                engine.prepare_image(image),
                source=image,
                client="window",
                on_progress=job.tell,
                cancelled=lambda: job.cancelled,
            )

        return self.jobs.start(work)

    def point(self, screen: Screen, question: str) -> Job:
        """Finds something on an encoded screenshot; ``done`` brings the ``PointAnswer``."""
        return self.jobs.start(lambda job: screen.point(question, client="window", cancelled=lambda: job.cancelled))

    def decide(self, request: str) -> Job:
        """Answers a decide request, given as JSON; ``done`` brings ``answers``, ``usage`` and ``ms``."""
        engine = self.engine
        return self.jobs.start(lambda job: decide_request(engine, request, lambda: job.cancelled))

    def _publish(self) -> None:
        snapshot = self.engine.snapshot()
        if snapshot is not self._seen:
            self._seen = snapshot
            self.snapshot_changed.emit(snapshot)


def engine_config(values: WindowSettings) -> EngineConfig:
    """How to run the engine, from what is set in the window."""
    chosen: dict[str, Any] = {
        "model": Path(values.model) if values.model else None,
        "threads": values.threads,
        "max_context": values.max_context,
        "lanes": values.lanes,
        "kv_format": values.kv_format or None,
        "yarn": values.yarn,
        "headroom": _mebibytes(values.headroom),
        "host_tier": _mebibytes(values.host_tier),
    }
    return EngineConfig(**{name: value for name, value in chosen.items() if value is not None})


def _mebibytes(count: int | None) -> int | None:
    return None if count is None else count << 20


def _message(engine: Engine, turn: Turn) -> dict[str, Any]:
    if not turn.images:
        return {"role": turn.role, "content": turn.text}
    parts: list[dict[str, Any]] = [{"type": "image", "image": engine.prepare_image(data)} for data in turn.images]
    if turn.text:
        parts.append({"type": "text", "text": turn.text})
    return {"role": turn.role, "content": parts}
