"""What the local endpoint needs of its gateway, as one interface."""

from collections.abc import Sequence
from typing import Protocol

from auth.invites import Invite
from auth.scopes import Scope
from gateway.activity import Activity
from gateway.api.mesh import LinkStatus, NodeStatus
from gateway.api.operator import RevocationAnswer
from gateway.blobs.keeper import BlobKeeper
from gateway.clock import Clock
from gateway.endpoints.limits import ROWS_MAX
from gateway.endpoints.surroundings import Surroundings
from gateway.endpoints.turn_sockets import TurnSockets
from gateway.engine.effects import Invited
from gateway.engine.maintenance import MAINTENANCE
from gateway.home import Home
from gateway.lookups import Lookups
from gateway.runtime import Runtime
from outbox.ids import AgentId, NodeId
from outbox.limits import NEVER_MS
from outbox.reader import JournalReader
from outbox.records import Identity


class LocalDesk(Protocol):
    """The gateway as its local endpoint sees it."""

    @property
    def runtime(self) -> Runtime:
        """Takes requests, answers after their commit."""
        ...

    @property
    def reader(self) -> JournalReader:
        """A reader of the journal with its own connection, for single rows: used on the loop's thread."""
        ...

    @property
    def lookups(self) -> Lookups:
        """What lists and counts are asked of, and whatever else may take long."""
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

    @property
    def blobs(self) -> BlobKeeper:
        """What is too large for a message."""
        ...

    @property
    def activity(self) -> Activity:
        """When agents of this node last said something."""
        ...

    def last_active_ms(self, node: NodeId, agent: AgentId) -> int | None:
        """When another node last heard of an agent, by its own clock; None when that is not known."""
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

    async def revoke(self, node: NodeId, *, ban: bool, reason: str) -> RevocationAnswer:
        """Put a node out of the mesh. Raises NotFound, Forbidden with who may."""
        ...

    def node_status(self) -> NodeStatus:
        """Software, process, addresses."""
        ...


def surroundings_of(desk: LocalDesk) -> Surroundings:
    """The other nodes as this gateway sees them now. Of open incidents, which may be thousands, only those
    are read that say something of that."""
    incidents = desk.reader.open_incidents((MAINTENANCE,), NEVER_MS, ROWS_MAX)
    return Surroundings.of(
        desk.identity.node, desk.clock.wall_ms(), desk.runtime.view, desk.links(), incidents
    )
