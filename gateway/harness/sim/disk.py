"""The disk of one simulated node: the journal's twin in memory, with what disks do.

A commit may be refused while the disk is full, may take long, and may be lost when the process dies before it
has heard of it: nothing that depends on it has left the process then, so both outcomes are honest.
"""

from collections.abc import Callable

from outbox.chain import Entry, Head
from outbox.delivery import settled
from outbox.errors import StorageFull
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.kinds import Kind
from outbox.memory import MemoryStore
from outbox.records import Delivery, Identity, Incident, Received

_ALL_ENTRIES, _ALL_BYTES = 10_000_000, 1 << 40


class Disk(MemoryStore):
    """Survives the processes that use it."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self.full = False
        self.slow_us = 0
        """What a commit takes."""
        self.busy: Callable[[int], None] = lambda _us: None
        """Stops the process for so long."""
        self.noted: Callable[[Incident], None] = lambda _incident: None
        """Hears of incidents while they are written."""
        self.commits = 0
        self._last: tuple[list[Callable[[], object]], Head] | None = None
        self.forgotten_entries: list[Entry] = []
        """What retention has taken away, for the judge: the whole history is what he wants to see."""
        self.forgotten_deliveries: dict[EventId, list[Delivery]] = {}
        self.forgotten_turns: dict[tuple[NodeId, EventId, AgentId], Received] = {}

    def commit(self) -> None:
        """Keep what was written. Raises StorageFull."""
        undo, before = self._undo or [], self._committed
        if undo and self.full:
            raise StorageFull("no space left on the simulated disk")
        super().commit()
        self._last = (undo, before)
        if undo:
            self.commits += 1
            if self.slow_us:
                self.busy(self.slow_us)

    def lose_last_commit(self) -> None:
        """The machine died inside the last commit: it never reached the disk."""
        if self._last is None:
            return
        undo, self._committed = self._last
        self._undo = undo
        self._last = None
        self.rollback()

    def put_incident(self, incident: Incident) -> None:
        """Write it; the judge wants to see the world as it is at that moment."""
        self.noted(incident)
        super().put_incident(incident)

    # --- what was there and is forgotten

    def whole_outbox(self) -> list[Entry]:
        """Every entry that was ever committed, forgotten ones too."""
        page = self.read(self.beginning(), _ALL_ENTRIES, _ALL_BYTES)
        return [*self.forgotten_entries, *(page.entries if page is not None else ())]

    def ever_received(self, source: NodeId, event: EventId, agent: AgentId) -> Received | None:
        """The ledger row, or what it was when it was forgotten."""
        return self.received(source, event, agent) or self.forgotten_turns.get((source, event, agent))

    def ever_turns(self, source: NodeId, event: EventId) -> list[Received]:
        """The ledger rows of an event, forgotten ones too."""
        gone = [row for key, row in self.forgotten_turns.items() if key[:2] == (source, event)]
        return [*self.turns_of(source, event), *gone]

    def ever_owed(self, event: EventId) -> list[Delivery]:
        """The delivery rows, or what they were when they were forgotten."""
        return self.obligations(event) or self.forgotten_deliveries.get(event, [])

    def prune_ledger(self, source: NodeId, epoch: Epoch, seq: Seq, limit: int) -> int:
        """Forget finished turns; the judge does not."""
        before = dict(self._received)
        count = super().prune_ledger(source, epoch, seq, limit)
        for key in before.keys() - self._received.keys():
            self._set(self.forgotten_turns, key, before[key])
        return count

    def _forget(self, epoch: Epoch, entry: Entry) -> None:
        self._log().append(self.forgotten_entries.pop)
        self.forgotten_entries.append(entry)
        super()._forget(epoch, entry)

    def _forget_rows(self, event: EventId) -> None:
        rows = self.obligations(event)
        if rows:
            self._set(self.forgotten_deliveries, event, rows)
        super()._forget_rows(event)


def forgotten_too_early(disk: Disk) -> list[Delivery]:
    """Deliveries that were forgotten before they had an end."""
    rows = [row for gone in disk.forgotten_deliveries.values() for row in gone]
    return [row for row in rows if not settled(Kind(row.kind), row.state)]
