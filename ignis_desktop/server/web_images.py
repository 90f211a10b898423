"""Pictures from the web, where the server's settings allow it: never from addresses that only this network can reach.

The name is looked up once, every address it has is checked, and the connection is made to a checked address: a name
that answers differently the second time (DNS rebinding) gains nothing. Each redirect is checked in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urljoin

import httpx

MAX_BYTES = 32 * 2**20
SECONDS = 10.0
"""For the whole picture, redirects and all."""
MAX_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)


class FetchError(Exception):
    """A picture cannot be fetched; the message says why and ends with a full stop."""


async def fetch(url: str) -> bytes:
    """The bytes at an http or https address. Raises ``FetchError``."""
    try:
        async with asyncio.timeout(SECONDS):
            # No proxy from the environment: it would connect on our behalf, to whatever it likes.
            async with httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=SECONDS) as client:
                return await _fetch(client, url)
    except TimeoutError:
        raise FetchError(f"it took longer than {SECONDS:g} seconds.") from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        raise FetchError(f"it cannot be fetched ({str(error) or type(error).__name__}).") from None


async def _fetch(client: httpx.AsyncClient, url: str) -> bytes:
    for _ in range(MAX_REDIRECTS + 1):
        asked = httpx.URL(url)
        request = await _pinned(client, asked)
        async with contextlib.aclosing(await client.send(request, stream=True)) as response:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                url = urljoin(str(asked), response.headers["location"])
                continue
            if response.status_code != 200:
                raise FetchError(f"its server answered {response.status_code}.")
            return await _body(response)
    raise FetchError(f"it is redirected more than {MAX_REDIRECTS} times.")


async def _pinned(client: httpx.AsyncClient, url: httpx.URL) -> httpx.Request:
    """A request that goes to a checked address of the URL's host, under the host's own name."""
    if url.scheme not in ("http", "https") or not url.host:
        raise FetchError("only http and https addresses are fetched.")
    if url.userinfo:
        raise FetchError("addresses with a name and a password are not fetched.")
    address = await _public_address(url.host, url.port or (443 if url.scheme == "https" else 80))
    headers = {"host": url.netloc.decode("ascii"), "accept": "image/*", "accept-encoding": "identity"}
    # The certificate is checked against the name, not against the address.
    extensions = {"sni_hostname": url.raw_host.decode("ascii")} if url.scheme == "https" else {}
    return client.build_request("GET", url.copy_with(host=address), headers=headers, extensions=extensions)


async def _public_address(host: str, port: int) -> str:
    """An address of the host. All that it has must be reachable by everyone: one that is not gives the host away."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise FetchError(f"there is no host {host[:80]!r}.") from None
    addresses = [str(entry[4][0]) for entry in found]
    if not addresses or not all(map(is_public, addresses)):
        raise FetchError(f"{host[:80]} is, or may be, on this machine or in its network.")
    return addresses[0]


def is_public(address: str) -> bool:
    """Whether an address is one of the internet's, also where an IPv6 address carries an IPv4 address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    site = isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local  # global to Python, which follows the registry
    return not site and all(_is_public(part) for part in (ip, *_carried(ip)))


def _is_public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _carried(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Sequence[ipaddress.IPv4Address]:
    """IPv4 addresses that packets to an IPv6 address may end at: mapped, 6to4, Teredo, NAT64."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ()
    found = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
    if ip in ipaddress.ip_network("64:ff9b::/96"):
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return [part for part in found if part is not None]


async def _body(response: httpx.Response) -> bytes:
    declared = response.headers.get("content-length", "")
    data = bytearray()
    if not (declared.isdigit() and int(declared) > MAX_BYTES):
        async for piece in response.aiter_raw():
            data += piece
            if len(data) > MAX_BYTES:
                break
        else:
            return bytes(data)
    raise FetchError(f"it is larger than {MAX_BYTES:,} bytes.")
