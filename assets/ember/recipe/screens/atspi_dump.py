"""Prints the visible elements of every window on the screen as JSON lines. Runs under the system's Python (pyatspi).

One line an element: {"app", "role", "name", "description", "box": [x0, y0, x1, y1], "states": [...]} in screen pixels.
"""

from __future__ import annotations

import json
import sys

import pyatspi

_ROLES = {
    "push button",
    "toggle button",
    "check box",
    "radio button",
    "menu",
    "menu item",
    "check menu item",
    "radio menu item",
    "page tab",
    "text",
    "entry",
    "password text",
    "combo box",
    "spin button",
    "table column header",
    "table cell",
    "tree item",
    "list item",
    "icon",
    "link",
    "label",
    "slider",
    "frame",
    "dialog",
}
_STATES = {"checked", "sensitive", "focused", "selected", "active"}


def walk(node, app: str, depth: int, seen: list[int]) -> None:
    if depth > 40 or seen[0] > 4000:
        return
    try:
        states = node.getState()
        role = node.getRoleName()
        showing = states.contains(pyatspi.STATE_SHOWING) or role in ("application", "frame", "window")
        if not showing:
            return
        if role in _ROLES:
            box = node.queryComponent().getExtents(pyatspi.DESKTOP_COORDS)
            if box.width > 2 and box.height > 2:
                names = [pyatspi.stateToString(s) for s in states.getStates()]
                text = ""
                if role in ("text", "entry", "label", "static"):
                    try:
                        text = node.queryText().getText(0, 80)
                    except NotImplementedError:
                        text = ""
                record = {
                    "app": app,
                    "role": role,
                    "name": node.name or "",
                    "description": node.description or "",
                    "text": text,
                    "box": [box.x, box.y, box.x + box.width, box.y + box.height],
                    "states": [name for name in names if name in _STATES],
                }
                print(json.dumps(record))
                seen[0] += 1
        for i in range(min(node.childCount, 250)):
            child = node.getChildAtIndex(i)
            if child is not None:
                walk(child, app, depth + 1, seen)
    except Exception as error:  # an element that went away while it was read
        print(f"{app}: {error}", file=sys.stderr)


def main() -> None:
    desktop = pyatspi.Registry.getDesktop(0)
    for i in range(desktop.childCount):
        app = desktop.getChildAtIndex(i)
        if app is not None:
            walk(app, app.name or "", 0, [0])


if __name__ == "__main__":
    main()
