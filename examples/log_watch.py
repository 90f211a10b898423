"""Watches a log and asks every new part of it a standing question; says, or does, something when it is answered.

    ignis serve
    python examples/log_watch.py /var/log/auth.log "a login was refused" --run "notify-send Login"

Follows the file as it grows, also when it is rotated away, cut short or not there yet. The local server finds the lines
that come nearest to the question, and then judges each: those with --least or more are printed, and --run is started
with the line as its last argument (no shell sees it). Ask in words that the line will have: the bundled model knows few
others. Needs the package httpx. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import httpx

PIECE = 200_000
"""Characters that are asked about at once."""
READ = 8 << 20
"""Bytes that are read at once; what is more than that waits in the file."""
TOP = 5
"""Lines of a piece that may answer."""


class WatchError(Exception):
    """One sentence for the person who runs the script."""


class Unavailable(WatchError):
    """The server cannot answer now and may do so later."""


class Follower:
    """New lines of a file by its path, whichever file that is."""

    def __init__(self, path: Path, *, from_start: bool = False) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._left: IO[bytes] | None = None
        """A file that was rotated away: its writer may not have noticed yet."""
        self._pending = b""
        self._open()
        if self._file is not None and not from_start:
            self._file.seek(0, os.SEEK_END)

    def lines(self) -> list[str]:
        """Whole lines since the last call. The end of a line may come later; of a file, the last line is whole."""
        found: list[bytes] = []
        if self._left is not None:
            found += self._left.read().splitlines()
            self._left.close()
            self._left = None
        if self._file is None:
            self._open()
        if self._file is not None:
            found += self._read(self._file)
            if self._is_gone(self._file):
                found += [self._pending] if self._pending else []
                self._left, self._pending = self._file, b""
                self._open()
        return [line.decode("utf-8", "replace") for line in found]

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._file, self._left):
            if file is not None:
                file.close()

    def _open(self) -> None:
        try:
            self._file = self._path.open("rb")
        except FileNotFoundError:
            self._file = None
        except OSError as error:
            raise WatchError(f"{self._path} cannot be read: {error.strerror}.") from error

    def _read(self, file: IO[bytes]) -> list[bytes]:
        if os.fstat(file.fileno()).st_size < file.tell():  # cut short and begun again
            file.seek(0)
            self._pending = b""
        *whole, self._pending = (self._pending + file.read(READ)).split(b"\n")
        return [line.removesuffix(b"\r") for line in whole]

    def _is_gone(self, file: IO[bytes]) -> bool:
        own = os.fstat(file.fileno())
        if file.tell() < own.st_size:
            return False  # not read to its end yet
        try:
            return not os.path.samestat(os.stat(self._path), own)
        except FileNotFoundError:
            return False  # between renaming the old file and making the new one


class Server:
    """Asks as an agent: people's requests go first."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def answers(self, text: str, question: str, least: float) -> list[tuple[str, float]]:
        """The lines of a text that answer, best first, each with how likely it does."""
        found = []
        nearest = self._decide(text, {"type": "locate", "kind": "log", "instructions": question, "top": TOP})
        for rank in nearest["ranking"] if nearest["found"] else []:
            line = rank["value"]
            judged = self._decide(
                line, {"type": "noul", "instructions": f"Is this mentioned: {question.rstrip('?.')}?"}
            )
            if judged["noul"] < least:
                break
            found.append((line, judged["noul"]))
        return found

    def _decide(self, state: str, question: dict[str, object]) -> dict:
        body = {"state": state, "questions": {"watch": question}, "class": "agent"}
        try:
            reply = self._client.post("/v1/decide", json=body)
        except httpx.HTTPError as error:
            where = self._client.base_url
            raise Unavailable(f"No answer from {where} ({error}); start it with: ignis serve") from error
        if reply.status_code >= 500:
            raise Unavailable(f"The server cannot answer now ({reply.status_code}).")
        if reply.is_error:
            raise WatchError(reply.json()["error"]["message"])
        answer = reply.json()["answers"]["watch"]
        if "error" in answer:
            raise Unavailable(answer["error"]["message"])
        return answer


def pieces(lines: list[str]) -> Iterator[list[str]]:
    """Lines in groups of up to ``PIECE`` characters; one that is longer stands alone."""
    group: list[str] = []
    size = 0
    for line in lines:
        if group and size + len(line) > PIECE:
            yield group
            group, size = [], 0
        group.append(line)
        size += len(line) + 1
    if group:
        yield group


def act(command: list[str], line: str) -> None:
    try:
        done = subprocess.run([*command, line], check=False)
    except OSError as error:
        raise WatchError(f"{command[0]} cannot be run: {error.strerror}.") from error
    if done.returncode:
        print(f"{command[0]} ended with {done.returncode}", file=sys.stderr, flush=True)


def watch(follower: Follower, server: Server, arguments: argparse.Namespace) -> None:
    """Until the process is ended. What the server could not be asked is asked again."""
    command = shlex.split(arguments.run or "")
    waiting: list[str] = []
    complained = False
    while True:
        # While the server is away, what is new stays in the file.
        waiting = waiting or [line for line in follower.lines() if line.strip()]
        try:
            for group in list(pieces(waiting)):
                for line, likely in server.answers("\n".join(group), arguments.question, arguments.least):
                    print(f"{likely:.0%} {line}", flush=True)
                    if command:
                        act(command, line)
                waiting = waiting[len(group) :]
            complained = False
        except Unavailable as error:
            if not complained:
                print(error, file=sys.stderr, flush=True)
            complained = True
        time.sleep(arguments.every)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, help="the file; it need not be there yet")
    parser.add_argument("question", help='what to look for: "a login was refused"')
    parser.add_argument("--run", metavar="COMMAND", help="started with each line that answers as its last argument")
    parser.add_argument("--least", type=float, default=0.98, help="least likelihood to count (default: %(default)s)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between looks (default: %(default)s)")
    parser.add_argument("--from-start", action="store_true", help="ask about what is there already, too")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the server (default: %(default)s)")
    parser.add_argument("--key", default=os.environ.get("IGNIS_API_KEY"), help="its API key, if it has one")
    arguments = parser.parse_args()
    headers = {"Authorization": f"Bearer {arguments.key}"} if arguments.key else {}
    try:
        with (
            Follower(arguments.log, from_start=arguments.from_start) as follower,
            httpx.Client(base_url=arguments.url, headers=headers, timeout=600, trust_env=False) as client,
        ):
            print(f"watching {arguments.log}", file=sys.stderr, flush=True)
            watch(follower, Server(client), arguments)
    except WatchError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
