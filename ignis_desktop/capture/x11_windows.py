"""The windows of an X11 desktop, asked of the server and its window manager through libxcb.

libxcb reports a fault with the reply it belongs to. Xlib would call a handler that the whole process shares, and by
default that one ends it: a window that closes while it is being asked about is no reason to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int16, c_uint8, c_uint16, c_uint32, c_void_p

from ignis_desktop.capture.coordinates import Rect
from ignis_desktop.capture.grabbing import CaptureError, Window

_ANY = 0
_VIEWABLE = 2
_WORDS = 4096
"""Longest property that is read, in units of four bytes."""


class _Cookie(Structure):
    _fields_ = (("sequence", c_uint32),)


def _reply(name: str, *fields: tuple[str, type]) -> type[Structure]:
    """A reply's structure behind the 8 bytes that all have (type, one byte of data, sequence, length)."""
    head = (("type", c_uint8), ("data", c_uint8), ("sequence", c_uint16), ("length", c_uint32))
    return type(name, (Structure,), {"_fields_": (*head, *fields)})


_Geometry = _reply(
    "_Geometry", ("root", c_uint32), ("x", c_int16), ("y", c_int16), ("width", c_uint16), ("height", c_uint16)
)
_Position = _reply("_Position", ("child", c_uint32), ("x", c_int16), ("y", c_int16))
_Attributes = _reply(
    "_Attributes", ("visual", c_uint32), ("class_", c_uint16), ("gravities", c_uint16), ("planes", c_uint32),
    ("pixel", c_uint32), ("save_under", c_uint8), ("installed", c_uint8), ("map_state", c_uint8),
    ("override_redirect", c_uint8),
)  # fmt: skip
_Atom = _reply("_Atom", ("atom", c_uint32))
_Property = _reply("_Property", ("kind", c_uint32), ("bytes_after", c_uint32), ("count", c_uint32))
_Tree = _reply("_Tree", ("root", c_uint32), ("parent", c_uint32), ("count", c_uint16))


class _Setup(Structure):
    """xcb_screen_t as far as it is needed."""

    _fields_ = (("root", c_uint32),)


class _Roots(Structure):
    _fields_ = (("data", POINTER(_Setup)), ("rest", c_int), ("index", c_int))


