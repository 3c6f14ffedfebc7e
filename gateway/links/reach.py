"""How this node is reached, and where it was invited."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from auth.addresses import is_loopback
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
    names: frozenset[str] = frozenset()
    """What a peer's Host header may say."""


def is_local(url: str) -> bool:
    """Whether a URL names this machine; one that cannot be read names no other one either."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return True


def reach_of(endpoints: tuple[str, ...], issuer: Issuer | None, host: str, port: int) -> Reach:
    """What follows from the settings and from the port that is listened on.

    Without settings a node is reached where it listens if its mesh lives on this machine; else it dials.
    """
    loopback = is_local(issuer.url) if issuer is not None else all(is_local(url) for url in endpoints)
    own = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    published = endpoints
    if endpoints:
        loopback = loopback and all(is_local(url) for url in endpoints)
    elif loopback and is_local(own):
        published = (own,)
    local = (own, f"http://127.0.0.1:{port}", f"http://localhost:{port}")
    names = frozenset(name for url in (*published, *local) for name in _names(url))
    return Reach(published, issuer, loopback, names)


def _names(url: str) -> set[str]:
    """How clients write the host of a URL: with its port, and without where the port is the scheme's own."""
    parts = urlsplit(url.lower())
    usual = {"http": 80, "https": 443}[parts.scheme]
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    port = parts.port or usual
    return {f"{host}:{port}", host} if port == usual else {f"{host}:{port}"}
