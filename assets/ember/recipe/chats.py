"""Conversations written by the teacher: half start from its own idea of a user, half from templated requests.

Run: ``python -m assets.ember.recipe.chats --teacher FILE.gguf --tokenizer tokenizer.json --seconds 30 --out
chats.npy``.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import numpy as np
import torch

from .events import events
from .shape import Words
from .teacher import Teacher
from .values import SYLLABLES

SYSTEM = "<|im_start|>system\nYou are Ember, a small helpful assistant.<|im_end|>\n"
"""The system turn of the program's own chats (``chat_template.jinja``), for the teacher too."""
REQUESTS = (
    "What is {w}?",
    "What is a {w}?",
    "Explain {w} in simple terms.",
    "Write a short story about {w} and {v}.",
    "Give me three tips about {w}.",
    "What is the difference between {w} and {v}?",
    "Write a poem about {w}.",
    "What does this log line mean? {e}",
    "Summarise this: {e}",
    "Write a Python function that handles {w}.",
    "List five facts about {w}.",
    "Hi! Can you help me with {w}?",
    "How do I use {w}?",
    "Who invented {w}?",
    "Rewrite this politely: give me the {w} now.",
    "Is {w} the same as {v}?",
    "Why is {w} important?",
    "Describe {w} in one sentence.",
    "Hello!",
    "Who are you?",
    "What is your name?",
    "What can you do?",
    "Thank you!",
    "What should I do if I see this error? {e}",
    "Name three kinds of {w}.",
    "Translate to French: the {w} is here.",
    "How much is {a} plus {b}?",
)


def _request(rng: random.Random, words: list[str]) -> str:
    word = lambda: rng.choice(words) if words else "".join(rng.choices(SYLLABLES, k=3))  # noqa: E731
    event = rng.choice(events()).message.replace("{", "").replace("}", "")
    template = rng.choice(REQUESTS)
    return template.format(w=word(), v=word(), e=event, a=rng.randint(1, 99), b=rng.randint(1, 99))


@torch.no_grad()
def converse(
    teacher: Teacher,
    words: Words,
    topics: list[str],
    rows: int,
    length: int,
    seed: int,
    temperature: float = 0.8,
    top: int = 40,
) -> np.ndarray:
    """uint16 [rows, length]: each row the system block and then turns that alternate until the row is full."""
    rng = random.Random(seed)
    device, dtype = teacher.embedding.device, teacher.embedding.dtype
    generator = torch.Generator(device=device).manual_seed(seed)
    turns = [words.encode(f"\n<|im_start|>{role}\n") for role in ("assistant", "user")]
    forced = torch.full((rows, length + max(map(len, turns)) + 2), -1, dtype=torch.long)
    speaker = torch.zeros(rows, dtype=torch.long)
    for row in range(rows):
        start = words.encode(SYSTEM + "<|im_start|>user\n")
        if rng.random() < 0.5:
            start += [*words.encode(_request(rng, topics)), words.end, *turns[0]]
            speaker[row] = 1
        forced[row, : min(len(start), length)] = torch.tensor(start[:length])
    forced, speaker = forced.to(device), speaker.to(device)
    turn_ids = [torch.tensor(t, device=device) for t in turns]
    keys = torch.empty(teacher.depth, rows, teacher.kv_heads, length, teacher.dim, device=device, dtype=dtype)
    values, out = torch.empty_like(keys), torch.empty(rows, length, dtype=torch.long, device=device)
    angles = teacher.angles(length, device)
    tokens = forced[:, 0]
    for at in range(length):
        out[:, at] = tokens
        logits = teacher.step(tokens, at, keys, values, angles).float()
        best, index = logits.topk(top, -1)
        drawn = index.gather(1, torch.multinomial((best / temperature).softmax(-1), 1, generator=generator))[:, 0]
        given = forced[:, at + 1]
        tokens = torch.where(given >= 0, given, drawn)
        ended = (given < 0) & (drawn == words.end)
        for who, turn in enumerate(turn_ids):
            window = forced[:, at + 2 : at + 2 + len(turn)]
            window[:] = torch.where((ended & (speaker == who))[:, None], turn[: window.shape[1]], window)
        speaker = torch.where(ended, 1 - speaker, speaker)
    return out.cpu().numpy().astype(np.uint16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--topics", type=Path, help="text file of words to ask about, one a line")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    device = torch.device(args.device)
    words = Words(args.tokenizer)
    teacher = Teacher.from_gguf(args.teacher, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
    topics = args.topics.read_text().split("\n") if args.topics else []
    begun, batches = time.monotonic(), []
    while not batches or time.monotonic() - begun < args.seconds:
        batches.append(converse(teacher, words, topics, args.rows, args.length, args.seed + len(batches)))
    chats = np.concatenate(batches)
    np.save(args.out, chats)
    sample = words.tokenizer.decode(chats[-1].tolist(), skip_special_tokens=False)
    print(f"{chats.size} tokens in {time.monotonic() - begun:.0f} s; one of them:\n{sample}")


if __name__ == "__main__":
    main()
