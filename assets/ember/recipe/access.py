"""Web servers' access logs: many lines that differ in a method, a status or a program, asked by what that means."""

from __future__ import annotations

import random
import time
from collections import Counter

from .logs import Document, unique
from .values import Values

METHODS = {
    "GET": (),
    "POST": ("something was sent to the server", "a form was handed in", "data was submitted"),
    "PUT": ("a file was put in place", "something was stored on the server", "contents were replaced"),
    "DELETE": ("something was to be removed", "somebody wanted a thing gone from the site", "a removal was asked for"),
    "HEAD": ("only the headers were wanted", "somebody asked without wanting the contents"),
    "OPTIONS": ("it was asked what is allowed", "a browser asked before the real request"),
    "PATCH": ("a part was altered", "a small change was sent"),
}
STATUSES = {
    200: (),
    201: ("something new was made", "a thing came into being", "the creation worked"),
    204: ("it worked and nothing came back", "success without contents"),
    206: ("only a part was delivered", "a download was continued"),
    301: ("the page has moved for good", "a lasting new address was told"),
    302: ("the visitor was sent elsewhere for now", "a detour to another page"),
    304: ("nothing had changed since the last visit", "the visitor's copy was still good"),
    400: ("the server did not understand what it was asked", "a garbled question to the server"),
    401: ("the visitor had to say who it is first", "credentials were wanted"),
    403: ("the visitor was not allowed to see it", "a locked area", "access was denied"),
    404: ("the page does not exist", "nothing was found there", "a dead address"),
    405: ("this way of asking is not allowed there", "the verb is not permitted on that page"),
    409: ("it clashed with something that is there", "two changes got in each other's way"),
    410: ("the page was taken away on purpose", "it existed once and is gone"),
    413: ("what was sent was too heavy", "it exceeded what may be uploaded"),
    415: ("the server does not take that sort of data", "an unsuitable format was sent"),
    429: ("the visitor asked too often", "somebody was slowed down"),
    500: ("the program behind the site broke", "an error inside the server"),
    502: ("the service behind answered nonsense or not at all", "the back end was down"),
    503: ("the site could not serve anybody just then", "overload or maintenance"),
    504: ("the service behind took too long", "the back end ran out of time"),
}
AGENTS = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0": (),
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36": (),
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 Version/17.5 Safari/605.1.15": (),
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Mobile/15E148 Safari/604.1": (
        "somebody came with an Apple telephone",
        "a visitor on the move with a phone",
    ),
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/126.0 Mobile Safari/537.36": ("a Google phone was used",),
    "curl/8.5.0": ("somebody asked from a command line", "no browser but a terminal tool"),
    "Wget/1.21.4": ("a downloader fetched it", "a tool that saves pages came by"),
    "python-requests/2.32.3": ("a script asked", "a Python program fetched it"),
    "Go-http-client/2.0": ("a program in Go asked",),
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)": ("Microsoft's crawler came by",),
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)": ("a Russian crawler came by",),
    "Prometheus/2.53.0": ("the monitoring asked for figures", "measurements were collected"),
    "kube-probe/1.30": ("the cluster checked whether it is alive", "a health check knocked"),
    "Nikto/2.5.0": ("somebody looked for weak spots", "a scanner for holes"),
    "Lynx/2.9.0": ("a text browser was used",),
}
FRAMES = (
    "Which request was it where {c}?",
    "When did it happen that {c}?",
    "Which visit shows that {c}?",
    "Where does the log show that {c}?",
    "Which line says that {c}?",
    "Who was it: {c}?",
    "In which request do we see that {c}?",
    "{c}",
    "find the request where {c}",
)
MOSTLY = (200, 200, 200, 304, 200, 206, 302)


def access_document(rng: random.Random, count: int, words: list[str], *, wanted: int) -> Document:
    """About ``count`` requests, most of them alike; those that stand out are asked by what makes them stand out."""
    values = Values(rng, words)
    drawn = [values.draw() for _ in range(30)]
    paths = [rng.choice(("/{word}", "/{word}/{word2}", "/{word}/{n}", "/{word}.html")).format(**v) for v in drawn[:12]]
    plain = [agent for agent, said in AGENTS.items() if not said]
    when, rows, lines = rng.randint(1_500_000_000, 1_800_000_000), [], []
    for _ in range(count):
        when += rng.choice((0, 0, 1, 1, 2, 5, 30))
        odd = rng.random() < 0.12
        method = rng.choice(list(METHODS)) if odd and rng.random() < 0.4 else "GET"
        status = rng.choice(list(STATUSES)) if odd and rng.random() < 0.6 else rng.choice(MOSTLY)
        agent = rng.choice(list(AGENTS)) if odd and rng.random() < 0.5 else rng.choice(plain)
        path = f"/{drawn[rng.randrange(12, 30)]['word']}/{rng.randint(1, 9999)}" if odd else rng.choice(paths)
        stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(when))
        ip, size = drawn[rng.randrange(30)]["ip"], rng.randint(120, 90_000)
        lines.append(f'{ip} - - [{stamp}] "{method} {path} HTTP/1.1" {status} {size} "-" "{agent}"')
        rows.append((method, status, agent, path))
    document = Document(lines)
    facets: tuple[dict, ...] = (METHODS, STATUSES, AGENTS)
    counts = [Counter(row[i] for row in rows) for i in range(3)]
    asked: list[tuple[str, int | None]] = []
    for index, row in enumerate(rows):
        for i, table in enumerate(facets):
            if counts[i][row[i]] == 1 and table[row[i]]:
                asked.append((rng.choice(table[row[i]]), index))
        if rng.random() < 0.4 and unique(lines, index, [row[3]]):
            asked.append((f"somebody asked for {row[3].rsplit('/', 1)[-1]} of {row[3].split('/')[1]}", index))
    absent = [
        rng.choice(said) for i, table in enumerate(facets) for key, said in table.items() if said and not counts[i][key]
    ]
    asked += [(clause, None) for clause in rng.sample(absent, min(len(absent), max(1, wanted // 6)))]
    for clause, answer in rng.sample(asked, min(len(asked), wanted)):
        document.questions.append((rng.choice(FRAMES).format(c=clause), answer))
    return document
