"""``stamp.py COMMAND...``: its two streams in the CRI log format: time, stream, F for a full line, text."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import IO


def pump(name: str, stream: IO[bytes]) -> None:
    for line in stream:
        now = time.time_ns()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
        with LOCK:
            sys.stdout.buffer.write(b"%s.%09dZ %s F %s" % (stamp.encode(), now % 10**9, name.encode(), line))


LOCK = threading.Lock()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
threads = [threading.Thread(target=pump, args=pair) for pair in [("stdout", child.stdout), ("stderr", child.stderr)]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
