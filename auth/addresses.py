"""Which addresses a gateway may have: a join code is input from outside, like any other.

Never: other schemes, user info, query or fragment, link-local and metadata addresses, "any" and multicast
addresses, and hosts like ``2130706433`` or ``0x7f.1`` that resolvers read as addresses in their own way.
Plain ``http`` only to loopback, unless the caller knows that a tunnel or tailnet carries it.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from auth.errors import BadJoinCode
from auth.limits import HOSTS_REMEMBERED, JOIN_URL_CHARS_MAX

_Address = IPv4Address | IPv6Address

_METADATA = tuple(ip_network(text) for text in ("100.100.100.200/32", "fd00:ec2::254/128", "192.0.0.192/32"))
"""Cloud metadata services outside 169.254.0.0/16 (Alibaba, AWS over IPv6, Oracle)."""

_METADATA_NAMES = ("metadata", "metadata.google.internal", "instance-data")
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_NUMERIC_LABEL = re.compile(r"([0-9]+|0x[0-9a-f]*)", re.ASCII)
_PRINTABLE = re.compile(r"[!-\[\]-~]+", re.ASCII)
"""ASCII without space, control characters and the backslash, which URL readers disagree about."""


@lru_cache(HOSTS_REMEMBERED)
def is_loopback(host: str) -> bool:
    """Whether a host, as a URL or a setting names it, is this machine."""
    address = _address(host)
    return address.is_loopback if address is not None else host == "localhost"


def check_gateway_url(url: str, *, allow_plain: bool = False) -> str:
    """The URL without a trailing slash, if it may be called. Raises BadJoinCode."""
    if len(url) > JOIN_URL_CHARS_MAX or not _PRINTABLE.fullmatch(url):
        raise BadJoinCode("a gateway URL is too long or has characters that do not belong there")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadJoinCode("a gateway URL cannot be read") from None
    _check_form(parts, port, url)
    loopback = _check_host(parts.hostname or "")
    if parts.scheme == "http" and not (loopback or allow_plain):
        raise BadJoinCode(
            "plain http to another machine is refused",
            hint="use https, or allow plain http when a tunnel or tailnet carries it",
        )
    return url.rstrip("/")


def _check_form(parts: SplitResult, port: int | None, url: str) -> None:
    if parts.scheme not in {"http", "https"}:
        raise BadJoinCode("a gateway URL begins with http:// or https://")
    extra = parts.username is not None or parts.password is not None or "?" in url or "#" in url
    if extra or parts.path not in {"", "/"} or port == 0:
        raise BadJoinCode("a gateway URL has a host and a port, nothing else")


def _check_host(host: str) -> bool:
    """Whether the host is this machine. Raises BadJoinCode for one that is never called."""
    address = _address(host)
    if address is not None:
        _check_address(address)
        return address.is_loopback
    name = host.rstrip(".")
    if not _HOST.fullmatch(name) or _NUMERIC_LABEL.fullmatch(name.rsplit(".", 1)[-1]):
        raise BadJoinCode("a gateway URL has a host that is neither a name nor an address")
    if name in _METADATA_NAMES:
        raise BadJoinCode("a gateway URL names a metadata service")
    return name == "localhost"


def _address(host: str) -> _Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _check_address(address: _Address) -> None:
    refused = address.is_link_local or address.is_multicast or address.is_unspecified
    if refused or any(address in network for network in _METADATA):
        raise BadJoinCode("a gateway URL names an address that is never a gateway")
