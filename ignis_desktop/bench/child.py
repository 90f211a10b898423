"""``python -m ignis_desktop.bench.child JSON``: an engine and a server in a process of their own, to be measured.

Engine and server are started as ``ignis serve`` starts them, on a port of the system's choice and behind a key. The
first line on standard output says where: ``{"url", "key", "pid"}``. Each line on standard input asks for ``usage``,
which is answered by one line. The process ends when its standard input does, so that it never outlives who started it.
"""

from __future__ import annotations

import gc
import json
import secrets
import sys
import threading
from collections import Counter
from typing import Any

import psutil

from ignis_desktop.cli.engine_process import engine_running, server_running
from ignis_desktop.cli.errors import FAULT, CommandError
from ignis_desktop.cli.options import EngineOptions


def main(argument: str) -> int:
    from ignis_desktop.server.settings import Settings

    options = EngineOptions(**json.loads(argument))
    key = secrets.token_urlsafe(32)
    try:
        with engine_running(options) as engine:
            settings = Settings(port=0, api_key=key, advertise=False, max_body_bytes=1 << 30)
            with server_running(engine, settings) as server:
                _say({"url": server.url, "key": key, "pid": psutil.Process().pid})
                for _ in sys.stdin:
                    _say(usage())
    except CommandError as fault:
        _say({"error": fault.message})
        return FAULT
    return 0


def usage() -> dict[str, Any]:
    """What this process holds and has used: processor seconds as a whole and by thread, threads by name, connections,
    open files, resident bytes, and objects that stand for requests."""
    from engine.schedule.job import Job
    from engine.stream import Stream
    from ignis_desktop.server.bridge import EventReader

    gc.collect()
    process = psutil.Process()
    with process.oneshot():
        times = process.cpu_times()
        names = {thread.native_id: thread.name for thread in threading.enumerate()}
        spent: Counter[str] = Counter()
        for thread in process.threads():
            spent[_family(names.get(thread.id, "native"))] += thread.user_time + thread.system_time
        resident = process.memory_info().rss
    kinds = (Stream, EventReader, Job)
    alive = {kind.__name__: 0 for kind in kinds}
    for thing in gc.get_objects():
        if type(thing) in kinds:  # isinstance would wake the proxies that libraries put among the objects
            alive[type(thing).__name__] += 1
    return {
        "processor_seconds": times.user + times.system,
        "thread_seconds": dict(spent),
        "threads": dict(sorted(Counter(_family(name) for name in names.values()).items())),
        "native_threads": process.num_threads() - len(names),
        "connections": len(process.net_connections("tcp")),
        "files": process.num_fds() if hasattr(process, "num_fds") else None,
        "resident_bytes": resident,
        "alive": alive,
    }


def _family(name: str) -> str:
    """A thread pool's name without the number of its thread."""
    return name.rstrip("0123456789").rstrip("_-")


def _say(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201  # the protocol


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
