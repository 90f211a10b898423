"""What the engine is asked about: a screenshot and a log, drawn and written from a seed."""

from __future__ import annotations

import io
import random

SIZE = (1920, 1080)
LINE_CHARACTERS = 123
"""Of a line of ``log``, about."""


def screenshot(seed: int) -> bytes:
    """PNG of a desktop with windows, texts and buttons: what is on it changes no timing, that it is new does."""
    from PIL import Image, ImageDraw

    rng = random.Random(seed)
    picture = Image.new("RGB", SIZE, (38, 70, 83))
    draw = ImageDraw.Draw(picture)
    for _ in range(5):
        left, top = rng.randrange(0, SIZE[0] - 700), rng.randrange(0, SIZE[1] - 500)
        draw.rectangle((left, top, left + 680, top + 480), fill=(245, 245, 245), outline=(90, 90, 90))
        draw.rectangle((left, top, left + 680, top + 28), fill=(60, 110, 170))
        for row in range(16):
            draw.text((left + 16, top + 44 + 24 * row), f"entry {rng.randrange(10_000)} of the list", fill=(20, 20, 20))
        for number, label in enumerate(("Save", "Open", "Close")):
            corner = (left + 400 + 90 * number, top + 436)
            draw.rectangle((*corner, corner[0] + 80, corner[1] + 30), fill=(225, 225, 225), outline=(120, 120, 120))
            draw.text((corner[0] + 24, corner[1] + 8), label, fill=(20, 20, 20))
    data = io.BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def log(lines: int, seed: int = 0) -> str:
    """A service's log of so many lines; two of them stand out."""
    rng = random.Random(seed)
    kinds = (
        "INFO  api request {a} from 10.0.{b}.{c} answered 200 after {d} ms with {e} bytes of the product list",
        "INFO  worker {b} took job {a} from the queue mail-outgoing, {c} jobs wait behind it, oldest {d} ms",
        "DEBUG cache lookup for key session:{a} missed, loaded from the database by worker {b} in {d} ms",
        "WARN  upstream inventory-{b} was slow: {e} ms for request {a}, limit is 1500 ms, will be tried again",
        "INFO  scheduler started the task cleanup-{b} number {a}, next run in {d} s, {c} tasks are registered",
    )
    written = []
    for number in range(lines):
        fields = {"a": rng.randrange(10**6), "b": rng.randrange(255), "c": rng.randrange(255)}
        line = rng.choice(kinds).format(**fields, d=rng.randrange(2000), e=rng.randrange(10**5))
        minutes, seconds = divmod(number // 20, 60)
        written.append(f"2026-03-01 {minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02} {line}")
    written[lines // 3] = "2026-03-01 12:00:00 ERROR storage: no space left on device /dev/sdb1, writing stopped"
    written[2 * lines // 3] = "2026-03-01 18:00:00 ERROR tls: the certificate of mail.example.net expired yesterday"
    return "\n".join(written) + "\n"
