"""What to paste so that a client uses the server: the real address and key, ready to run. docs/clients.md shows the
same texts, and a test holds the two together."""

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
    file: str = ""
    """Where it goes; "" is what is run."""


def snippets(base_url: str, api_key: str, model: str, platform: str = sys.platform) -> list[Snippet]:
    """``base_url`` ends in /v1; an empty ``api_key`` means that the server asks for none."""
    key = api_key or "none"  # most clients will not start without any
    if platform == "win32":
        shell, variables = "powershell", _powershell_variables
        plain = Snippet("PowerShell", shell, _powershell(base_url, api_key, model))
    else:
        shell, variables = "bash", _bash_variables
        plain = Snippet("curl", shell, _curl(base_url, api_key, model))
    root = base_url.removesuffix("/v1")
    return [
        Snippet("OpenAI SDK", "python", _openai(base_url, key, model)),
        Snippet("Anthropic SDK", "python", _anthropic(root, key, model)),
        plain,
        Snippet("Codex", "toml", _codex(base_url, api_key, model), "~/.codex/config.toml"),
        Snippet(
            "Claude Code",
            shell,
            variables(
                ANTHROPIC_BASE_URL=root,
                ANTHROPIC_AUTH_TOKEN=key,
                ANTHROPIC_MODEL=model,
                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            )
            + "claude\n",
        ),
        Snippet("LiteLLM", "python", _litellm(base_url, key, model)),
        Snippet(
            "aider",
            shell,
            variables(OPENAI_API_BASE=base_url, OPENAI_API_KEY=key) + f"aider --model openai/{model}\n",
        ),
        Snippet("Continue", "yaml", _continue(base_url, key, model), "~/.continue/config.yaml"),
        Snippet("Others", shell, variables(OPENAI_BASE_URL=base_url, OPENAI_API_KEY=key, OPENAI_MODEL=model)),
    ]


def _openai(base_url: str, key: str, model: str) -> str:
    return dedent(
        f"""\
        from openai import OpenAI

        client = OpenAI(
            base_url="{base_url}",
            api_key="{key}",
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


def _anthropic(root: str, key: str, model: str) -> str:
    return dedent(
        f"""\
        from anthropic import Anthropic

        client = Anthropic(
            base_url="{root}",
            api_key="{key}",
        )
        with client.messages.stream(
            model="{model}",
            max_tokens=1024,
            messages=[{{"role": "user", "content": "{_QUESTION}"}}],
        ) as stream:
            for text in stream.text_stream:
                print(text, end="", flush=True)
        """
    )


def _litellm(base_url: str, key: str, model: str) -> str:
    return dedent(
        f"""\
        from litellm import completion

        answer = completion(
            model="openai/{model}",
            api_base="{base_url}",
            api_key="{key}",
            messages=[{{"role": "user", "content": "{_QUESTION}"}}],
        )
        print(answer.choices[0].message.content)
        """
    )


def _codex(base_url: str, api_key: str, model: str) -> str:
    key = f'http_headers = {{ Authorization = "Bearer {api_key}" }}\n' if api_key else ""
    return (
        f'model = "{model}"\n'
        'model_provider = "ignis"\n\n'
        "[model_providers.ignis]\n"
        'name = "Ignis"\n'
        f'base_url = "{base_url}"\n'
        'wire_api = "responses"\n'
        f"{key}"
    )


def _continue(base_url: str, key: str, model: str) -> str:
    return dedent(
        f"""\
        name: Ignis
        version: 1.0.0
        schema: v1
        models:
          - name: Ignis
            provider: openai
            model: {model}
            apiBase: {base_url}
            apiKey: {key}
            roles: [chat, edit, apply]
        """
    )


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


def _bash_variables(**values: str) -> str:
    return "".join(f'export {name}="{value}"\n' for name, value in values.items())


def _powershell_variables(**values: str) -> str:
    return "".join(f'$env:{name}="{value}"\n' for name, value in values.items())
