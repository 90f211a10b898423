"""The engine's door: load, submit, cancel, snapshot, close.

One thread owns every tensor and runs the loop; everything else talks to it through a queue of commands and gets frozen
messages back.
"""

from __future__ import annotations

import atexit
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from PIL import Image

from engine.checks import check_request
from engine.config import EngineConfig
from engine.device import choose_device, choose_dtype, choose_threads, describe
from engine.images import prepare_image
from engine.loader import Loaded, load_model
from engine.memory.disk_tier import DiskTier
from engine.memory.keeper import Keeper
from engine.memory.reserve import lift
from engine.memory.stored import StoredState
from engine.messages import (
    BusyError,
    EngineError,
    EngineSnapshot,
    Failed,
    GenerateRequest,
    ImageInput,
    ModelInfo,
    Prompt,
    Request,
    RequestError,
    SamplingParams,
    Tokens,
)
from engine.schedule.job import Job
from engine.schedule.scheduler import Scheduler
from engine.state import StateBoard, figures
from engine.stream import Stream
from engine.text.tokenizer import Tokenizer

_log = logging.getLogger(__name__)
_PUBLISH_EVERY = 1 / 30
_IDLE_WAIT = 0.5
"""Seconds an idle loop sleeps before it refreshes the rates it publishes."""

Command = tuple[Literal["submit"], Job, StoredState | None] | tuple[Literal["cancel", "park", "release"], str]


