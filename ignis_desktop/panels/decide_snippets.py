"""A decide request as code to paste."""

from __future__ import annotations

import sys


def curl(base_url: str, api_key: str, request: str, platform: str = sys.platform) -> str:
    """For a shell, with the request in it; PowerShell's own words on Windows. ``base_url`` ends in /v1."""
    if platform == "win32":
        key = f' -Headers @{{Authorization="Bearer {api_key}"}}' if api_key else ""
        return (
            f"$body = @'\n{request.rstrip()}\n'@\n"
            f"Invoke-RestMethod {base_url}/decide -Method Post{key} `\n"
            "  -ContentType 'application/json; charset=utf-8' -Body ([Text.Encoding]::UTF8.GetBytes($body))\n"
        )
    key = f"  -H 'Authorization: Bearer {api_key}' \\\n" if api_key else ""
    return (
        f"curl -sS {base_url}/decide \\\n{key}  -H 'Content-Type: application/json' \\\n"
        f"  --data-binary @- <<'REQUEST'\n{request.rstrip()}\nREQUEST\n"
    )


def python(base_url: str, api_key: str, request: str) -> str:
    """With the request as text, so that its numbers stay as they were written."""
    headers = '{"Content-Type": "application/json"'
    headers += f', "Authorization": "Bearer {api_key}"}}' if api_key else "}"
    quoted = request.rstrip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return (
        "import json\n"
        "from urllib.request import Request, urlopen\n\n"
        f'body = """{quoted}"""\n'
        f'request = Request("{base_url}/decide", body.encode(), {headers})\n'
        "with urlopen(request) as response:\n"
        '    print(json.dumps(json.load(response)["answers"], indent=1))\n'
    )
