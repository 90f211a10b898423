"""How a command ends when it does not end well."""

from __future__ import annotations

FAULT = 1
USAGE = 2
NOT_FOUND = 3
INTERRUPTED = 130


class CommandError(Exception):
    """Ends the command: one sentence on standard error and an exit code."""

    def __init__(self, message: str, exit_code: int = FAULT) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
