"""What the local endpoint needs of its gateway, as one interface."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, Protocol

import msgspec

from auth.invites import Invite
from auth.scopes import Scope
from gateway.clock import Clock
from gateway.endpoints.turn_sockets import TurnSockets
from gateway.engine.effects import Invited
from gateway.home import Home
from gateway.runtime import Runtime
from outbox.ids import NodeId
from outbox.reader import JournalReader
from outbox.records import Identity


class LinkState(StrEnum):
    """How a link to another node stands."""

    UP = "up"
    CONNECTING = "connecting"
    DOWN = "down"


class LinkStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One link to another node."""

    node: NodeId
    state: LinkState
    since_ms: int
    """Since when it stands like this; milliseconds since 1970."""
    last_error: str = ""
    dialled_by: Literal["us", "them"] = "us"


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What only the assembled gateway knows about itself."""

    software: str
    pid: int
    started_at_ms: int
    endpoints: tuple[str, ...] = ()
    """URLs by which other nodes reach this one."""
    room_loaded: bool = True


class LocalDesk(Protocol):
    """The gateway as its local endpoint sees it."""

    @property
    def runtime(self) -> Runtime:
        """Takes requests, answers after their commit."""
        ...

    @property
    def reader(self) -> JournalReader:
        """A reader of the journal with its own connection, used on the event loop's thread."""
        ...

    @property
    def home(self) -> Home:
        """Where agents' tokens are written."""
        ...

    @property
    def identity(self) -> Identity:
        """Whose gateway this is."""
        ...

    @property
    def clock(self) -> Clock:
        """Time and entropy."""
        ...

    @property
    def turns(self) -> TurnSockets:
        """Where the engine's hand-overs go."""
        ...

    def authenticate(self, token: str | None, *, trusted_socket: bool) -> Scope | None:
        """Who asks; None for nobody. Without a token only a trusted socket is somebody: the admin."""
        ...

    def links(self) -> Sequence[LinkStatus]:
        """All links, by node."""
        ...

    def join_code(self, invited: Invited) -> str:
        """The word to copy for an invite that was just made."""
        ...

    def invites(self) -> Sequence[Invite]:
        """All invites of this node, newest first."""
        ...

    def node_status(self) -> NodeStatus:
        """Software, process, addresses."""
        ...
