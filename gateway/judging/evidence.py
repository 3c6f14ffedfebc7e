"""Reads journals for the verdict: whole outboxes with their chains verified, and the rows beside them."""

from collections.abc import Container, Iterable, Iterator

from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.home import Home
from gateway.judging.facts import NodeFacts, Said, debts, ledger, said
from outbox.chain import Head, Verify, check_signature, extend, follow, genesis
from outbox.delivery import settled
from outbox.errors import CallerError, PeerError
from outbox.ids import EventId, epoch_ordinal
from outbox.kinds import Kind
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.reader import JournalReader
from outbox.records import Delivery, DeliveryState

_STANDING = frozenset(DeliveryState) - {DeliveryState.SUPERSEDED}
_ALL = 1_000_000
"""Rows of one demo: never as many."""


def read_node(home: Home, clock: Clock, events: Iterable[EventId] = ()) -> NodeFacts:
    """Everything in one journal; of the ledger the rows of ``events``. Raises StorageFailed."""
    verify = Keyring(home.keys).node_key(clock.entropy).public.verify
    reader = JournalReader.open(home.journal)
    try:
        start = reader.beginning()
        outbox, broken = _outbox(reader, start, verify)
        rows = [row for event in events for row in reader.ledger(event)]
        return NodeFacts(
            node=reader.identity().node,
            start=start,
            outbox=outbox,
            broken=broken,
            received=ledger(rows),
            deliveries=debts(reader.deliveries(_STANDING, _ALL)),
            cursors=reader.cursors(),
            incidents=tuple(reader.incidents(open_only=False)),
            quarantined=len(reader.quarantined()),
        )
    finally:
        reader.close()


def read_mesh(homes: Iterable[Home], clock: Clock) -> list[NodeFacts]:
    """All journals, each with the ledger rows of every deliverable event of any of them."""
    known = list(homes)
    events = {event for home in known for event in _deliverable(home)}
    return [read_node(home, clock, events) for home in known]


def deliverable(homes: Iterable[Home]) -> set[EventId]:
    """Every event that some node must handle."""
    return {event for home in homes for event in _deliverable(home)}


def _deliverable(home: Home) -> Iterator[EventId]:
    reader = JournalReader.open(home.journal)
    try:
        yield from (row.event_id for row in reader.deliveries(DeliveryState, _ALL))
    finally:
        reader.close()


def _outbox(reader: JournalReader, start: Head, verify: Verify) -> tuple[tuple[Said, ...], str]:
    """The verified part of an outbox from there on, over all its epochs, and why it is not all of it."""
    identity, head = reader.identity(), start
    entries: list[Said] = []
    try:
        while (page := reader.read(head, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)) is not None:
            check_signature(page.checkpoint, identity.mesh, identity.node, verify)
            if epoch_ordinal(page.epoch) > epoch_ordinal(head.epoch):
                head = genesis(identity.mesh, identity.node, page.epoch)
            reached = follow(head, page)
            for entry in page.entries:
                head = extend(head, (entry,))
                entries.append(said(entry, head))
            head = reached
    except (PeerError, CallerError) as error:
        return tuple(entries), str(error)
    return tuple(entries), ""


def at_rest(readers: Iterable[JournalReader], waiting: Container[EventId]) -> bool:
    """Whether nothing is on its way any more.

    Every obligation is settled, every turn is over, and every node has read the others to their ends. Only
    the events of ``waiting`` may be open, and must be: their senders have the incident that says so.
    """
    known = list(readers)
    explained = {incident.subject for reader in known for incident in reader.incidents(open_only=True)}
    owed = [
        row.event_id for reader in known for row in reader.deliveries(DeliveryState, _ALL) if _is_owed(row)
    ]
    turns = [row.event_id for reader in known for row in reader.open_turns()]
    return all(event in waiting and event in explained for event in (*owed, *turns)) and all(
        _has_read(reader, other) for reader in known for other in known if reader is not other
    )


def _is_owed(row: Delivery) -> bool:
    return not settled(Kind(row.kind), row.state)


def _has_read(reader: JournalReader, other: JournalReader) -> bool:
    cursor = reader.cursor(other.identity().node)
    return (cursor.seq if cursor is not None else 0) == other.head().seq
