"""The Screen panel for tools/screenshots.py --screen: every state a person may see, over real answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "tests" / "data" / "screens" / "mousepad-edit-menu.webp"
QUESTIONS = ("the Document menu", "the Paste item", "Where is the Help menu?", "a rocket")


def take_scenes(app, desktop, out: Path, scale: float, sizes, wait: Callable, rest: Callable) -> None:
    """``wait(app, until)`` and ``rest(app)`` run the event loop."""
    window, panel = desktop.window, desktop.window.screens
    session = panel.session
    window.show_panel("screen")
    window.show()

    def take(name: str) -> None:
        for width, height in sizes:
            window.resize(width, height)
            for theme in ("light", "dark"):
                desktop.theme.apply(theme)
                panel.view.fit()
                rest(app)
                file = f"screen-{name}-{theme}-{width}x{height}-{round(scale * 100)}.png"
                window.grab().save(str(out / file))

    wait(app, lambda: desktop.engine.snapshot.state in ("ready", "failed"))
    take("empty")
    session.open_file(PICTURE)
    wait(app, lambda: session.progress[1] > 1 or session.stage in ("ready", "failed"))
    take("reading")
    wait(app, lambda: session.stage in ("ready", "failed"))
    if session.stage == "failed":
        raise SystemExit(session.fault)
    take("read")
    for question in QUESTIONS:
        session.ask(question)
        wait(app, lambda: not session.shown.waiting)
    missing = session.asked[-1]
    missing.answer = replace(missing.answer, found=False)  # as weights with a key for nothing would say
    session.changed.emit()
    take("missing")
    session.select(session.asked[1].number)
    take("answer")
    panel.bar.heat.setChecked(True)
    take("heat")
    panel.bar.heat.setChecked(False)
    window.resize(*sizes[0])
    panel.view.zoom_by(3, panel.view.at(*session.shown.answer.pixels))
    rest(app)
    window.grab().save(str(out / f"screen-zoomed-{round(scale * 100)}.png"))
    session.asked[0].fault = "256 interactive requests are waiting already; try again in 3 s."
    session.asked[0].answer = None
    session.select(session.asked[0].number)
    take("fault")
