"""Presses things on the screen by what they are called: captures it with mss, asks the local server where each thing
is, and clicks there with xdotool.

    ignis serve
    python examples/screen_automation.py "the Save button" "the Cancel button"

Needs an X11 display, the packages mss, pillow and httpx, and the program xdotool. A thing that is not found, or of
which the model is less sure than --least, ends the script before anything is clicked.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

import httpx
import mss
from mss.exception import ScreenShotError
from PIL import Image


class AutomationError(Exception):
    """One sentence for the person who runs the script."""


@dataclass(frozen=True)
class Shot:
    """The picture as PNG, and where its top left pixel is on the desktop."""

    png: bytes
    size: tuple[int, int]
    origin: tuple[int, int]

    @property
    def coordinate_map(self) -> dict[str, object]:
        area = [0, 0, *self.size]
        return {"image": list(self.size), "tiles": [{"image": area, "desktop": [*self.origin, *self.size]}]}


def capture(monitor: int) -> Shot:
    """One monitor, from 1; 0 is all of them in one picture."""
    try:
        with mss.MSS() as screen:
            areas = screen.monitors
            if not 0 <= monitor < len(areas):
                raise AutomationError(f"There is no monitor {monitor}; there are 1 to {len(areas) - 1}.")
            raw = screen.grab(areas[monitor])
    except ScreenShotError as error:
        raise AutomationError(f"The screen cannot be captured ({error}); is DISPLAY set?") from error
    png = io.BytesIO()
    Image.frombytes("RGB", raw.size, raw.bgra, "raw", "BGRX").save(png, "PNG", compress_level=1)
    return Shot(png.getvalue(), tuple(raw.size), (areas[monitor]["left"], areas[monitor]["top"]))


class Screen:
    """A captured picture that the server keeps encoded: each question costs only its own words."""

    def __init__(self, server: httpx.Client, shot: Shot) -> None:
        image = "data:image/png;base64," + base64.b64encode(shot.png).decode()
        self._server = server
        body = ask(server, "/v1/screens", {"image": image, "coordinate_map": shot.coordinate_map})
        self._id = body["id"]
        self.encode_ms: float = body["encode_ms"]

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.delete(f"/v1/screens/{self._id}")

    def find(self, question: str, least: float) -> tuple[int, int]:
        """The desktop pixel to click."""
        answer = ask(self._server, f"/v1/screens/{self._id}/point", {"question": question})
        if not answer["found"] or answer["confidence"] < least:
            raise AutomationError(f"{question!r} is not on the screen (confidence {answer['confidence']:.0%}).")
        x, y = answer["desktop"]
        print(f"{question}: {x}, {y} ({answer['confidence']:.0%} sure, {answer['ms']:.0f} ms)", flush=True)
        return x, y


def ask(server: httpx.Client, path: str, body: dict[str, object]) -> dict:
    try:
        answer = server.post(path, json=body)
    except httpx.HTTPError as error:
        raise AutomationError(f"No answer from {server.base_url} ({error}); start it with: ignis serve") from error
    if answer.is_error:
        raise AutomationError(answer.json()["error"]["message"])
    return answer.json()


def click(x: int, y: int) -> None:
    subprocess.run(["xdotool", "mousemove", "--sync", str(x), str(y), "click", "1"], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("things", nargs="+", metavar="THING", help='what to press, in order: "the Save button"')
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the server (default: %(default)s)")
    parser.add_argument("--key", default=os.environ.get("IGNIS_API_KEY"), help="its API key, if it has one")
    parser.add_argument("--monitor", type=int, default=1, help="which monitor; 0 is all (default: %(default)s)")
    parser.add_argument("--least", type=float, default=0.3, help="least confidence to click (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0.3, help="seconds between clicks (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="only say where things are")
    arguments = parser.parse_args()
    if shutil.which("xdotool") is None and not arguments.dry_run:
        print("xdotool is missing: install it (Debian: apt-get install xdotool), or try --dry-run.", file=sys.stderr)
        return 1
    headers = {"Authorization": f"Bearer {arguments.key}"} if arguments.key else {}
    try:
        with httpx.Client(base_url=arguments.url, headers=headers, timeout=600, trust_env=False) as server:
            with Screen(server, capture(arguments.monitor)) as screen:
                print(f"encoded in {screen.encode_ms:.0f} ms", flush=True)
                # All are found before the first is pressed: a press may change what is shown.
                places = [screen.find(thing, arguments.least) for thing in arguments.things]
            for x, y in [] if arguments.dry_run else places:
                click(x, y)
                time.sleep(arguments.pause)
    except AutomationError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
