"""Random JSON schemas of what grammars support, and values of their own kind to check answers with."""

from __future__ import annotations

import random
from typing import Any

WORDS = ("path", "old", "new", "count", "flag", "naïve", "a b", 'quo"te', "x-1", "深")


def random_schema(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    """A schema whose values are short as a rule, so that random models get to their end."""
    kinds = ["string", "number", "enum", "boolean", "null", "integer"]
    if depth:
        kinds += ["object", "array", "anyOf", "object", "array"]
    kind = rng.choice(kinds)
    if kind == "object":
        return random_object(rng, depth - 1)
    if kind == "array":
        least = rng.randint(0, 2)
        return {
            "type": "array",
            "items": random_schema(rng, depth - 1),
            "minItems": least,
            "maxItems": least + rng.randint(0, 2),
        }
    if kind == "anyOf":
        return {"anyOf": [random_schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]}
    if kind == "enum":
        return {"enum": rng.sample(["red", "a\nb", 3, 2.5, None, True, "", "<b>", "ü"], rng.randint(1, 4))}
    if kind == "string":
        return _string(rng)
    if kind in ("integer", "number"):
        return _number(rng, kind)
    return {"type": kind}


def random_object(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    names = rng.sample(WORDS, rng.randint(0, 4))
    return {
        "type": "object",
        "properties": {name: random_schema(rng, depth) for name in names},
        "required": [name for name in names if rng.random() < 0.6],
        "additionalProperties": False,
    }


def _string(rng: random.Random) -> dict[str, Any]:
    limits: list[dict[str, Any]] = [
        {"maxLength": rng.randint(0, 12)},
        {"minLength": 2, "maxLength": 5},
        {"pattern": r"^[a-z]{2,8}$"},
        {"pattern": r"^v\d+\.\d{1,2}$"},
        {"format": rng.choice(["date", "uuid", "ipv4", "time", "date-time"])},
    ]
    return {"type": "string", **rng.choice(limits)}


def _number(rng: random.Random, kind: str) -> dict[str, Any]:
    least = rng.randint(-20, 20)
    limits: list[dict[str, Any]] = [
        {},
        {"minimum": least, "maximum": least + rng.randint(0, 30)},
        {"exclusiveMinimum": least, "exclusiveMaximum": least + 2},
    ]
    return {"type": kind, **rng.choice(limits)}
