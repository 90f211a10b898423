"""Captures on Wayland: the desktop portal is asked for a picture of everything, and parts are cut out of it.

A Wayland client sees nothing but its own windows; X11 calls through XWayland come back black. The portal may ask the
person, may refuse, and leaves the picture in a file, which is read and removed.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jeepney import DBusAddress, MatchRule, Message, MessageType, message_bus, new_method_call
from jeepney.io.blocking import DBusConnection, Proxy, open_dbus_connection
from jeepney.wrappers import DBusErrorResponse
from PIL import Image

from ignis_desktop.capture.coordinates import CoordinateMap, Rect, Tile
from ignis_desktop.capture.grabbing import (
    ALL_MONITORS,
    Cancelled,
    CaptureError,
    Monitor,
    MonitorTarget,
    RegionTarget,
    Shot,
    Target,
    Window,
    checked,
    find_monitor,
    never,
)

ANSWER_SECONDS = 60.0
"""A person may have to answer a dialog first."""
_CALL_SECONDS = 10.0
"""For what the bus and the portal answer at once."""
_LOOK_SECONDS = 0.2
_NAME = "org.freedesktop.portal.Desktop"
_SCREENSHOT = DBusAddress("/org/freedesktop/portal/desktop", _NAME, "org.freedesktop.portal.Screenshot")
_REQUEST = "org.freedesktop.portal.Request"
_INSTEAD = "Open or paste a picture instead."
_SAME_SHAPE = 0.02
"""How far the picture's shape may be from the layout's before the layout is taken to be another one."""


class PortalGrabber:
    """Pictures are in the device's pixels, desktop coordinates in the units of ``layout`` where it is known.

    The portal draws everything at the largest of the monitors' scales, so that one factor leads from the layout's
    units to the picture's pixels.
    """

    watchable = False

    def __init__(self, layout: Sequence[Monitor] = (), cancelled: Cancelled = never) -> None:
        self._layout = tuple(layout)
        self._cancelled = cancelled

    def monitors(self) -> Sequence[Monitor]:
        """The layout's; where it is not known, the desktop counts as one monitor and has no size before a picture."""
        return self._layout or (Monitor(1, "", Rect(0, 0, 1, 1), True),)

    def windows(self) -> Sequence[Window]:
        return ()

    def grab(self, target: Target) -> Shot:
        if isinstance(target, MonitorTarget):
            if target.number != ALL_MONITORS:
                find_monitor(self.monitors(), target.number)
        elif not isinstance(target, RegionTarget):
            raise CaptureError(
                "Wayland lets no program capture a single window of another one; capture a monitor or a region.",
                "not_on_wayland",
            )
        image = _read(_ask(self._cancelled))
        whole = Shot(image, coordinates_of(image.size, self._layout))
        if isinstance(target, RegionTarget):
            return checked(_part(whole, target.area))
        if target.number == ALL_MONITORS or not self._layout:
            return checked(whole)
        return checked(_part(whole, find_monitor(self._layout, target.number).area))


def coordinates_of(size: tuple[int, int], layout: Sequence[Monitor]) -> CoordinateMap:
    """Where a picture of the whole desktop lies: a tile a monitor, or the identity when the layout is of another
    shape than the picture."""
    if not layout:
        return CoordinateMap.identity(*size)
    left = min(monitor.area.x for monitor in layout)
    top = min(monitor.area.y for monitor in layout)
    width = max(monitor.area.x + monitor.area.width for monitor in layout) - left
    height = max(monitor.area.y + monitor.area.height for monitor in layout) - top
    across, down = size[0] / width, size[1] / height
    if abs(across / down - 1) > _SAME_SHAPE:
        return CoordinateMap.identity(*size)
    tiles = tuple(
        Tile(
            Rect(
                (one.area.x - left) * across,
                (one.area.y - top) * down,
                one.area.width * across,
                one.area.height * down,
            ),
            one.area,
        )
        for one in layout
    )
    return CoordinateMap(*size, tiles)


