"""The engine's door: load, submit, cancel, snapshot, close.

One thread owns every tensor and runs the loop; everything else talks to it through a queue of commands and gets frozen
messages back.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import psutil
import torch
from PIL import Image

from engine.checks import check_request
from engine.config import EngineConfig
from engine.device import choose_device, choose_dtype, choose_threads, describe
from engine.images import prepare_image
from engine.loader import Loaded, load_model
from engine.messages import (
    BusyError,
    EngineError,
    EngineSnapshot,
    EngineState,
    Failed,
    GenerateRequest,
    ImageInput,
    ModelInfo,
    Prompt,
    Request,
    SamplingParams,
    Tokens,
)
from engine.schedule.job import Job
from engine.schedule.scheduler import Scheduler
from engine.stream import Stream
from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)
_PUBLISH_EVERY = 1 / 30
_IDLE_WAIT = 0.5
"""Seconds an idle loop sleeps before it refreshes the rates it publishes."""

Command = tuple[Literal["submit"], Job] | tuple[Literal["cancel", "release"], str]


class Engine:
    """One model on one device. See docs/architecture.md for the threads that may call what."""

    def __init__(self, config: EngineConfig | None = None) -> None:
        self.config = config or EngineConfig()
        self._commands: deque[Command] = deque()
        self._wake = threading.Condition()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._loaded: Loaded | None = None
        self._scheduler: Scheduler | None = None
        self._streams: dict[str, Stream] = {}
        self._snapshot = EngineSnapshot("empty")
        self._published = 0.0
        self._process = psutil.Process()

    @classmethod
    def load(cls, path: str | Path | None = None, **config: Any) -> Engine:
        """Load a checkpoint folder (None: the bundled Ember) and return when it is ready.

        ``config`` are fields of :class:`EngineConfig`. Raises ``EngineError`` with the reason when it cannot be loaded.
        """
        engine = cls(EngineConfig(model=None if path is None else Path(path), **config))
        engine.start()
        engine.wait_ready()
        return engine

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """:meth:`run` in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="engine", daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Load, then serve until :meth:`close`. The calling thread owns every tensor from here on.

        Never raises: a fault is state "failed" with its reason, and every open request gets it as its end.
        """
        try:
            self._load()
            self._loop()
            self._enter("closed")
        except EngineError as error:
            self._enter("failed", error.message)
        except Exception as error:
            _log.exception("the engine failed")
            self._enter("failed", f"{type(error).__name__}: {error}")
        finally:
            self._end_streams()
            self._scheduler = None
            self._loaded = None

    def wait_ready(
        self, timeout: float | None = None, on_progress: Callable[[EngineSnapshot], None] | None = None
    ) -> None:
        """Return when the engine is ready.

        Raises:
            EngineError: it failed (with its reason) or was closed.
            TimeoutError: ``timeout`` seconds passed.
        """
        until = None if timeout is None else time.monotonic() + timeout
        shown: EngineSnapshot | None = None
        while True:
            with self._changed:
                if self._snapshot is shown:
                    self._changed.wait(0.1)
                snapshot = self._snapshot
            if snapshot.state == "ready":
                return
            if snapshot.state == "failed":
                raise EngineError(snapshot.reason)
            if snapshot.state in ("draining", "closed"):
                raise EngineError("The engine was closed before it was ready.")
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"The engine was not ready after {timeout} s.")
            if on_progress is not None and snapshot is not shown:
                on_progress(snapshot)
            shown = snapshot

    def close(self, timeout: float | None = 10.0) -> None:
        """End every request as cancelled, free all and stop the loop. Returns when the engine's own thread is gone."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        elif self._snapshot.state == "empty":
            self._enter("closed")

    # --- requests --------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> Stream:
        """Queue a request.

        Raises:
            RequestError: it can never work as it stands (says why).
            BusyError: the queue is full, or the engine is not ready.
        """
        loaded, scheduler = self._ready()
        stream = Stream(request.id, self.cancel)
        job = check_request(request, stream, loaded, scheduler)
        with self._wake:
            if self._closing:
                raise BusyError("The engine is closing.", code="closing")
            if request.id in self._streams:
                raise EngineError(f"A request with the id {request.id!r} is running already.", code="duplicate_id")
            if len(scheduler.queue) + len(self._commands) >= self.config.queue_limit:
                raise BusyError(f"{self.config.queue_limit} requests are waiting already; try again soon.")
            self._streams[request.id] = stream
            self._commands.append(("submit", job))
            self._wake.notify()
        return stream

    def cancel(self, request_id: str) -> None:
        """End a request within one round; does nothing when it has ended."""
        self._command(("cancel", request_id))

    def release(self, prefix: str) -> None:
        """Drop a retained prefix; does nothing when it is gone."""
        self._command(("release", prefix))

    def chat(
        self, messages: str | Sequence[Mapping[str, Any]], *, enable_thinking: bool | None = None, **sampling: Any
    ) -> Iterator[str]:
        """The answer to a chat, piece by piece. ``sampling`` are fields of :class:`SamplingParams`.

        Leaving the iterator early cancels the request.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        prompt = self.chat_prompt(messages, enable_thinking=enable_thinking)
        params = replace(self.sampling_defaults(bool(enable_thinking)), **sampling)
        stream = self.submit(GenerateRequest(new_id("chat"), prompt, params, client="python"))
        try:
            for event in stream:
                if isinstance(event, Tokens) and event.text:
                    yield event.text
                elif isinstance(event, Failed):
                    raise event.error
        finally:
            stream.cancel()

    # --- what is loaded --------------------------------------------------------------------------------------

    def snapshot(self) -> EngineSnapshot:
        return self._snapshot

    @property
    def info(self) -> ModelInfo:
        return self._ready()[0].info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._ready()[0].tokenizer

    @property
    def loaded(self) -> Loaded:
        """Everything about the model that needs no tensor: configuration, tokenizer, template, heads, limits."""
        return self._ready()[0]

    def sampling_defaults(self, thinking: bool = False) -> SamplingParams:
        """The checkpoint's own defaults."""
        return self._ready()[0].sampling_defaults(thinking)

    def text_prompt(self, text: str) -> Prompt:
        """Plain text; special tokens in it stay text."""
        return Prompt(tuple(self.tokenizer.encode(text)))

    def chat_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        enable_thinking: bool | None = None,
    ) -> Prompt:
        """Messages in OpenAI's shape through the checkpoint's chat template.

        Image parts are ``{"type": "image", "image": ImageInput}``. Raises ``RequestError`` for anything the template
        cannot take.
        """
        return self._ready()[0].chat_prompt(messages, tools=tools, enable_thinking=enable_thinking)

    def prepare_image(self, source: bytes | Image.Image) -> ImageInput:
        """Decode, check and size a picture for this model. Raises ``RequestError``."""
        return prepare_image(source, self._ready()[0].image_limits())

    # --- the engine's thread ---------------------------------------------------------------------------------

    def _load(self) -> None:
        threads = choose_threads(self.config)
        torch.set_num_threads(threads)
        device = choose_device(self.config)
        dtype = choose_dtype(self.config, device)
        self._enter("planning", device=describe(device, dtype, threads))

        def progress(done: int, total: int, _name: str) -> None:
            self._enter("loading", "reading weights", progress=done / total)
            if self._closing:
                raise EngineError("The engine was closed while loading.")

        def planned(**fields: Any) -> None:
            self._enter("loading", "reading weights", progress=0.0, **fields)

        loaded, network, layout = load_model(self.config, device, dtype, on_plan=planned, on_progress=progress)
        self._scheduler = Scheduler(
            network, loaded.tokenizer, self.config, pages=layout.pages, cache=layout.vision_cache
        )
        self._loaded = loaded
        self._enter("ready", progress=None)

    def _loop(self) -> None:
        scheduler = self._scheduler
        assert scheduler is not None
        while self._take_commands(scheduler):
            scheduler.step()
            self._publish(scheduler)
        self._enter("draining")
        scheduler.cancel_all()
        self._publish(scheduler, force=True)

    def _take_commands(self, scheduler: Scheduler) -> bool:
        """Carry out what was asked for; wait when there is nothing to do. False when the engine is to close."""
        with self._wake:
            if not self._commands and not scheduler.busy and not self._closing:
                self._wake.wait(_IDLE_WAIT)
            commands = list(self._commands)
            self._commands.clear()
            closing = self._closing
        for command in commands:
            if command[0] == "submit":
                scheduler.add(command[1])
            elif command[0] == "cancel":
                scheduler.cancel(command[1])
            else:
                scheduler.release(command[1])
        return not closing

    def _publish(self, scheduler: Scheduler, *, force: bool = False) -> None:
        now = time.monotonic()
        if not force and scheduler.busy and now - self._published < _PUBLISH_EVERY:
            return
        self._published = now
        with self._wake:
            for request_id in [i for i, stream in self._streams.items() if stream.ended]:
                del self._streams[request_id]
        counters = scheduler.counters
        self._enter(
            self._snapshot.state,
            lanes=scheduler.lanes(now),
            queued_interactive=scheduler.queue.count("interactive"),
            queued_agent=scheduler.queue.count("agent"),
            pages_total=scheduler.pages.total,
            pages_free=scheduler.pages.free,
            retained=len(scheduler.retained),
            decode_tokens_per_second=scheduler.decode_rate.value(now),
            prefill_tokens_per_second=scheduler.prefill_rate.value(now),
            rounds=counters.rounds,
            tokens_generated=counters.tokens_generated,
            tokens_prefilled=counters.tokens_prefilled,
            requests_finished=counters.finished,
            requests_failed=counters.failed,
            requests_cancelled=counters.cancelled,
            resident_bytes=self._process.memory_info().rss,
        )

    def _enter(self, state: EngineState, reason: str = "", **fields: Any) -> None:
        """Publish a snapshot: the newest one with these fields changed."""
        snapshot = replace(self._snapshot, state=state, reason=reason, time=time.monotonic(), **fields)
        with self._changed:
            self._snapshot = snapshot
            self._changed.notify_all()

    def _end_streams(self) -> None:
        """Nothing is left waiting for an engine that is gone."""
        with self._wake:
            self._closing = True
            self._commands.clear()
            streams = list(self._streams.values())
            self._streams.clear()
        reason = self._snapshot.reason or "The engine was closed."
        for stream in streams:
            if not stream.ended:
                stream.put(Failed(EngineError(reason, code="engine_closed")))

    # --- helpers ---------------------------------------------------------------------------------------------

    def _command(self, command: Command) -> None:
        with self._wake:
            self._commands.append(command)
            self._wake.notify()

    def _ready(self) -> tuple[Loaded, Scheduler]:
        loaded, scheduler, snapshot = self._loaded, self._scheduler, self._snapshot
        if loaded is not None and scheduler is not None and snapshot.state == "ready":
            return loaded, scheduler
        if snapshot.state == "failed":
            raise EngineError(f"The engine failed: {snapshot.reason}", code="engine_failed")
        raise BusyError(f"The engine is not ready (it is {snapshot.state}); try again soon.", code="not_ready")


def new_id(kind: str) -> str:
    """A fresh request id, e.g. "chat-5f0c…"."""
    return f"{kind}-{secrets.token_hex(12)}"


__all__ = ["Engine", "new_id"]
