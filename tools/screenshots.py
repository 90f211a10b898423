"""Screenshots of every panel, with real answers and real requests: python tools/screenshots.py OUT

Light and dark, 1280×800 and 1920×1080 pixels, at 100 % and 150 %. Runs without a display. With --busy, only the Lanes
panel over an engine that is made up (tests/busy.py): 1280×800 and 760×480 logical pixels, at 100 % and 200 %. With
--plan, the VRAM plan panel at the same sizes: as it is, with knobs turned, with another model, with too little memory.
With --screen, the Screen panel, and with --answers, Log search and Decide at the same sizes, in every state.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZES = ((1280, 800), (1920, 1080))
SCALES = ("1", "1.5")
BUSY_SIZES = ((1280, 800), (760, 480))
"""Logical pixels; the second is the smallest window there is."""
BUSY_SCALES = ("1", "2")
QUESTIONS = (
    "Say hello in one sentence.",
    "Give me three tips for writing clear e-mails.",
    "What is a log file, and what is it good for?",
)
_TIMEOUT = 300.0
_ANSWER_SECONDS = 40.0
"""A small model may not find an end: then it is stopped, as a person would."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the pictures")
    parser.add_argument("--model", type=Path, help="checkpoint folder; the bundled Ember by default")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the engine")
    parser.add_argument("--language", choices=("en", "ko"), default="en")
    parser.add_argument("--busy", action="store_true", help="the Lanes panel over a made-up busy engine")
    parser.add_argument("--plan", action="store_true", help="the VRAM plan panel, with its knobs turned")
    parser.add_argument("--screen", action="store_true", help="the Screen panel, in every state")
    parser.add_argument("--answers", action="store_true", help="the panels Log search and Decide, in every state")
    parser.add_argument("--pages", type=int, default=1024, help="pages of the made-up engine")
    parser.add_argument("--scale", choices=(*SCALES, *BUSY_SCALES), help="only this scale, in this process")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    scenes = arguments.screen or arguments.answers
    if arguments.scale:
        wanted = {take_busy: arguments.busy, take_plan: arguments.plan, take_scenes: scenes}
        return next((take for take, on in wanted.items() if on), take_all)(arguments)
    for scale in BUSY_SCALES if arguments.busy or arguments.plan or scenes else SCALES:
        # Qt reads the scale once, when the application starts.
        environment = os.environ | {"QT_SCALE_FACTOR": scale, "QT_QPA_PLATFORM": "offscreen"}
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--scale", scale], env=environment, check=True)
    return 0


def take_all(arguments: argparse.Namespace) -> int:
    """Everything at one scale: asks, waits for the answers, then goes through panels, themes and sizes."""
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IGNIS_DATA_DIR"] = folder
        os.environ["IGNIS_RUNTIME_DIR"] = folder
        import ignis_desktop.app as app_module
        from engine.config import EngineConfig
        from ignis_desktop.store.settings import SettingsFile

        SettingsFile().change(port=8000, language=arguments.language, theme="light")
        app = app_module.QApplication(["ignis"])
        desktop = app_module.Desktop(app, EngineConfig(model=arguments.model, threads=arguments.threads))
        desktop.start()
        try:
            converse(app, desktop)
            call_server(app, desktop)
            shoot(app, desktop, arguments.out, float(arguments.scale))
        finally:
            desktop.window.close()
    return 0


