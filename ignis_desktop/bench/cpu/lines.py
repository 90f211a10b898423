"""The workers' side of the exchange: a line of JSON asks, a line of JSON answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TextIO

Handler = Callable[..., dict[str, Any]]


def claim_output() -> TextIO:
    """Standard output for the answers alone: what libraries print goes to standard error from now on."""
    output = sys.stdout
    sys.stdout = sys.stderr
    return output


def say(output: TextIO, value: dict[str, Any]) -> None:
    output.write(json.dumps(value) + "\n")
    output.flush()


def answer(output: TextIO, handlers: dict[str, Handler]) -> None:
    """Answer ``{"do": name, …}`` lines with what the handler of that name gives, until the input ends.

    A fault is an answer too: ``{"error": sentence}``.
    """
    for line in sys.stdin:
        request = json.loads(line)
        try:
            say(output, handlers[request.pop("do")](**request))
        except Exception as fault:
            say(output, {"error": f"{type(fault).__name__}: {fault}"})
