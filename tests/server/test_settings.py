"""Who may reach the server: Host names, keys, addresses."""

from __future__ import annotations

import socket

import pytest

from ignis_desktop.server.settings import ServerError, Settings, host_name


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8000", "localhost"),
        ("localhost.:8000", "localhost"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]:8000", "::1"),
        ("[::1]", "::1"),
        ("", ""),
        ("   ", ""),
        ("localhost:http", ""),
        ("[::1", ""),
        ("[evil.example]", ""),
        ("[::1]evil", ""),
    ],
)
def test_host_name(header: str, name: str) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(
    "header", ["evil.example", "evil.example:8000", "", "localhost.evil.example", "192.168.1.5", "127.0.0.1.nip.io"]
)
def test_a_loopback_server_answers_to_loopback_names_only(header: str) -> None:
    settings = Settings()
    assert settings.accepts_host("127.0.0.1:8000")
    assert settings.accepts_host("[::1]:8000")
    assert not settings.accepts_host(header)


def test_a_server_on_all_addresses_answers_to_addresses_but_not_to_foreign_names() -> None:
    settings = Settings(host="0.0.0.0", api_key="k", allowed_hosts=("GPU.lan",))
    assert settings.accepts_host("192.168.1.5:8000")
    assert settings.accepts_host("gpu.lan")
    assert settings.accepts_host(socket.gethostname())
    assert not settings.accepts_host("evil.example")


def test_every_name_can_be_allowed() -> None:
    settings = Settings(allowed_hosts=("*",))
    assert settings.accepts_host("anything.example")
    assert not settings.accepts_host("")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "gpu.lan"])
def test_listening_beyond_loopback_needs_a_key(host: str) -> None:
    with pytest.raises(ServerError, match="API key is needed"):
        Settings(host=host)
    assert not Settings(host=host, api_key="k").is_loopback


@pytest.mark.parametrize("key", ["", "two words", "schlüssel"])
def test_keys_that_fit_no_header_are_refused(key: str) -> None:
    with pytest.raises(ServerError, match="API key"):
        Settings(api_key=key)


@pytest.mark.parametrize("port", [-1, 65536])
def test_ports_out_of_range_are_refused(port: int) -> None:
    with pytest.raises(ServerError, match="port"):
        Settings(port=port)