def take_busy(arguments: argparse.Namespace) -> int:
    """The Lanes panel as it is after a minute with eight busy lanes, whole and while it is pointed at."""
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IGNIS_DATA_DIR"] = folder
        os.environ["IGNIS_RUNTIME_DIR"] = folder
        import ignis_desktop.app as app_module
        from ignis_desktop.store.settings import SettingsFile
        from tests.busy import LENGTH, idle, minute

        SettingsFile().change(language=arguments.language, theme="light")
        app = app_module.QApplication(["ignis"])
        desktop = app_module.Desktop(app)
        window, panel = desktop.window, desktop.window.lanes
        scale = round(float(arguments.scale) * 100)

        def show(snapshot) -> None:
            desktop.engine.engine.snapshot = lambda: snapshot
            window.show_snapshot(snapshot)

        window.show_panel("lanes")
        window.show()
        panel._timer.stop()  # its clock is ours now
        start = time.monotonic() + 1 - LENGTH
        try:
            for snapshot in minute(start=start, pages=arguments.pages):
                show(snapshot)
            for width, height in BUSY_SIZES:
                window.resize(width, height)
                for theme in ("light", "dark"):
                    desktop.theme.apply(theme)
                    panel.frame(start + LENGTH)
                    rest(app)
                    name = f"{theme}-{width}x{height}-{scale}.png"
                    window.grab().save(str(arguments.out / f"lanes-{name}"))
                    if (width, height) == BUSY_SIZES[0]:
                        panel.lanes.rows[4].setFocus()
                        rest(app)
                        window.grab().save(str(arguments.out / f"lanes-row-{name}"))
                        panel.lanes.rows[4].clearFocus()
                    else:
                        bar = panel._body.verticalScrollBar()
                        bar.setValue(bar.maximum())
                        rest(app)
                        window.grab().save(str(arguments.out / f"lanes-below-{name}"))
                        bar.setValue(0)
            window.resize(*BUSY_SIZES[0])
            show(idle(start=start))
            for theme in ("light", "dark"):
                desktop.theme.apply(theme)
                panel.frame(start + LENGTH + 200)
                rest(app)
                window.grab().save(str(arguments.out / f"lanes-free-{theme}-{scale}.png"))
        finally:
            desktop.watchdog.start()  # the window's end stops it
            window.close()
    return 0


def take_plan(arguments: argparse.Namespace) -> int:
    """The VRAM plan panel over the real engine, from the top and, where it scrolls, to the bottom."""
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IGNIS_DATA_DIR"] = folder
        os.environ["IGNIS_RUNTIME_DIR"] = folder
        import ignis_desktop.app as app_module
        from engine.config import EngineConfig
        from ignis_desktop.store.settings import SettingsFile

        SettingsFile().change(port=0, language=arguments.language, theme="light")
        app = app_module.QApplication(["ignis"])
        desktop = app_module.Desktop(app, EngineConfig(model=arguments.model, threads=arguments.threads))
        desktop.start()
        panel = desktop.window.vram_plan

        def plan(model: str = "own", **turned: object) -> None:
            panel.model.set_value(model)
            panel.model.chosen.emit(model)
            panel.knobs.turn(turned.items())
            panel.knobs.changed.emit()

        scenes: dict[str, Callable[[], None]] = {
            "plan": plan,
            "plan-changed": lambda: plan(lanes=12, max_context=4096, headroom=1 << 30),
            "plan-27b": lambda: plan("big"),
            "plan-27b-short": lambda: plan("big", lanes=16, kv_format="bf16", max_context=262_144),
        }
        try:
            wait(app, lambda: desktop.engine.snapshot.state in ("ready", "failed"))
            desktop.window.show_panel("vram_plan")
            for width, height in BUSY_SIZES:
                desktop.window.resize(width, height)
                for theme in ("light", "dark"):
                    desktop.theme.apply(theme)
                    for name, show in scenes.items():
                        show()
                        bar = panel.body.verticalScrollBar()
                        for part in ("", "-below") if bar.maximum() > 40 else ("",):
                            bar.setValue(bar.maximum() if part else 0)
                            rest(app)
                            file = f"{name}{part}-{theme}-{width}x{height}-{round(float(arguments.scale) * 100)}.png"
                            desktop.window.grab().save(str(arguments.out / file))
        finally:
            desktop.window.close()
    return 0


def take_scenes(arguments: argparse.Namespace) -> int:
    """The Screen panel, or Log search and Decide, over the real engine."""
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IGNIS_DATA_DIR"] = folder
        os.environ["IGNIS_RUNTIME_DIR"] = folder
        import ignis_desktop.app as app_module
        from engine.config import EngineConfig
        from ignis_desktop.store.settings import SettingsFile
        from tools import answer_scenes, screen_scenes

        SettingsFile().change(port=0, language=arguments.language, theme="light")
        app = app_module.QApplication(["ignis"])
        desktop = app_module.Desktop(app, EngineConfig(model=arguments.model, threads=arguments.threads))
        desktop.start()
        panel = answer_scenes if arguments.answers else screen_scenes
        try:
            panel.take_scenes(app, desktop, arguments.out, float(arguments.scale), BUSY_SIZES, wait, rest)
        finally:
            desktop.window.close()
    return 0


