"""Where the engine's unasked effects go: sockets of agents, links, the state room."""

from collections.abc import Callable

from gateway.blobs.keeper import BlobKeeper
from gateway.endpoints.turn_sockets import TurnSockets
from gateway.engine.effects import AgentChanged, CursorMoved, Handed, StreamBroken
from gateway.engine.inputs import PageRead
from gateway.links.registry import Registry
from gateway.rooms import Rooms
from gateway.tokens import TokenTable
from outbox.blobref import BlobId
from outbox.forks import ForkProof
from outbox.ids import NodeId
from outbox.records import Identity


class GatewayOutlets:
    """Implements ``gateway.runtime.Outlets``."""

    def __init__(
        self,
        turns: TurnSockets,
        registry: Registry,
        rooms: Rooms,
        tokens: TokenTable,
        *,
        began: Callable[[], None],
        blobs: BlobKeeper,
        missing: Callable[[], None],
    ) -> None:
        self._turns = turns
        self._registry = registry
        self._rooms = rooms
        self._tokens = tokens
        self._began = began
        self._blobs = blobs
        self._missing = missing

    def handed(self, turn: Handed) -> None:
        """To the socket of its subscriber."""
        self._turns.handed(turn)

    def cursor_moved(self, moved: CursorMoved) -> None:
        """To the link, and into the ``cursors`` room."""
        self._registry.cursor_moved(moved)
        self._rooms.cursor_moved(moved.node, moved.head)

    def stream_broken(self, broken: StreamBroken) -> None:
        """To whoever decides where streams are read."""
        self._registry.stream_broken(broken)

    def grown(self, stream: NodeId) -> None:
        """To all links."""
        self._registry.grown(stream)

    def page_done(self, read: PageRead) -> None:
        """To the link that brought it."""
        self._registry.page_done(read)

    def agent_changed(self, changed: AgentChanged) -> None:
        """Its token counts from now on (or no longer); its record goes into the ``state`` room."""
        self._tokens.refresh()
        if not changed.active:
            self._turns.removed(changed.name)
        if not changed.stands_in:
            self._rooms.say_agent(changed)

    def epoch_began(self, identity: Identity) -> None:
        """To all links, and to whoever signs records."""
        self._began()
        self._rooms.epoch_began(identity)
        self._registry.epoch_began()

    def fork_found(self, proof: ForkProof) -> None:
        """Into the ``state`` room."""
        self._rooms.say_fork(proof)

    def blobs_missing(self) -> None:
        """To whoever fetches them."""
        self._missing()

    def blob_dropped(self, sha256: BlobId) -> None:
        """To where the files are."""
        self._blobs.drop(sha256)

    def reset(self) -> None:
        """All subscriptions are gone, and what links have told."""
        self._turns.reset()
        self._registry.reset()
