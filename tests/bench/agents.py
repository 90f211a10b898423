"""One main agent with three sub-agents at real work, recorded: python -m tests.bench.agents OUT.jsonl [--model …]

The main agent is asked to look through the logs of tests/data. For each round it writes what is to be looked for, and
three sub-agents, who share a system block, read one log each: excerpt by excerpt, as a tool would hand them over,
noting after each what they saw and reporting in the end. The main agent gets the reports and sums up, while the
person who asked puts in questions. Ember answers everything; the recorder of ``ignis bench record`` stands in
between.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

from ignis_desktop.bench.client import LoadClient
from ignis_desktop.bench.process import serving
from ignis_desktop.bench.record import recording
from ignis_desktop.bench.trace import chat_message, write_trace
from ignis_desktop.bench.watch import wait_ready
from ignis_desktop.cli.options import EngineOptions

LOGS = Path(__file__).resolve().parents[1] / "data" / "logs"
ORIGIN = (
    "a main agent and three sub-agents reading the logs of tests/data/logs, asked and answered by Ember "
    "(tests/bench/agents.py, recorded by ignis bench record)"
)
ROUNDS = (("postgresql", "redis", "sshd"), ("nginx-access", "dpkg", "postgresql"), ("redis", "sshd", "nginx-access"))
EXCERPTS, LINES = 6, 6
"""Excerpts that a sub-agent reads in a round, and log lines of each."""
NOTE_TOKENS, REPORT_TOKENS, PLAN_TOKENS, SUMMARY_TOKENS, REPLY_TOKENS = 40, 80, 64, 120, 48
QUESTION_SECONDS = 5.0
"""How long after a round began the person asks something."""

MAIN_SYSTEM = """You lead the night shift of a small operations team. Three colleagues read logs for you; you cannot
read them yourself. When you are given names of logs, say in one or two sentences what each colleague should look out
for: errors, refused or failed logins, requests that were not answered, services that stopped or were started again,
anything that repeats more often than it should. When you are given reports, put them together: first what needs a
person tonight, then what can wait until the morning, then what is only worth knowing. Name the log that each point
comes from. Do not repeat what two reports say alike, and do not guess at causes that no report names. When the person
on duty asks you something in between, answer briefly from what you know so far, and say plainly when you do not know
yet."""

SUB_SYSTEM = """You read one log of a server for the leader of the night shift. You get it excerpt by excerpt, in
order, each as the result of a tool. After each excerpt write a short note: what happened in it, with the time and the
name of the service, user or address it happened to. One or two sentences are enough. If nothing in an excerpt stands
out, say so in three words and wait for the next one. Keep an eye on what repeats: the same address that comes again
and again, the same user that is refused, the same query that fails. Ordinary messages about connections, checkpoints,
saves, packages that were installed and pages that were delivered do not need a note. Times are written as the log
writes them. Never make up a line that is not there, never leave out an error because it looks small, and do not
explain what a program is or does: the leader knows. After the last excerpt you are asked for a report. It has at most
four sentences: the most important event first, then what repeated, then what you could not make sense of. Do not
number the sentences, do not greet, do not close with an offer of help. The leader reads three such reports at once,
so every word that says nothing takes time from one that does. If the whole log was quiet, the report is a single
sentence that says so and names the first and the last time you have read."""

QUESTIONS = (
    "Has anybody tried to break in?",
    "Which service should I look at first?",
    "Do I have to wake the database administrator?",
    "Was anything restarted tonight?",
    "How many different addresses were refused?",
    "What can wait until tomorrow?",
)

Message = dict[str, str]


class Speaker:
    """One conversation with the model."""

    def __init__(self, url: str, key: str, name: str, request_class: str, system: str) -> None:
        headers = {"authorization": f"Bearer {key}", "user-agent": name}
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=600, trust_env=False)
        self._class = request_class
        self.messages: list[Message] = [{"role": "system", "content": system}]

    async def say(self, role: str, content: str, tokens: int) -> str:
        """The answer to one more message; both become part of the conversation."""
        self.messages.append(chat_message(role, content))
        body = {"messages": self.messages, "max_tokens": tokens, "class": self._class}
        answer = await self._http.post("/v1/chat/completions", json=body)
        answer.raise_for_status()
        text = str(answer.json()["choices"][0]["message"]["content"])
        self.messages.append({"role": "assistant", "content": text})
        return text

    def forget(self) -> None:
        """Begin anew with the same system block."""
        del self.messages[1:]

    async def close(self) -> None:
        await self._http.aclose()


def excerpts(name: str, number: int) -> list[str]:
    """A round's part of a log."""
    lines = (LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines()
    start = number * len(lines) // len(ROUNDS)
    return ["\n".join(lines[at : at + LINES]) for at in range(start, start + EXCERPTS * LINES, LINES)]


async def look_through(agent: Speaker, name: str, number: int, order: str) -> str:
    """A sub-agent's task: read a part of a log, report."""
    agent.forget()
    parts = excerpts(name, number)
    await agent.say("user", f"The log is {name}.log. The leader says: {order}\n\n{parts[0]}", NOTE_TOKENS)
    for part in parts[1:]:
        await agent.say("tool", part, NOTE_TOKENS)
    return await agent.say("user", "That was the last excerpt. Write your report.", REPORT_TOKENS)


async def work(url: str, key: str) -> None:
    main = Speaker(url, key, "main", "interactive", MAIN_SYSTEM)
    agents = [Speaker(url, key, f"sub-agent-{number}", "agent", SUB_SYSTEM) for number in range(3)]
    questions = iter(QUESTIONS)
    for number, names in enumerate(ROUNDS):
        order = await main.say("user", f"Next logs: {', '.join(names)}. What shall they look out for?", PLAN_TOKENS)
        tasks = [
            asyncio.create_task(look_through(agent, name, number, order))
            for agent, name in zip(agents, names, strict=True)
        ]
        for question in (next(questions), next(questions)):
            await asyncio.sleep(QUESTION_SECONDS)
            await main.say("user", question, REPLY_TOKENS)
        reports = await asyncio.gather(*tasks)
        told = "\n\n".join(f"{name}: {report}" for name, report in zip(names, reports, strict=True))
        await main.say("tool", told, SUMMARY_TOKENS)
    for speaker in (main, *agents):
        await speaker.close()


async def record(out: Path, url: str, key: str) -> None:
    async with LoadClient(url, key) as client:
        model = (await wait_ready(client)).raw["model"]
    async with recording(url, key, 0) as (recorder, address):
        await work(address, key)
    write_trace(out, recorder.trace(ORIGIN, model))
    print(f"{len(recorder.seen)} requests in {out}, {recorder.unrecorded} left out")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", help="model to answer (default: Ember)")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args(arguments)
    with serving(EngineOptions(model=given.model, threads=given.threads)) as target:
        assert target.key is not None, "a server that was started here has a key"
        asyncio.run(record(given.out, target.url, target.key))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
