"""What an engine wants done once its transaction is on disk, done: nothing here can be taken back."""

from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from gateway.copies import Copies
from gateway.engine.bloblife import BlobDropped, BlobsMissing
from gateway.engine.effects import (
    AgentChanged,
    Answer,
    Appended,
    CaughtUp,
    CopyChanged,
    CopyRuns,
    CursorMoved,
    Effect,
    EpochBegan,
    ForkFound,
    Handed,
    IncidentChanged,
    Sent,
    Settled,
    StreamBroken,
    StreamShown,
)
from gateway.engine.inputs import PageRead
from gateway.errors import CopyRunning
from gateway.feed import Feed
from outbox.blobref import BlobId
from outbox.chain import genesis
from outbox.forks import ForkProof
from outbox.ids import NodeId
from outbox.records import Identity

log = structlog.get_logger(__name__)

_STOP_ONE = "a copy of this home runs, or somebody has its keys: stop all but one, and start that one again"


class Outlets(Protocol):
    """Where effects go that nobody asked for."""

    def handed(self, turn: Handed) -> None:
        """Give a turn to the socket of its subscriber."""
        ...

    def cursor_moved(self, moved: CursorMoved) -> None:
        """Tell the link and the room how far another outbox was handled."""
        ...

    def stream_broken(self, broken: StreamBroken) -> None:
        """Read the stream elsewhere, later, or never again."""
        ...

    def grown(self, stream: NodeId) -> None:
        """Tell the links that there is more to read here."""
        ...

    def page_done(self, read: PageRead) -> None:
        """A page needs no memory any more: its link may bring the next."""
        ...

    def agent_changed(self, changed: AgentChanged) -> None:
        """Publish an agent's record."""
        ...

    def epoch_began(self, identity: Identity) -> None:
        """The own outbox has a new epoch: begin all links anew, sign records for it."""
        ...

    def fork_found(self, proof: ForkProof) -> None:
        """Tell the state room."""
        ...

    def blobs_missing(self) -> None:
        """Fetch what is named and not here."""
        ...

    def blob_dropped(self, sha256: BlobId) -> None:
        """Take the file of a blob away."""
        ...

    def reset(self) -> None:
        """The engine was built anew: its subscriptions are gone."""
        ...


def perform(
    effects: Iterable[Effect], outlets: Outlets, feed: Feed, copies: Copies, answer: Callable[[Answer], None]
) -> None:
    """Do all of it, in order. Raises CopyRunning."""
    for effect in effects:
        # the common ones first: a struct that does not match costs ten times one that does
        match effect:
            case Handed():
                outlets.handed(effect)
            case Sent() | Settled():
                answer(effect)
            case Appended() | StreamShown() | EpochBegan() | ForkFound() | CopyRuns():
                _perform_own(effect, outlets, feed)
            case CursorMoved():
                outlets.cursor_moved(effect)
            case CopyChanged():
                copies.changed(effect)
                outlets.grown(effect.node)
            case BlobsMissing() | BlobDropped():
                _perform_blobs(effect, outlets)
            case CaughtUp():
                log.debug("stream.caught_up", node=effect.node)
            case StreamBroken():
                outlets.stream_broken(effect)
            case IncidentChanged():
                _log_incident(effect)
            case AgentChanged():
                outlets.agent_changed(effect)
                answer(effect)
            case _:
                answer(effect)


def _perform_own(
    effect: Appended | StreamShown | EpochBegan | ForkFound | CopyRuns, outlets: Outlets, feed: Feed
) -> None:
    """What happens to the own outbox."""
    match effect:
        case Appended():
            if effect.shown:
                feed.push(effect.page)
                outlets.grown(effect.page.checkpoint.node)
            else:
                feed.hold(effect.page)
        case StreamShown():
            feed.restart(effect.head, is_open=True)
            outlets.grown(effect.node)
        case EpochBegan(identity=who):
            feed.restart(genesis(who.mesh, who.node, who.epoch), is_open=False)
            log.warning("epoch.began", epoch=who.epoch)
            outlets.epoch_began(who)
        case ForkFound():
            outlets.fork_found(effect.proof)
        case CopyRuns():
            raise CopyRunning(effect.what, hint=_STOP_ONE)


def _perform_blobs(effect: BlobsMissing | BlobDropped, outlets: Outlets) -> None:
    match effect:
        case BlobsMissing():
            outlets.blobs_missing()
        case BlobDropped():
            outlets.blob_dropped(effect.sha256)


def _log_incident(change: IncidentChanged) -> None:
    event = "incident.opened" if change.open else "incident.closed"
    log.warning(event, kind=change.kind, subject=change.subject, detail=change.detail)
