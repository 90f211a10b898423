"""A queue worker whose faults are real: written to standard output and error of a container. See capture.sh."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
import traceback

RNG, SMALL = random.Random(3), os.environ["SMALL"]
CITIES = ["Oslo", "Lima", "Graz", "Turku", "Porto", "Busan", "Ghent", "Quito"]


def say(level: str, text: str) -> None:
    print(f"level={level} worker={RNG.randrange(1, 5)} {text}")


def ordinary(count: int) -> None:
    for _ in range(count):
        job, city = RNG.randrange(10_000, 99_999), RNG.choice(CITIES)
        say(
            "info",
            RNG.choice(
                [
                    f'msg="parcel {job} to {city} labelled" ms={RNG.randrange(3, 90)}',
                    f'msg="route for {city} computed" stops={RNG.randrange(4, 40)} km={RNG.randrange(9, 300)}',
                    f'msg="job {job} acknowledged" attempt=1',
                    f'msg="heartbeat" queue={RNG.randrange(0, 60)} rss_mb={RNG.randrange(40, 60)}',
                ]
            ),
        )
        time.sleep(RNG.random() / 25)


def attempt(what: str, step) -> None:
    try:
        step()
    except Exception:
        say("error", f'msg="{what}"')
        traceback.print_exc()


def disk() -> None:
    with open(os.path.join(SMALL, "parcels.bin"), "wb") as file:
        file.write(b"x" * (4 << 20))


def silent() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    peer = socket.create_connection(server.getsockname(), 1)
    peer.settimeout(0.5)
    peer.recv(1)


def dropped() -> None:
    a, b = socket.socketpair()
    b.close()
    for _ in range(2):
        a.sendall(b"label")


def recursion() -> None:
    tree: list = []
    tree.append(tree)
    json.dumps(tree)


def busy_file() -> None:
    sqlite3.connect(":memory:").execute("insert into parcels values (1)")


def too_many() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, hard))
    try:
        with contextlib.ExitStack() as held:
            for _ in range(40):
                held.enter_context(open(__file__))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def helper(command: list[str]) -> None:
    subprocess.run(command, check=True, timeout=1)


def tls() -> None:
    context = ssl.create_default_context()
    context.load_verify_locations("/no/such/ca.pem")


def thread() -> None:
    done = threading.Thread(target=lambda: {}["tariff-2027"], name="tariff-loader")
    done.start()
    done.join()


def memory() -> None:
    bytearray(1 << 62)


say("info", f'msg="worker set starts" python={sys.version.split()[0]} pid={os.getpid()}')
for what, step in [
    ("address book not reachable", lambda: socket.create_connection(("127.0.0.1", 5432), 1)),
    ("host of the carrier unknown", lambda: socket.getaddrinfo("carrier.invalid", 443)),
    ("label printer keeps quiet", silent),
    ("scanner hung up", dropped),
    ("parcel list not stored", disk),
    ("tour tree cannot be written", recursion),
    ("ledger refuses the entry", busy_file),
    ("weights not readable", lambda: float("12,5 kg")),
    ("no more files can be opened", too_many),
    ("optimiser missing", lambda: helper(["/usr/bin/optimise", "--fast"])),
    ("optimiser gave up", lambda: helper(["/bin/sh", "-c", "echo solver: infeasible >&2; exit 4"])),
    ("map renderer stuck", lambda: helper(["/bin/sleep", "9"])),
    ("carrier certificate store missing", tls),
    ("tariffs not loaded", thread),
    ("statistics too large", memory),
    ("customs form incomplete", lambda: {"sender": 1}["recipient"]),
]:
    ordinary(40)
    attempt(what, step)
say("warn", 'msg="config reloaded" changed=3 ignored="max_prallel"')
ordinary(40)
signal.signal(signal.SIGTERM, lambda *_: say("warn", 'msg="asked to stop, finishing 3 jobs"'))
os.kill(os.getpid(), signal.SIGTERM)
ordinary(6)
say("info", 'msg="bye"')
