"""How this node is reached, and where it was invited."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from outbox.ids import NodeId


class Issuer(msgspec.Struct, frozen=True):
    """The gateway that invited this node: how it finds the mesh again without a state room."""

    node: NodeId
    url: str
    key: str
    """Its public key in base64url."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The addresses of one running gateway."""

    endpoints: tuple[str, ...]
    """Base URLs that it publishes; none: it only dials."""
    issuer: Issuer | None
    loopback: bool
    """The whole mesh lives on this machine, so loopback addresses of others mean something."""


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def reach_of(endpoints: tuple[str, ...], issuer: Issuer | None, host: str, port: int) -> Reach:
    """What follows from the settings and from the port that is listened on.

    Without settings a node is reached where it listens if its mesh lives on this machine; else it dials.
    """
    loopback = is_loopback(issuer.url) if issuer is not None else all(is_loopback(url) for url in endpoints)
    if endpoints:
        return Reach(endpoints, issuer, loopback and all(is_loopback(url) for url in endpoints))
    own = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    return Reach((own,) if loopback and is_loopback(own) else (), issuer, loopback)
