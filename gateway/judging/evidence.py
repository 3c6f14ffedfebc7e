"""Reads journals for the verdict: whole outboxes with their chains verified, and the rows beside them."""

from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.home import Home
from gateway.judging.facts import NodeFacts, Said, debts, ledger, said
from outbox.chain import Head, Verify, check_signature, extend, follow, genesis
from outbox.delivery import settled
from outbox.errors import CallerError, PeerError
from outbox.ids import Epoch, EventId, Seq, epoch_ordinal
from outbox.kinds import Kind
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.reader import JournalReader
from outbox.records import Delivery, DeliveryState

_STANDING = frozenset(DeliveryState) - {DeliveryState.SUPERSEDED}
_ALL = 1_000_000
"""Rows of one demo: never as many."""


def read_node(home: Home, clock: Clock, events: Iterable[EventId] = ()) -> NodeFacts:
    """Everything in one journal; of the ledger the rows of ``events``. Raises StorageFailed."""
    return read_journal(home.journal, Keyring(home.keys).node_key(clock.entropy).public.verify, events)


def read_journal(journal: Path, verify: Verify, events: Iterable[EventId] = ()) -> NodeFacts:
    """The same of a journal that lies anywhere, by the key that signed it. Raises StorageFailed."""
    reader = JournalReader.open(journal)
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
            doubted=tuple(reader.doubts()),
            unshown=_unshown(reader),
            hidden=frozenset(_hidden(reader)),
        )
    finally:
        reader.close()


def _unshown(reader: JournalReader) -> dict[Epoch, Seq]:
    shown = {row.epoch: row.shown for row in reader.ended_epochs()}
    return shown | {reader.identity().epoch: reader.shown().seq}


def _hidden(reader: JournalReader) -> Iterator[Head]:
    for row in reader.ended_epochs():
        seq = row.shown
        while (head := reader.head_at(row.epoch, seq := Seq(seq + 1))) is not None:
            yield head


def read_mesh(homes: Iterable[Home], clock: Clock) -> list[NodeFacts]:
    """All journals, each with the ledger rows of every deliverable event of any of them."""
    known = list(homes)
    events = deliverable(known)
    return [read_node(home, clock, events) for home in known]


def deliverable(homes: Iterable[Home], pasts: Iterable[Path] = ()) -> set[EventId]:
    """Every event that some node must handle, by their journals and by other ones."""
    journals = (*(home.journal for home in homes), *pasts)
    return {event for journal in journals for event in _deliverable(journal)}


def _deliverable(journal: Path) -> Iterator[EventId]:
    reader = JournalReader.open(journal)
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

    Every obligation is settled, every turn is over, no node waits for what another one remembers, and
    every node has read the others to their ends. Only the events of ``waiting`` may be open, and must be:
    their senders have the incident that says so.
    """
    known = list(readers)
    explained = {incident.subject for reader in known for incident in reader.incidents(open_only=True)}
    owed = [
        row.event_id for reader in known for row in reader.deliveries(DeliveryState, _ALL) if _is_owed(row)
    ]
    turns = [row.event_id for reader in known for row in reader.open_turns()]
    if any(reader.doubts() for reader in known):
        return False
    return all(event in waiting and event in explained for event in (*owed, *turns)) and all(
        _has_read(reader, other) for reader in known for other in known if reader is not other
    )


def _is_owed(row: Delivery) -> bool:
    return not settled(Kind(row.kind), row.state)


def _has_read(reader: JournalReader, other: JournalReader) -> bool:
    cursor, head = reader.cursor(other.identity().node), other.head()
    return not head.seq if cursor is None else (cursor.epoch, cursor.seq) == (head.epoch, head.seq)
