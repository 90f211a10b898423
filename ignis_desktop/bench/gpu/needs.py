"""What parts of the measurement need beside the standard library: told in one sentence, before anything is loaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

ENGINE = {
    "torch": "torch",
    "jinja2": "jinja2",
    "numpy": "numpy",
    "PIL": "pillow",
    "platformdirs": "platformdirs",
    "psutil": "psutil",
    "pynvml": "nvidia-ml-py",
    "safetensors": "safetensors",
    "tokenizers": "tokenizers",
}
"""Module → the package that brings it."""
GRAMMAR = {"llguidance": "llguidance"}
SERVER = {
    "annotated_types": "annotated-types",
    "fastapi": "fastapi",
    "httpx": "httpx",
    "python_multipart": "python-multipart",
    "prometheus_client": "prometheus-client",
    "pydantic": "pydantic",
    "pydantic_core": "pydantic-core",
    "starlette": "starlette",
    "typing_inspection": "typing-inspection",
    "uvicorn": "uvicorn",
}
NEEDS: dict[str, dict[str, str]] = {
    "model": ENGINE,
    "peer": ENGINE | {"transformers": "transformers"},
    "load": ENGINE,
    "memory": ENGINE | GRAMMAR,
    "gap": ENGINE,
    "serve": ENGINE | GRAMMAR | SERVER,
    "soak": ENGINE | GRAMMAR,
}


def missing(parts: Iterable[str]) -> list[str]:
    """Packages that these parts need and that are not installed, sorted."""
    wanted = {module: package for part in parts for module, package in NEEDS.get(part, {}).items()}
    return sorted({package for module, package in wanted.items() if importlib.util.find_spec(module) is None})


def missing_sentence(parts: Iterable[str]) -> str:
    """ "" when nothing is missing."""
    parts = list(parts)
    lacking = missing(parts)
    if not lacking:
        return ""
    short = [part for part in dict.fromkeys(parts) if missing([part])]
    return (
        f"This machine lacks {', '.join(lacking)}, without which there is no --part {' and no --part '.join(short)}: "
        f"pip install {' '.join(lacking)}."
    )