class _X11:
    """A connection to the server in DISPLAY. Every answer is None when what it is about is gone."""

    def __init__(self) -> None:
        try:
            self._xcb = ctypes.CDLL("libxcb.so.1")
            self._free = ctypes.CDLL(None).free
        except (OSError, AttributeError) as error:
            raise CaptureError(f"Windows cannot be listed without libxcb ({error}).") from error
        self._free.argtypes = [c_void_p]
        number = c_int()
        connect = self._function("xcb_connect", c_void_p, c_char_p, POINTER(c_int))
        self._connection = c_void_p(connect(None, ctypes.byref(number)))
        if self._function("xcb_connection_has_error", c_int, c_void_p)(self._connection):
            self.close()
            raise CaptureError("The display cannot be reached, so that no windows can be listed.", "no_display")
        setup = c_void_p(self._function("xcb_get_setup", c_void_p, c_void_p)(self._connection))
        roots = self._function("xcb_setup_roots_iterator", _Roots, c_void_p)(setup)
        step = self._function("xcb_screen_next", None, POINTER(_Roots))
        for _ in range(number.value):
            step(ctypes.byref(roots))
        self.root: int = roots.data.contents.root

    def close(self) -> None:
        self._function("xcb_disconnect", None, c_void_p)(self._connection)

    def _function(self, name: str, result: object, *arguments: object) -> ctypes._NamedFuncPointer:
        function = getattr(self._xcb, name)
        function.restype, function.argtypes = result, arguments
        return function

    def _ask(self, name: str, kind: type[Structure], *arguments: tuple[type, object]) -> tuple[Structure, bytes] | None:
        """The reply and the bytes that follow its structure."""
        types = [one for one, _ in arguments]
        cookie = self._function(f"xcb_{name}", _Cookie, c_void_p, *types)(
            self._connection, *(value for _, value in arguments)
        )
        answer = self._function(f"xcb_{name}_reply", c_void_p, c_void_p, _Cookie, POINTER(c_void_p))
        fault = c_void_p()
        address = answer(self._connection, cookie, ctypes.byref(fault))
        if fault:
            self._free(fault)
        if not address:
            return None
        try:
            reply = kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(kind)))
            # Everything behind the first 32 bytes is counted in ``length``, in units of four.
            return reply, ctypes.string_at(address + 32, 4 * reply.length)
        finally:
            self._free(address)

    def atom(self, name: str) -> int:
        """0 when nobody has ever used the name."""
        text = name.encode()
        asked = self._ask("intern_atom", _Atom, (c_uint8, 1), (c_uint16, len(text)), (c_char_p, text))
        return asked[0].atom if asked else 0

    def property(self, window: int, name: str) -> bytes:
        atom = self.atom(name)
        if not atom:
            return b""
        numbers = [(c_uint8, 0), (c_uint32, window), (c_uint32, atom), (c_uint32, _ANY), (c_uint32, 0)]
        asked = self._ask("get_property", _Property, *numbers, (c_uint32, _WORDS))
        if asked is None:
            return b""
        reply, rest = asked
        return rest[: reply.count * (reply.data // 8)]  # ``data`` is the format: 8, 16 or 32 bits

    def numbers(self, window: int, name: str) -> list[int]:
        raw = self.property(window, name)
        return list((c_uint32 * (len(raw) // 4)).from_buffer_copy(raw[: len(raw) // 4 * 4])) if raw else []

    def title(self, window: int) -> str:
        raw = self.property(window, "_NET_WM_NAME") or self.property(window, "WM_NAME")
        return " ".join(raw.decode("utf-8", "replace").replace("\0", " ").split())

    def children(self, window: int) -> list[int]:
        """From the lowest to the topmost."""
        asked = self._ask("query_tree", _Tree, (c_uint32, window))
        if asked is None:
            return []
        reply, rest = asked
        return list((c_uint32 * reply.count).from_buffer_copy(rest)) if reply.count else []

    def shown(self, window: int) -> bool:
        asked = self._ask("get_window_attributes", _Attributes, (c_uint32, window))
        return asked is not None and asked[0].map_state == _VIEWABLE

    def area(self, window: int) -> Rect | None:
        """With the frame that a window manager drew around it."""
        geometry = self._ask("get_geometry", _Geometry, (c_uint32, window))
        numbers = [(c_uint32, window), (c_uint32, self.root), (c_int16, 0), (c_int16, 0)]
        position = self._ask("translate_coordinates", _Position, *numbers)
        if geometry is None or position is None or not geometry[0].width or not geometry[0].height:
            return None
        left, right, top, bottom = [*self.numbers(window, "_NET_FRAME_EXTENTS"), 0, 0, 0, 0][:4]
        width, height = geometry[0].width + left + right, geometry[0].height + top + bottom
        return Rect(position[0].x - left, position[0].y - top, width, height)

    def stacked(self) -> Iterator[int]:
        """Windows of programs, the front one first: as the window manager lists them, else the root's children."""
        listed = self.numbers(self.root, "_NET_CLIENT_LIST_STACKING") or self.numbers(self.root, "_NET_CLIENT_LIST")
        yield from reversed(listed or self.children(self.root))


def list_windows() -> Sequence[Window]:
    """Windows with a title that are shown, the front one first. Raises ``CaptureError``."""
    display = _X11()
    try:
        found = []
        for window in display.stacked():
            title = display.title(window)
            area = display.area(window) if title and display.shown(window) else None
            if area is not None:
                found.append(Window(window, title, area))
        return found
    finally:
        display.close()
