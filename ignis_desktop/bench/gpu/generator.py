"""``python -m ignis_desktop.bench.gpu.generator JSON``: streams from a process of their own, so that reading them takes
nothing from the server that is measured. The argument is ``{"url", "key"}``."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from ignis_desktop.bench.client import Ask, LoadClient
from ignis_desktop.bench.cpu.lines import answer, claim_output, say
from ignis_desktop.bench.load import decode_rate
from ignis_desktop.bench.prompts import PromptMaker
from ignis_desktop.bench.watch import wait_idle, wait_ready


class Generator:
    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key

    def ready(self) -> dict[str, Any]:
        """Return when the server serves."""
        return asyncio.run(self._ready())

    def streams(self, count: int, prompt: int, tokens: int, seed: int) -> dict[str, Any]:
        """So many streams at once, each of exactly so many tokens."""
        return asyncio.run(self._streams(count, prompt, tokens, seed))

    async def _ready(self) -> dict[str, Any]:
        async with LoadClient(self._url, self._key) as client:
            return {"lanes": len((await wait_ready(client)).lanes)}

    async def _streams(self, count: int, prompt: int, tokens: int, seed: int) -> dict[str, Any]:
        async with LoadClient(self._url, self._key) as client:
            maker = await PromptMaker.create(client)
            drawn = random.Random(f"streams {seed}")
            asks = [Ask(await maker.chat(drawn, prompt), tokens, seed=number) for number in range(count)]
            await wait_idle(client)
            outcomes = await asyncio.gather(*map(client.ask, asks))
            await wait_idle(client)
        errors = [outcome.error for outcome in outcomes if outcome.status != "ok"]
        whole = [outcome for outcome in outcomes if len(outcome.pieces) > 1]
        return {
            "errors": errors,
            "tokens_per_second": decode_rate(outcomes) if not errors and len(whole) == count else 0.0,
            "first_seconds": [outcome.first_seconds for outcome in whole],
            "gaps": [gap for outcome in whole for gap in outcome.gaps],
            "tokens": sum(outcome.output_tokens for outcome in outcomes),
            "prompt_tokens": [outcome.prompt_tokens for outcome in outcomes],
        }


def main(argument: str) -> int:
    output = claim_output()
    generator = Generator(**json.loads(argument))
    try:
        say(output, generator.ready())
    except Exception as fault:
        say(output, {"error": str(fault)})
        return 1
    answer(output, {"streams": generator.streams})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
