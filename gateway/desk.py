"""The running gateway as its local endpoint sees it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from auth.gatekeeper import Gatekeeper
from auth.invites import Invite, read_invite_token
from auth.joincodes import encode_join_code
from auth.scopes import Admin, Scope
from gateway.activity import Activity
from gateway.api.mesh import LinkState, LinkStatus, NodeStatus
from gateway.api.operator import RevocationAnswer
from gateway.blobs.keeper import BlobKeeper
from gateway.clock import Clock
from gateway.config import HostWord
from gateway.endpoints.turn_sockets import TurnSockets
from gateway.engine.effects import Invited
from gateway.home import Home
from gateway.links.peering import Peering
from gateway.links.reach import Reach
from gateway.links.registry import Registry
from gateway.lookups import Lookups
from gateway.revoking import Revoker
from gateway.rooms import SOFTWARE, Rooms
from gateway.runtime import Runtime
from gateway.tokens import TokenTable
from outbox.ids import AgentId, NodeId
from outbox.reader import JournalReader
from outbox.records import Identity
from stateroom.dialer import DialState
from stateroom.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayDesk:
    """Implements ``gateway.endpoints.desk.LocalDesk``."""

    runtime: Runtime
    reader: JournalReader
    lookups: Lookups
    home: Home
    turns: TurnSockets
    gatekeeper: Gatekeeper
    registry: Registry
    peering: Peering
    reach: Reach
    local_port: int
    """On loopback; 0: agents have the Unix socket alone."""
    started_at_ms: int
    engine_host: HostWord
    clock: Clock
    tokens: TokenTable
    blobs: BlobKeeper
    activity: Activity
    rooms: Rooms
    revoker: Revoker

    @property
    def identity(self) -> Identity:
        """Whose gateway this is, and its epoch of now."""
        return self.reader.identity()

    def authenticate(self, token: str | None, *, trusted_socket: bool) -> Scope | None:
        """Who asks; without a token only a trusted socket is somebody: the admin."""
        if token is None:
            return Admin() if trusted_socket else None
        return self.tokens.scope(token)

    def last_active_ms(self, node: NodeId, agent: AgentId) -> int | None:
        """When another node last heard of an agent, by its own clock."""
        return self.rooms.last_active_ms(node, agent)

    def links(self) -> Sequence[LinkStatus]:
        """All links, by node."""
        own = self.identity.node
        return [self._link(peer.node) for peer in self.runtime.view.peers(own)]

    def _link(self, peer: NodeId) -> LinkStatus:
        link = self.registry.link(peer)
        report = self.peering.report(peer)
        if link is not None:
            by: Literal["us", "them"] = "us" if link.dialled else "them"
            clock = link.offset.told
            return LinkStatus(
                node=peer,
                state=LinkState.UP,
                since_ms=link.since_ms,
                dialled_by=by,
                clock_ahead_ms=clock.offset_ms if clock is not None else None,
                clock_within_ms=clock.within_ms if clock is not None else None,
            )
        busy = report is not None and report.state is DialState.CONNECTING
        down = self.registry.down(peer)
        dialling = report.last_error if report is not None else ""
        return LinkStatus(
            node=peer,
            state=LinkState.CONNECTING if busy else LinkState.DOWN,
            since_ms=down.since_ms if down is not None else self.started_at_ms,
            last_error=dialling or (down.why if down is not None else ""),
            dialled_by="us" if report is not None else "them",
        )

    def join_code(self, invited: Invited) -> str:
        """The word to copy for an invite that was just made."""
        token = read_invite_token(invited.token)
        invite = next(row for row in self.gatekeeper.invites() if row.id == token.id)
        code = self.gatekeeper.join_code(invite, token, self.reach.endpoints)
        return encode_join_code(code)

    def invites(self) -> Sequence[Invite]:
        """All invites of this node, newest first."""
        return self.gatekeeper.invites()[::-1]

    async def revoke(self, node: NodeId, *, ban: bool, reason: str) -> RevocationAnswer:
        """Put a node out of the mesh."""
        return await self.revoker.revoke(node, ban=ban, reason=reason)

    def node_status(self) -> NodeStatus:
        """Software, process, addresses."""
        return NodeStatus(
            software=SOFTWARE,
            pid=os.getpid(),
            started_at_ms=self.started_at_ms,
            endpoints=self.reach.endpoints,
            local=(
                str(self.home.socket),
                *((f"http://127.0.0.1:{self.local_port}",) if self.local_port else ()),
            ),
            engine_host=self.engine_host,
            standing=self.runtime.rest.standing,
            awaited=tuple(self.reader.doubts()),
            revoked=_revoked(self.runtime.view, self.identity.node),
            forked=tuple(
                f"{node}/{fork.epoch}" for node, forks in self.runtime.view.forks.items() for fork in forks
            ),
        )


def _revoked(view: View, here: NodeId) -> str:
    word = view.revoked(here)
    if word is None:
        return ""
    return f"by {word.by}: {word.reason}".rstrip(": ")
