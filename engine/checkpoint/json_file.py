"""JSON files of a checkpoint folder; apart from the tensors, so that looking a model up does not import torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.checkpoint.errors import CheckpointError


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file, or one sentence saying why not."""
    try:
        parsed = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(
            f"{file.parent} has no {file.name}; give the folder that holds a whole checkpoint."
        ) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CheckpointError(f"{file} is not readable JSON ({error}); download it again.") from None
    if not isinstance(parsed, dict):
        raise CheckpointError(f"{file} holds no JSON object; download it again.")
    return parsed
