"""What can go wrong while installing, each as one sentence that says what to do."""

from __future__ import annotations

import re
from pathlib import Path


class InstallError(Exception):
    """The message is the sentence to print."""


_NETWORK = (
    "connection refused|failed to establish a new connection|name resolution|getaddrinfo failed|network is unreachable|"
    "name or service not known|no route to host|timed out|connecttimeout|connection to .* could not|proxyerror|"
    "cannot connect to proxy|remote end closed connection|connection aborted|connection reset|max retries exceeded"
)
_RULES: tuple[tuple[str, str], ...] = (
    (
        r"no space left on device|errno 28\b|not enough space on the disk|disk quota exceeded",
        "The disk is full. Free several GB (pip's cache counts: pip cache purge) and run the same command again.",
    ),
    (
        r"certificate_verify_failed|sslerror|certificate verify failed",
        "The package index's certificate could not be checked. Set PIP_CERT to your network's certificate file, or "
        "correct the clock, and run the same command again.",
    ),
    (
        r"\b40[137] client error|http error 40[137]|error: user for ",
        "The package index refused access. Check the user name and key in PIP_INDEX_URL or pip's configuration.",
    ),
    (
        _NETWORK,
        "The package index is out of reach. Check the network or the proxy (HTTPS_PROXY), or set PIP_INDEX_URL to a "
        "mirror; then run the same command again.",
    ),
    (
        r"do not match the hashes|hash mismatch|is not a valid wheel|badzipfile|checksum",
        "A download was damaged. Run the same command again; if it repeats, empty pip's cache: pip cache purge",
    ),
    (
        r"permission denied|errno 13\b|access is denied",
        "Some files could not be written: check who owns the project folder and pip's cache.",
    ),
    (
        r"resolutionimpossible|conflicting dependencies",
        "The wanted packages contradict each other or a constraint file. Look for PIP_CONSTRAINT and a pip.conf.",
    ),
)
_MISSING = re.compile(r"no matching distribution found for ([^\s;(]+)", re.IGNORECASE)


def explain(output: str, log: Path) -> str:
    """The sentence for what pip printed (``output``, standard output and error together)."""
    for pattern, sentence in _RULES:
        if re.search(pattern, output, re.IGNORECASE):
            return sentence
    missing = _MISSING.search(output)
    if missing and "from versions: none" in output:
        return (
            f"The package index gave no version of {missing[1]} at all: it is out of reach or has none. "
            "Check the network and PIP_INDEX_URL, then run the same command again."
        )
    if missing:
        return (
            f"The package index has no {missing[1]} for this Python and system. "
            "Try Python 3.12, or another index with PIP_INDEX_URL."
        )
    errors = [line.strip() for line in output.splitlines() if line.strip().lower().startswith("error")]
    reason = errors[-1][:300] if errors else "pip gave no reason"
    return f"Installing failed: {reason}. All that pip said is in {log}"
