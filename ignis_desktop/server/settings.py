"""How the server listens and what it lets in."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class ServerError(Exception):
    """The server cannot start; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes any free port."""
    api_key: str | None = None
    """None lets everyone on this machine in; mandatory when ``host`` is reachable from other machines."""
    allowed_hosts: tuple[str, ...] = ()
    """Names accepted in the Host header besides the loopback names and ``host``; ``*`` accepts every name."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose web pages may use the server; empty: none, ``*``: all."""
    max_body_bytes: int = 64 * 2**20
    max_header_bytes: int = 32 * 2**10
    head_seconds: float = 30.0
    """Seconds that a request's headers may take, counted from the connection's beginning."""
    body_seconds: float = 60.0
    """Seconds that a body may take, and more where it comes at a fair pace (``BodyLimit.PACE``)."""
    accept_any_model: bool = False
    """Answer for the loaded model whatever name a request carries."""
    deadline: float = 600.0
    """Seconds after which a request without an answer is given up (504)."""
    max_screens: int = 8
    """Screenshots kept encoded at once; the least recently used goes first."""
    capture: bool = True
    """Whether clients may have this machine's screen captured (``POST /v1/screens`` with ``capture``)."""
    fetch_images: bool = False
    """Whether pictures may be named by their address on the web; the server then fetches them."""
    max_file_bytes: int = 32 * 2**20
    """Of one uploaded file."""
    max_files_bytes: int = 2**30
    """Of all uploaded files together."""
    data_directory: Path | None = None
    """Where uploaded files and responses are kept; None is a folder among the user's data."""
    request_log_size: int = 1000
    advertise: bool = True
    """Write the runtime file through which local commands find this server."""
    runtime_directory: Path | None = None
    """Where to write it; None is a folder among the user's data."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ServerError(f"The port must be 0 to 65535, not {self.port}.")
        if self.api_key is not None and (not self.api_key or not self.api_key.isascii() or " " in self.api_key):
            raise ServerError("The API key must be non-empty ASCII without spaces, so that it fits a header.")
        if self.api_key is None and not self.is_loopback:
            raise ServerError(
                f"Listening on {self.host} lets other machines in, so an API key is needed: "
                "give one with --api-key, or listen on 127.0.0.1."
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach ``host``."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def accepts_host(self, header: str) -> bool:
        """Whether a Host header names this server: the guard against DNS rebinding.

        A page that rebinds its own name to 127.0.0.1 still sends that name. An address cannot be rebound, so
        addresses are accepted when the server listens on all of the machine's.
        """
        name = host_name(header)
        if not name:
            return False
        if "*" in self.allowed_hosts or name in LOOPBACK_NAMES or name == self.host.lower():
            return True
        if name in (allowed.lower() for allowed in self.allowed_hosts):
            return True
        if self.is_loopback:
            return False
        machine = socket.gethostname().lower()
        return name in (machine, f"{machine}.local") or _is_address(name)


def host_name(header: str) -> str:
    """The name in a Host header, without port and brackets, in lower case; "" when it is not well formed."""
    header = header.strip().lower()
    if header.startswith("["):
        name, bracket, rest = header[1:].partition("]")
        return name if bracket and _is_address(name) and (not rest or (rest[1:].isdigit() and rest[0] == ":")) else ""
    name, colon, port = header.partition(":")
    return name.removesuffix(".") if not colon or port.isdigit() else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
