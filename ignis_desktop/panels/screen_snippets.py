"""An answer of the Screen panel as something to paste: its coordinates, or the same question as a script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ignis_desktop.capture.grabbing import MonitorTarget, RegionTarget, Target, WindowTarget
from ignis_desktop.panels.snippets import Snippet


def capture_json(target: Target) -> dict[str, object]:
    """``capture`` of a request that takes the same picture."""
    if isinstance(target, MonitorTarget):
        return {"monitor": target.number}
    if isinstance(target, WindowTarget):
        return {"window": target.title}
    area = target.area
    return {"region": [round(part) for part in (area.x, area.y, area.width, area.height)]}


def screen_snippets(
    base_url: str, api_key: str, question: str, source: Target | Path | None, platform: str = sys.platform
) -> list[Snippet]:
    """``base_url`` ends in /v1. ``source`` is what is captured or the picture's file; None for a pasted picture, which
    the snippets call screenshot.png."""
    if isinstance(source, MonitorTarget | RegionTarget | WindowTarget):
        capture, file = capture_json(source), ""
    else:
        capture, file = None, str(source or "screenshot.png")
    python = Snippet("Python", "python", _python(base_url, api_key, question, capture, file))
    if platform == "win32":
        return [python, Snippet("PowerShell", "powershell", _powershell(base_url, api_key, question, capture, file))]
    return [python, Snippet("curl", "bash", _curl(base_url, api_key, question, capture, file))]


def _python(base_url: str, api_key: str, question: str, capture: dict[str, object] | None, file: str) -> str:
    if capture is not None:
        imports, image, body = "import httpx\n", "", f'{{"capture": {capture!r}}}'
    else:
        imports = "import base64\nfrom pathlib import Path\n\nimport httpx\n"
        image = f"image = base64.b64encode(Path({file!r}).read_bytes()).decode()\n"
        body = '{"image": f"data:image/png;base64,{image}"}'
    key = f', headers={{"Authorization": "Bearer {api_key}"}}' if api_key else ""
    return (
        f"{imports}\n"
        f'client = httpx.Client(base_url="{base_url}", timeout=600{key})\n'
        f"{image}"
        f'screen = client.post("/screens", json={body}).raise_for_status().json()\n'
        f'answer = client.post(f"/screens/{{screen[\'id\']}}/point", json={{"question": {question!r}}}).json()\n'
        'print(answer["found"], answer["desktop"])\n'
    )


def _curl(base_url: str, api_key: str, question: str, capture: dict[str, object] | None, file: str) -> str:
    key = f" -H 'Authorization: Bearer {api_key}'" if api_key else ""
    if capture is not None:
        screen = f"curl -sS {base_url}/screens{key} -d {_quoted(json.dumps({'capture': capture}, ensure_ascii=False))}"
    else:
        image = f"\"$(base64 < {_quoted(file)} | tr -d '\\n')\""
        screen = (
            f'printf \'{{"image": "data:image/png;base64,%s"}}\' {image} |\n    curl -sS {base_url}/screens{key} -d @-'
        )
    body = _quoted(json.dumps({"question": question}, ensure_ascii=False))
    return f"ID=$({screen} | jq -r .id)\ncurl -sS {base_url}/screens/$ID/point{key} -d {body}\n"


def _powershell(base_url: str, api_key: str, question: str, capture: dict[str, object] | None, file: str) -> str:
    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    post = "-Method Post -ContentType 'application/json; charset=utf-8'"
    post += f' -Headers @{{Authorization="Bearer {api_key}"}}' if api_key else ""
    if capture is not None:
        body = text(json.dumps({"capture": capture}, ensure_ascii=False))
    else:
        data = f"[Convert]::ToBase64String([IO.File]::ReadAllBytes((Resolve-Path {text(file)})))"
        body = f'(@{{image="data:image/png;base64," + {data}}} | ConvertTo-Json)'
    ask = text(json.dumps({"question": question}, ensure_ascii=False))
    return (
        f"$screen = Invoke-RestMethod {base_url}/screens {post} -Body {body}\n"
        f'(Invoke-RestMethod "{base_url}/screens/$($screen.id)/point" {post} -Body {ask}).desktop\n'
    )


def _quoted(text: str) -> str:
    """For a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"
