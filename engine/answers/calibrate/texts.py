"""Texts made here, with questions about single lines: labelled material for choosing locating heads.

Logs, records and notes from templates. A question is asked in other words than its line where that can be, and no
other line of the text answers it.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

NAMES = ("anna", "bilal", "chen", "dora", "emil", "fatou", "goran", "hana", "ines", "jonas", "kira", "luis", "mona")
HOSTS = ("web1", "db2", "cache3", "mail", "proxy", "build7", "files", "auth", "queue", "edge4")
TOWNS = ("Bergen", "Porto", "Lyon", "Graz", "Turku", "Gdansk", "Siena", "Leeds", "Ghent", "Split", "Basel", "Cork")
GOODS = ("lamps", "chairs", "bicycles", "kettles", "carpets", "printers", "tents", "violins", "helmets", "mirrors")

EVENTS = (
    ("{host} disk /dev/sd{digit} is {high}% full", "Which line says that storage on {host} is nearly used up?"),
    ("{host} login of {name} refused: wrong password", "Where was {name} not let in?"),
    ("{host} backup finished in {number} s", "When did {host} complete its backup?"),
    (
        "{host} connection to {other} timed out after {number} ms",
        "Which line says {host} could not reach {other}?",
    ),
    ("{host} certificate expires in {digit} days", "Where is it said that a certificate of {host} runs out soon?"),
    ("{host} service restarted by {name}", "Who restarted the service on {host}?"),
    ("{host} temperature {high} C, fan at full speed", "Which line says that {host} is hot?"),
    ("{host} queue holds {number} messages", "How many messages wait on {host}?"),
    ("{host} out of memory, killed process {number}", "Where did {host} run out of memory?"),
    ("{host} configuration reloaded", "When was the configuration of {host} read again?"),
    ("{host} user {name} added to group admins", "Which line says that {name} became an administrator?"),
    ("{host} packet loss {digit}% to {other}", "Where is packet loss between {host} and {other} reported?"),
)
NOTES = (
    ("{Name} moved to {town} and opened a bakery there.", "What does {Name} do in {town}?"),
    ("The train from {town} was {digit} hours late.", "What happened to the train from {town}?"),
    ("{Name} sold {number} {goods} at the market.", "What did {Name} sell?"),
    ("In {town} it rained for {digit} days without a break.", "How was the weather in {town}?"),
    ("{Name} lost the keys of the archive in {town}.", "Who lost the keys?"),
    ("The museum of {town} shows old {goods} until June.", "What can be seen in the museum of {town}?"),
    ("{Name} paid {number} crowns for a set of {goods}.", "How much did {Name} spend on {goods}?"),
    ("Nobody in {town} remembers the name of the bridge.", "What has been forgotten in {town}?"),
)
ABSENT = (
    "Which line says that the printer has no paper?",
    "Where is an earthquake reported?",
    "Which line mentions a stolen bicycle in the harbour?",
    "Who ordered coffee for the board?",
    "Where was a database table dropped?",
    "Which line says that the elevator is out of order?",
)


@dataclass(frozen=True)
class Document:
    lines: tuple[str, ...]
    questions: tuple[tuple[str, int], ...]
    """(question, index of the line that answers)."""
    absent: tuple[str, ...]
    """Questions that no line answers."""


def make_documents(count: int, seed: int) -> list[Document]:
    """``count`` different documents, always the same for a seed: logs, records and notes in turn."""
    rng = random.Random(seed)
    makers = (_log, _records, _notes)
    return [makers[number % len(makers)](rng) for number in range(count)]


def _values(rng: random.Random) -> dict[str, str]:
    name, (host, other) = rng.choice(NAMES), rng.sample(HOSTS, 2)
    return {
        "name": name,
        "Name": name.title(),
        "host": host,
        "other": other,
        "town": rng.choice(TOWNS),
        "goods": rng.choice(GOODS),
        "digit": str(rng.randint(2, 9)),
        "high": str(rng.randint(81, 99)),
        "number": str(rng.randint(20, 9000)),
    }


def _filled(rng: random.Random, templates: tuple[tuple[str, str], ...], count: int) -> list[tuple[str, str]]:
    """(line, question) pairs of which no two ask the same."""
    found: dict[str, str] = {}
    while len(found) < count:
        line, question = rng.choice(templates)
        values = _values(rng)
        found.setdefault(question.format(**values), line.format(**values))
    return [(line, question) for question, line in found.items()]


def _asked(rng: random.Random, lines: list[str], pairs: list[tuple[str, str]]) -> Document:
    chosen = rng.sample(range(len(pairs)), min(6, len(pairs)))
    questions = tuple((pairs[number][1], number) for number in chosen)
    return Document(tuple(lines), questions, tuple(rng.sample(ABSENT, 2)))


def _log(rng: random.Random) -> Document:
    pairs = _filled(rng, EVENTS, rng.randint(24, 40))
    second = rng.randint(0, 50_000)
    lines = []
    for line, _ in pairs:
        second += rng.randint(1, 90)
        hour, minute = divmod(second // 60, 60)
        lines.append(f"2025-03-{1 + hour // 24:02} {hour % 24:02}:{minute:02}:{second % 60:02} {line}")
    return _asked(rng, lines, pairs)


def _records(rng: random.Random) -> Document:
    places = rng.sample([(name, town) for name in NAMES for town in TOWNS], rng.randint(20, 32))
    lines, pairs = [], []
    for number, (name, town) in enumerate(places):
        goods = rng.choice(GOODS)
        record = {"id": 100 + number, "customer": name, "city": town, "item": goods, "count": rng.randint(1, 60)}
        lines.append(json.dumps(record))
        pairs.append((lines[-1], f"How many {goods} did {name} order to {town}?"))
    return _asked(rng, lines, pairs)


def _notes(rng: random.Random) -> Document:
    pairs = _filled(rng, NOTES, rng.randint(20, 32))
    return _asked(rng, [line for line, _ in pairs], pairs)
