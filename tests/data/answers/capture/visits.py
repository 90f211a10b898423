"""Visitors of web.py: ordinary ones, and in between each fault once or twice."""

from __future__ import annotations

import contextlib
import random
import sys
import time
import urllib.error
import urllib.request

PORT, RNG = int(sys.argv[1]), random.Random(11)
FAULTS = [
    "GET /item/999",
    "POST /basket/7 amount=three",
    "POST /order/1204",
    "GET /lock",
    "GET /export",
    "GET /rates",
    "GET /discount/100",
]
FAULTS += [
    "GET /thumbnail",
    "GET /slow",
    "GET /template",
    "GET /import",
    "GET /settings",
    "DELETE /item/5",
    "GET /admin.php",
]


def ask(line: str) -> None:
    method, path, *form = line.split()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", method=method)
    request.add_header("User-Agent", RNG.choice(["Firefox/128.0", "curl/7.88.1", "shop-app/3.1", "Googlebot/2.1"]))
    if form:
        request.data = form[0].encode()
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        urllib.request.urlopen(request, timeout=8).read()


order = 1200
for fault in FAULTS:
    for _ in range(RNG.randrange(18, 30)):
        kind = RNG.randrange(3)
        if kind == 0:
            order += 1
        ask(
            [
                f"POST /order/{order}",
                f"GET /item/{RNG.randrange(1, 60)}?visitor={RNG.randrange(9000)}",
                f"POST /basket/{RNG.randrange(1, 400)} amount={RNG.randrange(1, 9)}",
            ][kind]
        )
        time.sleep(RNG.random() / 20)
    ask(fault)