class Engine:
    """One model on one device. See docs/architecture.md for the threads that may call what."""

    def __init__(self, config: EngineConfig | None = None) -> None:
        self.config = config or EngineConfig()
        self._commands: deque[Command] = deque()
        self._wake = threading.Condition()
        self._board = StateBoard()
        self._started = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._loaded: Loaded | None = None
        self._requests: dict[str, Job] = {}
        """Requests that have not ended, by id."""
        self._disk: DiskTier | None = None
        self._keeper: Keeper | None = None
        self._retry_after = 1.0
        self._published = 0.0

    @classmethod
    def load(cls, path: str | Path | None = None, **config: Any) -> Engine:
        """Load a checkpoint folder (None: the bundled Ember) and return when it is ready.

        ``config`` are fields of :class:`EngineConfig`. Raises ``EngineError`` with the reason when it cannot be loaded.
        """
        engine = cls(EngineConfig(model=None if path is None else Path(path), **config))
        engine.start()
        try:
            engine.wait_ready()
        except BaseException:
            engine.close()
            raise
        return engine

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """:meth:`run` in a thread of its own. Raises ``EngineError`` when the engine was started before."""
        self._begin()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        atexit.register(self.close)  # torch aborts a process that ends while a thread is inside it
        self._thread.start()

    def run(self) -> None:
        """Load, then serve until :meth:`close`. The calling thread owns every tensor from here on.

        A fault is not raised: it is state "failed" with its reason, and every open request gets it as its end.
        Raises ``EngineError`` when the engine was started before: an engine runs once.
        """
        self._begin()
        self._run()

    def wait_ready(
        self, timeout: float | None = None, on_progress: Callable[[EngineSnapshot], None] | None = None
    ) -> None:
        """Return when the engine is ready.

        Raises:
            EngineError: it failed (with its reason) or was closed.
            TimeoutError: ``timeout`` seconds passed.
        """
        self._board.wait_ready(timeout, on_progress)

    def close(self, timeout: float | None = 10.0) -> None:
        """End every request as cancelled, free all and stop the loop. Returns when the engine's own thread is gone, or
        after ``timeout`` seconds."""
        with self._wake:
            self._closing = True
            if not self._started:
                self._board.enter("closed")
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
            atexit.unregister(self.close)

    # --- requests --------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> Stream:
        """Queue a request.

        Raises:
            RequestError: it can never work as it stands (says why).
            BusyError: the queue of its class is full, or the engine is not ready; ``retry_after`` says when to come
                again.
        """
        (outcome,) = self.submit_all([request])
        if isinstance(outcome, EngineError):
            raise outcome
        return outcome

    def submit_all(self, requests: Sequence[Request]) -> list[Stream | EngineError]:
        """Queue requests together: the loop takes them up at one time, so that those with room share their rounds.

        Returns a stream each, or what :meth:`submit` would have raised for it; a fault keeps out its own request only.
        """
        outcomes: list[Stream | EngineError] = []
        jobs: list[tuple[int, Job, StoredState | None]] = []
        for place, request in enumerate(requests):
            try:
                job = check_request(request, self._ready(), self.config, self.cancel)
                self._check_room(job)
                # Read in the caller's thread: the loop never waits for a disk.
                jobs.append((place, job, self._from_disk(job)))
                outcomes.append(job.stream)
            except EngineError as error:
                outcomes.append(error)
        with self._wake:
            for place, job, found in jobs:
                try:
                    self._check_room(job)
                except EngineError as error:
                    outcomes[place] = error
                    continue
                self._requests[job.request.id] = job
                self._commands.append(("submit", job, found))
            self._wake.notify()
        return outcomes

    def _check_room(self, job: Job) -> None:
        request, limit = job.request, self.config.queue_limit
        with self._wake:
            if self._closing:
                raise BusyError("The engine is closing.", code="closing")
            same = self._requests.get(request.id)
            if same is not None and not same.stream.ended:
                raise RequestError(f"A request with the id {request.id!r} is running already.", code="duplicate_id")
            waiting = sum(
                not other.stream.begun and other.request.request_class == request.request_class
                for other in self._requests.values()
            )
            if waiting >= limit:
                raise BusyError(
                    f"{limit} {request.request_class} requests are waiting already; try again in "
                    f"{self._retry_after:.0f} s.",
                    retry_after=self._retry_after,
                )

    def cancel(self, request_id: str) -> None:
        """End a request within one round; does nothing when it has ended."""
        self._command(("cancel", request_id))

    def park(self, request_id: str) -> None:
        """Make an agent's running request give its lane to whoever waits; it goes on by itself, where it stood. Does
        nothing when it has ended or has no lane yet.

        Raises ``RequestError`` for an interactive request: these are never parked.
        """
        with self._wake:
            job = self._requests.get(request_id)
        if job is not None and job.request.request_class != "agent":
            raise RequestError(
                "Only requests of class agent can be parked; cancel this one instead.", code="not_an_agent"
            )
        self._command(("park", request_id))

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
        return self._board.snapshot

    @property
    def info(self) -> ModelInfo:
        return self._ready().info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._ready().tokenizer

    @property
    def loaded(self) -> Loaded:
        """Everything about the model that needs no tensor: configuration, tokenizer, template, heads, limits."""
        return self._ready()

    def sampling_defaults(self, thinking: bool = False) -> SamplingParams:
        """The checkpoint's own defaults."""
        return self._ready().sampling_defaults(thinking)

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
        return self._ready().chat_prompt(messages, tools=tools, enable_thinking=enable_thinking)

    def prepare_image(self, source: bytes | Image.Image) -> ImageInput:
        """Decode, check and size a picture for this model. Raises ``RequestError``."""
        return prepare_image(source, self._ready().image_limits())

    # --- the engine's thread ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        with self._wake:
            if self._started:
                raise EngineError("An engine runs once; make another one.", code="already_started")
            self._started = True

    def _run(self) -> None:
        try:
            scheduler = self._load()
            self._loop(scheduler)
            self._board.enter("closed")
        except EngineError as error:
            if self._closing:
                self._board.enter("closed")
            else:
                self._board.fail(error.message)
        except Exception as error:
            _log.exception("the engine failed")
            self._board.fail(f"{type(error).__name__}: {error}")
        finally:
            self._loaded = None
            self._end_streams()
            if self._disk is not None:
                self._disk.close()

    def _load(self) -> Scheduler:
        threads = choose_threads(self.config)
        torch.set_num_threads(threads)
        device = choose_device(self.config)
        if device.type == "cuda":
            lift()  # an engine before this one has left its budget as the limit
        dtype = choose_dtype(self.config, device)
        self._board.enter("planning", device=describe(device, dtype, threads))

        def progress(done: int, total: int, _name: str) -> None:
            self._board.enter("loading", "reading weights", progress=done / total)
            if self._closing:
                raise EngineError("The engine was closed while loading.")

        def planned(**fields: Any) -> None:
            self._board.enter("loading", "reading weights", progress=0.0, **fields)

        loaded, network, layout = load_model(self.config, device, dtype, on_plan=planned, on_progress=progress)
        if self.config.disk_tier is not None:
            stretched = loaded.config.text.rope.yarn_factor
            identity = f"{loaded.info.content_hash} {dtype} {device.type} {stretched} {layout.kv_format}"
            self._disk = DiskTier(
                self.config.disk_tier,
                limit=self.config.disk_tier_bytes,
                block=self.config.page_size,
                identity=identity,
            )
        scheduler = Scheduler(network, loaded.tokenizer, self.config, layout, self._disk)
        if device.type == "cuda":
            self._board.enter("loading", "preparing the card", progress=None)
            network.prepare(self.config.prefill_chunk)
            scheduler.prepare()
        self._keeper = scheduler.lanes.keeper
        self._loaded = loaded
        self._board.enter("ready", progress=None, **figures(scheduler, time.monotonic()))
        return scheduler

    def _loop(self, scheduler: Scheduler) -> None:
        while self._take_commands(scheduler):
            scheduler.step()
            self._publish(scheduler)
        self._board.enter("draining")
        scheduler.cancel_all()
        scheduler.lanes.keeper.save()
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
                scheduler.add(command[1], command[2])
            elif command[0] == "cancel":
                scheduler.cancel(command[1])
            elif command[0] == "park":
                scheduler.park(command[1])
            else:
                scheduler.lanes.release(command[1])
        return not closing

    def _publish(self, scheduler: Scheduler, *, force: bool = False) -> None:
        now = time.monotonic()
        if not force and scheduler.busy and now - self._published < _PUBLISH_EVERY:
            return
        self._published = now
        self._retry_after = scheduler.retry_after(now)
        with self._wake:
            for request_id in [i for i, job in self._requests.items() if job.stream.ended]:
                del self._requests[request_id]
        self._board.enter(self._board.snapshot.state, **figures(scheduler, now))

    def _end_streams(self) -> None:
        """Nothing is left waiting for an engine that is gone."""
        with self._wake:
            self._closing = True
            self._commands.clear()
            streams = [job.stream for job in self._requests.values()]
            self._requests.clear()
        reason = self._board.snapshot.reason or "The engine was closed."
        for stream in streams:
            if not stream.ended:
                stream.put(Failed(EngineError(reason, code="engine_closed")))

    # --- helpers ---------------------------------------------------------------------------------------------

    def _from_disk(self, job: Job) -> StoredState | None:
        """Kept state of the job's prompt that lies on disk, if it is longer than what is in memory."""
        if self._disk is None or self._keeper is None or not job.chain:
            return None
        ids, pictures, limit = job.request.prompt.ids, job.picture_keys, job.most_reused
        known = self._keeper.find(ids, job.chain, pictures, limit=limit)
        shorter = known.tokens if known is not None else 0
        return self._disk.fetch(ids, job.chain, pictures, limit=limit, longer_than=shorter)

    def _command(self, command: Command) -> None:
        with self._wake:
            self._commands.append(command)
            self._wake.notify()

    def _ready(self) -> Loaded:
        loaded, snapshot = self._loaded, self._board.snapshot
        if loaded is not None and snapshot.state == "ready":
            return loaded
        if snapshot.state == "failed":
            raise EngineError(f"The engine failed: {snapshot.reason}", code="engine_failed")
        raise BusyError(f"The engine is not ready (it is {snapshot.state}); try again soon.", code="not_ready")


def new_id(kind: str) -> str:
    """A fresh request id, e.g. "chat-5f0c…"."""
    return f"{kind}-{secrets.token_hex(12)}"


__all__ = ["Engine", "new_id"]