def _part(whole: Shot, area: Rect) -> Shot:
    """What the picture shows of an area of the desktop."""
    found = [tile for tile in whole.coordinates.tiles if tile.desktop.intersected(area) is not None]
    if not found:
        raise CaptureError(f"Nothing of {area} is on a monitor (x, y, width, height).", "outside_the_desktop")
    x0, y0 = whole.coordinates.from_desktop(area.x, area.y)
    x1, y1 = whole.coordinates.from_desktop(area.x + area.width, area.y + area.height)
    left, top = min(round(x0), whole.image.width - 1), min(round(y0), whole.image.height - 1)
    return whole.cropped(left, top, max(round(x1) - left, 1), max(round(y1) - top, 1))


def _ask(cancelled: Cancelled) -> Path:
    """Has the portal take a picture; returns the file it left."""
    try:
        connection = open_dbus_connection("SESSION")
    except Exception as error:  # no address, no socket, a refused handshake: jeepney raises each as it came
        raise CaptureError(f"The session bus cannot be reached ({error}). {_INSTEAD}", "no_portal") from error
    with connection:
        try:
            return _request(connection, cancelled)
        except DBusErrorResponse as error:
            raise CaptureError(
                f"This desktop has no portal for screenshots ({error.name}); install xdg-desktop-portal with the back "
                f"end of your desktop. {_INSTEAD}",
                "no_portal",
            ) from error
        except TimeoutError as error:
            raise CaptureError(
                f"The desktop portal did not answer within {ANSWER_SECONDS:.0f} seconds. {_INSTEAD}", "no_portal"
            ) from error
        except (OSError, EOFError) as error:
            raise CaptureError(f"The desktop portal broke off ({error}). {_INSTEAD}", "no_portal") from error


def _request(connection: DBusConnection, cancelled: Cancelled) -> Path:
    token = f"ignis_{secrets.token_hex(8)}"
    sender = connection.unique_name.removeprefix(":").replace(".", "_")
    rule = MatchRule(
        type="signal",
        interface=_REQUEST,
        member="Response",
        path=f"/org/freedesktop/portal/desktop/request/{sender}/{token}",
    )
    # Listened for before it is asked: the answer may be there as soon as the call returns.
    Proxy(message_bus, connection, timeout=_CALL_SECONDS).AddMatch(rule)
    with connection.filter(rule) as responses:
        options = {"handle_token": ("s", token), "interactive": ("b", False), "modal": ("b", False)}
        call = new_method_call(_SCREENSHOT, "Screenshot", "sa{sv}", ("", options))
        reply = connection.send_and_get_reply(call, timeout=_CALL_SECONDS)
        if reply.header.message_type is MessageType.error:
            raise DBusErrorResponse(reply)
        response = _wait(connection, responses, cancelled)
    code, results = response.body
    if code != 0:
        why = "the capture was declined" if code == 1 else "the desktop portal refused the capture"
        raise CaptureError(f"Nothing was captured: {why}. {_INSTEAD}", "capture_refused")
    uri = urlsplit(str(results.get("uri", ("s", ""))[1]))
    if uri.scheme != "file" or not uri.path:
        raise CaptureError(f"The desktop portal left no picture. {_INSTEAD}", "capture_refused")
    return Path(unquote(uri.path))


def _wait(connection: DBusConnection, responses: deque[Message], cancelled: Cancelled) -> Message:
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return connection.recv_until_filtered(responses, timeout=_LOOK_SECONDS)
        except TimeoutError:
            if cancelled():
                raise CaptureError("The capture was given up.", "cancelled") from None
            if time.monotonic() > end:
                raise


def _read(path: Path) -> Image.Image:
    try:
        with Image.open(path) as opened:
            return opened.convert("RGB")
    except (OSError, ValueError) as error:
        raise CaptureError(f"The desktop portal's picture cannot be read ({error}). {_INSTEAD}") from error
    finally:
        path.unlink(missing_ok=True)
