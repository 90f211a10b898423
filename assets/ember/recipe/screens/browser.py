"""Debian's Chromium driven by ChromeDriver over plain HTTP: a page's picture and where its elements are.

One browser serves thousands of pages. `Browser.look` sets size, device pixel ratio and colour scheme, loads an address
and returns the screenshot with the visible elements the DOM declares: links, buttons, fields, tabs, headings.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from PIL import Image

_FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--mute-audio",
    "--allow-file-access-from-files",
]

HARVEST = Path(__file__).with_name("harvest.js").read_text()


class Browser:
    """One headless Chromium. Use as a context manager."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.session = ""
        self.profile = tempfile.mkdtemp(prefix="profile-")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        address = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(
                f"ChromeDriver: {json.loads(error.read())['value']['message'].splitlines()[0]}"
            ) from error

    def __enter__(self) -> Browser:
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        options = {"binary": "/usr/bin/chromium", "args": [*_FLAGS, f"--user-data-dir={self.profile}"]}
        for _ in range(100):
            try:
                self._call("GET", "/status")
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self.session = f"/session/{made['sessionId']}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.session:
            try:
                self._call("DELETE", self.session)
            except (RuntimeError, OSError):
                pass
        self.driver.terminate()
        self.driver.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def devtools(self, command: str, **params: Any) -> Any:
        return self._call("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": params})

    def script(self, text: str, *args: Any) -> Any:
        return self._call("POST", f"{self.session}/execute/sync", {"script": text, "args": list(args)})

    def show(self, width: int, height: int, ratio: float = 1.0, dark: bool = False) -> None:
        """Lay pages out for a screen of `width` × `height` device pixels, `ratio` of them a CSS pixel."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=round(width / ratio),
            height=round(height / ratio),
            deviceScaleFactor=ratio,
            mobile=False,
        )
        self.devtools(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.ratio = ratio

    def open(self, address: str, wait: float = 0.0) -> None:
        self._call("POST", f"{self.session}/url", {"url": address})
        time.sleep(wait)

    def look(self) -> tuple[Image.Image, list[dict[str, Any]]]:
        """The picture (RGB, device pixels) and the page's visible elements with boxes in its pixels."""
        elements = self.script(HARVEST)
        shot = self.devtools("Page.captureScreenshot", format="png", optimizeForSpeed=True)
        picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
        for element in elements:
            element["box"] = [
                min(max(0.0, round(v * self.ratio, 1)), float(most))
                for v, most in zip(element["box"], picture.size * 2, strict=True)
            ]
        return picture, [e for e in elements if e["box"][2] - e["box"][0] >= 4 and e["box"][3] - e["box"][1] >= 4]
