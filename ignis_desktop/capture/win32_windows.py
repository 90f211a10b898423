"""The windows of a Windows desktop, front to back."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    from collections.abc import Sequence
    from ctypes import wintypes

    from ignis_desktop.capture.coordinates import Rect
    from ignis_desktop.capture.grabbing import Window

    _CLOAKED, _FRAME_BOUNDS = 14, 9

    def list_windows() -> Sequence[Window]:
        """Windows with a title that are shown, the front one first.

        The area is without the invisible border by which Windows lets a window be resized.
        """
        user32, dwm = ctypes.WinDLL("user32"), ctypes.WinDLL("dwmapi")
        visit = ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.HWND, wintypes.LPARAM)
        user32.EnumWindows.argtypes = [visit, wintypes.LPARAM]
        for question in (user32.IsWindowVisible, user32.IsIconic, user32.GetWindowTextLengthW):
            question.argtypes = [wintypes.HWND]
        user32.GetWindowTextW.argtypes = [wintypes.HWND, wintypes.LPWSTR, ctypes.c_int]
        dwm.DwmGetWindowAttribute.argtypes = [wintypes.HWND, wintypes.DWORD, ctypes.c_void_p, wintypes.DWORD]
        found: list[Window] = []

        def take(handle: int, _unused: int) -> bool:
            length = user32.GetWindowTextLengthW(handle)
            if not length or not user32.IsWindowVisible(handle) or user32.IsIconic(handle):
                return True
            cloaked = wintypes.DWORD()  # suspended store programs count as visible
            dwm.DwmGetWindowAttribute(handle, _CLOAKED, ctypes.byref(cloaked), ctypes.sizeof(cloaked))
            bounds = wintypes.RECT()
            failed = dwm.DwmGetWindowAttribute(handle, _FRAME_BOUNDS, ctypes.byref(bounds), ctypes.sizeof(bounds))
            width, height = bounds.right - bounds.left, bounds.bottom - bounds.top
            if not failed and not cloaked.value and width > 0 and height > 0:
                title = ctypes.create_unicode_buffer(length + 1)
                user32.GetWindowTextW(handle, title, length + 1)
                found.append(Window(handle, title.value, Rect(bounds.left, bounds.top, width, height)))
            return True

        user32.EnumWindows(visit(take), 0)
        return found