def wait(app, until: Callable[[], bool]) -> None:
    """Runs the event loop until ``until()``; raises ``TimeoutError`` after five minutes."""
    end = time.monotonic() + _TIMEOUT
    while not until():
        if time.monotonic() > end:
            raise TimeoutError("the window did not get there in time")
        app.processEvents()
        time.sleep(0.01)


def rest(app, seconds: float = 0.3) -> None:
    end = time.monotonic() + seconds
    wait(app, lambda: time.monotonic() > end)


def converse(app, desktop) -> None:
    """Two conversations with real answers; one answer in two versions, with its numbers."""
    session = desktop.window.chat.session
    wait(app, lambda: desktop.engine.snapshot.state in ("ready", "failed"))

    def answered() -> None:
        end = time.monotonic() + _ANSWER_SECONDS
        wait(app, lambda: not session.running or time.monotonic() > end)
        session.stop()
        wait(app, lambda: not session.running)

    session.send(QUESTIONS[2])
    answered()
    session.new()
    session.send(QUESTIONS[0])
    answered()
    session.send(QUESTIONS[1])
    answered()
    session.regenerate(session.items()[-1].id)
    answered()
    session.toggle("numbers", session.items()[-1].id)


def call_server(app, desktop) -> None:
    """Real requests over a real socket, from threads, so that the window goes on."""
    import threading

    import httpx

    wait(app, lambda: desktop.server.state in ("running", "failed"))
    if desktop.server.state == "failed":
        raise SystemExit(desktop.server.reason)

    def ask() -> None:
        with httpx.Client(base_url=desktop.server.url, timeout=120, trust_env=False) as client:
            model = client.get("/v1/models").json()["data"][0]["id"]
            client.get("/health")
            for question in QUESTIONS[:2]:
                body = {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": 24}
                client.post("/v1/chat/completions", json=body)
            client.post("/v1/tokenize", json={"prompt": "How many tokens is this?"})
            client.post("/v1/completions", json={"model": model, "prompt": "The log says", "max_tokens": 8})
            client.get("/v1/nothing")
            client.get("/v1/engine")

    thread = threading.Thread(target=ask)
    thread.start()
    wait(app, lambda: not thread.is_alive())


def shoot(app, desktop, out: Path, scale: float) -> None:
    window = desktop.window

    def empty_chat() -> None:
        window.show_panel("chat")
        window.chat.new_conversation()

    def chat() -> None:
        window.show_panel("chat")
        window.chat.session.open(next(row.id for row in window.chat.session.rows()))

    def options() -> None:
        chat()
        window.chat.open_options()

    def palette() -> None:
        chat()
        window.open_palette()

    scenes: dict[str, Callable[[], None]] = {
        "chat": chat,
        "chat-empty": empty_chat,
        "chat-options": options,
        "plan": lambda: window.show_panel("vram_plan"),
        "server": lambda: window.show_panel("server"),
        "settings": lambda: window.show_panel("settings"),
        "palette": palette,
    }
    for width, height in SIZES:
        window.resize(round(width / scale), round(height / scale))
        for theme in ("light", "dark"):
            desktop.theme.apply(theme)
            for name, show in scenes.items():
                show()
                rest(app)
                picture = window.grab()
                if window.chat.options.isVisible():
                    place = window.mapFromGlobal(window.chat.options.pos())
                    with painting(picture) as painter:
                        painter.drawPixmap(place, window.chat.options.grab())
                window.chat.options.hide()
                window.palette_box.hide()
                picture.save(str(out / f"{name}-{theme}-{width}x{height}-{round(scale * 100)}.png"))
    if scale == 1:
        side_by_side(out)


def side_by_side(out: Path) -> None:
    """window.png: the chat in both themes, small enough for a README."""
    from PIL import Image

    pair = [Image.open(out / f"chat-{theme}-1280x800-100.png").convert("RGB") for theme in ("light", "dark")]
    both = Image.new("RGB", (2 * 1280 + 24, 800), "white")
    for i, picture in enumerate(pair):
        both.paste(picture, (i * (1280 + 24), 0))
    both.save(out / "window.png", optimize=True)


@contextlib.contextmanager
def painting(picture):
    from PySide6.QtGui import QPainter

    painter = QPainter(picture)
    try:
        yield painter
    finally:
        painter.end()


if __name__ == "__main__":
    sys.exit(main())
