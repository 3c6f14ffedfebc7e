"""Why a link is over.

::

    PeerError
    ├── SocketClosed     socket_closed     the other side is gone
    ├── LinkEnded        link_ended        for a reason that was said
    ├── VersionRefused   version           no version of the frames that both sides speak
    ├── StreamRefused    stream_refused    the peer's outbox does not follow on from what was read of it
    ├── CreditOverrun    credit_overrun    the peer sent more than it was allowed to
    ├── ReaderRefused    forbidden         the peer wants to read what is for others
    ├── PeerRevoked      node_revoked      the peer's key belongs to the mesh no more
    └── TooManyStreams   too_many_streams  the peer offers more streams than a mesh can have
"""

from outbox.errors import PeerError


class SocketClosed(PeerError):
    """The other side is gone."""

    code = "socket_closed"
    retryable = True


class LinkEnded(PeerError):
    """The link is over for a reason that was said."""

    code = "link_ended"
    retryable = True


class VersionRefused(PeerError):
    """No version of the frames that both sides speak; an update of one of them ends that."""

    code = "version"


class StreamRefused(PeerError):
    """An outbox does not follow on from what was read of it, or does not come although it is offered."""

    code = "stream_refused"


class CreditOverrun(PeerError):
    """The peer sent more than it was allowed to."""

    code = "credit_overrun"


class ReaderRefused(PeerError):
    """The peer wants to read what is for others, and was not admitted for that."""

    code = "forbidden"


class TooManyStreams(PeerError):
    """The peer offers more streams than a mesh can have."""

    code = "too_many_streams"


class PeerRevoked(PeerError):
    """The peer's key belongs to the mesh no more."""

    code = "node_revoked"
