"""Addresses that webhooks may not reach, so that no webhook makes the server call into its own network.

A name can lead to another address each time it is asked for, a redirect to another host, and a host can be written in
many ways (`0x7f.1`). The address is therefore judged in the connector, for each socket just before it connects: the
address that is judged is the address that is connected to. `AddressPolicy.check_url` judges what a URL alone shows, to
refuse a webhook when it is registered.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from contrada.errors import ContradaError
from contrada.service.problems import BAD_WEBHOOK

MAX_URL = 2_048  # characters

# The first network that holds an address names it: metadata services of clouds come before the networks around them.
# Sources: the IANA registries of special-purpose addresses. ipaddress has them too, but some versions of Python 3.11
# and 3.12 take private addresses for global ones (CVE-2024-4032), and 168.63.129.16 looks public.
REFUSED = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("100.100.100.200/32", "metadata"),
        ("168.63.129.16/32", "metadata"),
        ("fd00:ec2::254/128", "metadata"),
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
GLOBAL_UNICAST = IPv6Network("2000::/3")  # all that is assigned of IPv6 for hosts; the rest is reserved
PRIVATE_KINDS = frozenset({"private", "shared", "loopback"})  # these `allow_private` allows


class RefusedAddressError(ContradaError, OSError):
    """A connection to an address that webhooks may not reach was refused, before anything was sent.

    The message names the address and is for the log of the server: to the owner of a webhook it would show how names
    resolve in the network of the server.
    """


class AddressPolicy:
    """Decides which addresses webhooks may reach: public ones, and those in the networks `allow`.

    `allow_private` allows private, shared and loopback addresses too. Link-local ones, where clouds serve credentials,
    and IPv6 addresses that hold IPv4 addresses stay refused unless `allow` names them.

    >>> policy = AddressPolicy(allow=["10.1.0.0/16"])
    >>> policy.refusal("93.184.216.34"), policy.refusal("10.1.2.3"), policy.refusal("169.254.169.254")
    (None, None, 'link-local')
    """

    def __init__(self, allow_private: bool = False, allow: Iterable[str] = ()) -> None:
        self._allow: tuple[IPv4Network | IPv6Network, ...] = tuple(ip_network(network) for network in allow)
        self._allowed_kinds = PRIVATE_KINDS if allow_private else frozenset[str]()

    def refusal(self, address: str) -> str | None:
        """Return the kind of an address that may not be reached, or None if it may; a name is "not an address"."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return "not an address"
        if isinstance(parsed, IPv6Address) and parsed.scope_id is not None:
            return "scoped"
        if any(parsed in network for network in self._allow):
            return None
        kind = _kind(parsed)
        return None if kind in self._allowed_kinds else kind

    def check_url(self, url: str) -> URL:
        """Return the URL of a webhook; raise a Problem (400) if the URL alone shows that it may not be called.

        >>> AddressPolicy().check_url("http://0x7f.1/hook")
        Traceback (most recent call last):
        contrada.service.problems.Problem: Bad webhook: the host '0x7f.1' is a number; write an IPv4 address as four
        decimal numbers
        """
        parsed = _parse_url(url)
        host = (parsed.host or "").rstrip(".").lower()
        if _is_numeric(host) and not _is_dotted_decimal(parsed.host or ""):
            raise BAD_WEBHOOK(f"the host {host!r} is a number; write an IPv4 address as four decimal numbers")
        is_local = host == "localhost" or host.endswith(".localhost")
        addresses = ["127.0.0.1", "::1"] if is_local else [host] if ":" in host or _is_numeric(host) else []
        kinds = [self.refusal(address) for address in addresses]
        if kinds and all(kinds):
            raise BAD_WEBHOOK(f"webhooks may not call {host}: the address is {kinds[0]}")
        return parsed

    def open_socket(self, address_info: Any) -> socket.socket:
        """Return a socket for an address that will be connected to; raise RefusedAddressError if it may not be.

        `address_info` is a tuple as `socket.getaddrinfo` returns it.
        """
        family, kind, protocol, _, (host, *_) = address_info
        refusal = self.refusal(host)
        if refusal is not None:
            raise RefusedAddressError(errno.EACCES, f"webhooks may not call {host}: the address is {refusal}")
        return socket.socket(family, kind, protocol)

    def connector(self, resolver: AbstractResolver | None = None, **options: Any) -> aiohttp.TCPConnector:
        """Return an aiohttp connector that connects to allowed addresses only, redirects included.

        A refusal is an aiohttp.ClientConnectorError, like an endpoint that is away. Requests must not go through a
        proxy: the connector would see the address of the proxy only.
        """
        return aiohttp.TCPConnector(resolver=resolver, socket_factory=self.open_socket, **options)


def _kind(address: IPv4Address | IPv6Address) -> str | None:
    """Return the kind of an address that is not public, or None."""
    found = next((kind for network, kind in REFUSED if address in network), None)
    if found is None and isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return "reserved"
    return found


def _parse_url(url: str) -> URL:
    """Return a URL as aiohttp will read it; raise a Problem (400) unless it is plain http or https with a host."""
    if len(url) > MAX_URL:
        raise BAD_WEBHOOK(f"the URL has {len(url):,} characters; at most {MAX_URL:,} are allowed")
    if not url.isascii() or not url.isprintable() or re.search(r"[\s\\]", url):
        raise BAD_WEBHOOK("the URL has spaces, backslashes, or characters beyond ASCII; percent-encode them")
    try:
        parsed = URL(url)
        host, port = parsed.host, parsed.port
    except (ValueError, UnicodeError) as error:
        raise BAD_WEBHOOK(f"the URL cannot be read: {error}") from error
    if parsed.scheme not in ("http", "https") or not host or port == 0:
        raise BAD_WEBHOOK("need a URL such as https://example.org/hook")
    if parsed.user is not None or parsed.password is not None:
        raise BAD_WEBHOOK("the URL may not have a user name or password")
    return parsed


def _is_numeric(host: str) -> bool:
    """Return True if a host is an IPv4 address in some spelling: its last label is a number, as no domain's is."""
    return re.fullmatch(r"[0-9]+|0x[0-9a-f]*", host.rpartition(".")[2]) is not None


def _is_dotted_decimal(host: str) -> bool:
    try:
        return str(IPv4Address(host)) == host
    except ValueError:
        return False
