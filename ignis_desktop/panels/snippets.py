"""What to paste to use the server: the real address and key, ready to run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from textwrap import dedent

_QUESTION = "Say hello."


@dataclass(frozen=True)
class Snippet:
    title: str
    language: str
    code: str


def snippets(base_url: str, api_key: str, model: str, platform: str = sys.platform) -> list[Snippet]:
    """``base_url`` ends in /v1; an empty ``api_key`` means that the server asks for none."""
    python = dedent(
        f"""\
        from openai import OpenAI

        client = OpenAI(
            base_url="{base_url}",
            api_key="{api_key or "none"}",
        )
        stream = client.chat.completions.create(
            model="{model}",
            messages=[{{"role": "user", "content": "{_QUESTION}"}}],
            stream=True,
        )
        for chunk in stream:
            text = chunk.choices[0].delta.content or ""
            print(text, end="", flush=True)
        """
    )
    if platform == "win32":
        return [
            Snippet("Python", "python", python),
            Snippet("PowerShell", "powershell", _powershell(base_url, api_key, model)),
            Snippet("Agents", "powershell", _variables('$env:{name}="{value}"', base_url, api_key, model)),
        ]
    return [
        Snippet("Python", "python", python),
        Snippet("curl", "bash", _curl(base_url, api_key, model)),
        Snippet("Agents", "bash", _variables('export {name}="{value}"', base_url, api_key, model)),
    ]


def _curl(base_url: str, api_key: str, model: str) -> str:
    key = f"  -H 'Authorization: Bearer {api_key}' \\\n" if api_key else ""
    return (
        f"curl -sS -N {base_url}/chat/completions \\\n"
        f"{key}"
        "  -H 'Content-Type: application/json' \\\n"
        f"""  -d '{{"model": "{model}", "stream": true,\n"""
        f"""       "messages": [{{"role": "user", "content": "{_QUESTION}"}}]}}'\n"""
    )


def _powershell(base_url: str, api_key: str, model: str) -> str:
    key = f' -Headers @{{Authorization="Bearer {api_key}"}}' if api_key else ""
    return (
        f"""$body = '{{"model": "{model}", "messages": [{{"role": "user", "content": "{_QUESTION}"}}]}}'\n"""
        f"(Invoke-RestMethod {base_url}/chat/completions -Method Post{key} `\n"
        "  -ContentType application/json -Body $body).choices[0].message.content\n"
    )


def _variables(form: str, base_url: str, api_key: str, model: str) -> str:
    values = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": api_key or "none", "OPENAI_MODEL": model}
    return "".join(form.format(name=name, value=value) + "\n" for name, value in values.items())
