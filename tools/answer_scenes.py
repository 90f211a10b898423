"""Scenes of the panels Log search and Decide for tools/screenshots.py, with real questions to the loaded model."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

LINES, FAULT = 320, 214


def write_log(path: Path) -> None:
    """Ordinary requests, and one line that is not."""
    draw = random.Random(5)
    rows = []
    for i in range(1, LINES + 1):
        stamp = f"2026-03-01 10:{i // 60:02}:{i % 60:02}"
        if i == FAULT:
            rows.append(f"{stamp} ERROR billing[77]: card processor unreachable, payment 4821 was not charged")
        elif i % 9 == 0:
            rows.append(f"{stamp} INFO scheduler[12]: job {draw.randint(100, 999)} finished in {draw.randint(2, 90)} s")
        else:
            service = draw.choice(("auth", "search", "gateway"))
            rows.append(f"{stamp} INFO {service}[{draw.randint(10, 99)}]: GET /items/{draw.randint(1, 99)} took 12 ms")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def take_scenes(
    app,
    desktop,
    out: Path,
    scale: float,
    sizes: Sequence[tuple[int, int]],
    wait: Callable[..., None],
    rest: Callable[..., None],
) -> None:
    window, log, decide = desktop.window, desktop.window.log_search, desktop.window.decide

    def shoot(name: str) -> None:
        for width, height in sizes:
            window.resize(width, height)
            for theme in ("light", "dark"):
                desktop.theme.apply(theme)
                rest(app)
                window.grab().save(str(out / f"{name}-{theme}-{width}x{height}-{round(scale * 100)}.png"))

    wait(app, lambda: desktop.engine.snapshot.state in ("ready", "failed"))
    window.show_panel("log_search")
    shoot("log-empty")
    path = out / "shop.log"
    write_log(path)
    log.open(path)
    wait(app, lambda: log._log is not None and log._log.is_folded and log._log.tokens is not None)
    log.question.setText("Which line says that the card processor cannot be reached?")
    log.ask()
    rest(app, 1.0)
    shoot("log-asking")
    wait(app, lambda: log._asking is None)
    shoot("log-answer")
    log.reader.finder.edit.setText("scheduler")
    wait(app, lambda: log.reader._found is not None)
    shoot("log-found")
    log.reader.tabs.setCurrentIndex(1)
    shoot("log-templates")
    log.reader._show_only(log._log.templates[0].number)
    shoot("log-alike")
    log.close_log()
    path.unlink()
    window.show_panel("decide")
    shoot("decide-empty")
    decide.decide()
    shoot("decide-faults")
    decide.show_example()
    wait(app, lambda: decide._deciding is None)
    shoot("decide")
    for place, name in enumerate(("evidence", "questions")):
        decide.tabs.setCurrentIndex(place)
        shoot(f"decide-{name}")
