"""The disk of one simulated node: the journal's twin in memory, with what disks do.

A commit may be refused while the disk is full, may take long, and may be lost when the process dies before it
has heard of it: nothing that depends on it has left the process then, so both outcomes are honest.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from outbox.batch import SealedBatch
from outbox.chain import Entry, Head
from outbox.delivery import settled
from outbox.errors import StorageFull
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.kinds import Kind
from outbox.memory import MemoryStore
from outbox.records import Delivery, Identity, Incident, Received, TurnState
from outbox.store import Store

_Value = TypeVar("_Value")
_WATCHES = ("noted", "written", "dealt")
_OF_THE_MACHINE = frozenset(
    {"full", "read_only", "slow_us", "busy", "commits", "_last", "_undo", "_file", *_WATCHES}
)
"""What of a disk is in no backup."""


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
        self.written: Callable[[Entry], None] = lambda _entry: None
        """Hears of entries while they are written."""
        self.dealt: Callable[[Received], None] = lambda _turn: None
        """Hears of turns when they are first handed over."""
        self.commits = 0
        self._last: tuple[list[Callable[[], object]], Head] | None = None
        self.forgotten_entries: list[tuple[Epoch, Entry]] = []
        """What retention has taken away, for the judge: the whole history is what he wants to see."""
        self.forgotten_deliveries: dict[EventId, list[Delivery]] = {}
        self.forgotten_turns: dict[tuple[NodeId, EventId, AgentId], Received] = {}

    def commit(self) -> None:
        """Keep what was written. Raises StorageFull."""
        if self._undo and self.full:
            raise StorageFull("no space left on the simulated disk")
        self.keep()

    def find_room(self) -> None:
        """There is some unless it is full."""
        self.read_only = self.full

    def keep(self) -> None:
        """As ``commit``, wherever there is still room."""
        undo, before = self._undo or [], self._committed
        super().commit()
        self._last = (undo, before)
        if undo:
            self.commits += 1
            if self.slow_us:
                self.busy(self.slow_us)

    def opened(self) -> tuple[Store, Store]:
        """What a process writes through, and what it reads beside."""
        return self, self

    def closed(self) -> None:
        """The process has died."""
        self.rollback()

    def compare(self) -> None:
        """Hold this store against another one that must say the same, where there is one."""

    def may_lose_a_commit(self) -> None:
        """The next death may be inside of one."""

    def lose_last_commit(self) -> None:
        """The machine died inside the last commit: it never reached the disk."""
        if self._last is None:
            return
        undo, self._committed = self._last
        self._undo = undo
        self._last = None
        self.rollback()

    def append(self, batch: SealedBatch) -> None:
        """Write it, and let the judge see each attempt at the moment when it is made."""
        for entry in batch.entries:
            self.written(entry)
        super().append(batch)

    def put_incident(self, incident: Incident) -> None:
        """Write it; the judge wants to see the world as it is at that moment."""
        self.noted(incident)
        super().put_incident(incident)

    def put_received(self, row: Received) -> None:
        """Write it; the judge wants to see what is read by then, not when an agent finds it in its hands."""
        if row.delivery_count == 1 and row.state is TurnState.LEASED:
            self.dealt(row)
        super().put_received(row)

    def take_place_of(self, other: "Disk") -> None:
        """Go into the machine in which another disk was: whoever watches that one watches this one."""
        for name in _WATCHES:
            setattr(self, name, getattr(other, name))

    def image(self) -> "Disk":
        """What a backup holds: all that is committed at this moment."""
        assert self._undo is None, "a backup is made between two transactions"
        made = self._blank()
        for name, value in vars(self).items():
            if name not in _OF_THE_MACHINE:
                setattr(made, name, _copied(value))
        return made

    def _blank(self) -> "Disk":
        return Disk(self._identity)

    # --- what was there and is forgotten

    def whole_outbox(self) -> list[tuple[Epoch, Entry]]:
        """Every entry that was ever committed, by epoch: forgotten ones too, and what was never shown."""
        left = [(epoch, entry) for epoch, past in self._histories.items() for entry in past.entries]
        return sorted([*self.forgotten_entries, *left], key=lambda item: (item[0], item[1].seq))

    def places_of(self, event: EventId) -> list[tuple[Epoch, Entry]]:
        """Own entries that are this event or refer to it, with their epochs."""
        return [(epoch, self._entry(epoch, seq)) for epoch, seq in self._about.get(event, ())]

    def shown_to(self, epoch: Epoch) -> Seq:
        """How far an own epoch may have been shown; 0 for one that is not in this outbox."""
        if epoch == self._identity.epoch:
            return self.shown().seq
        return next((row.shown for row in self.ended_epochs() if row.epoch == epoch), Seq(0))

    def last_of(self, epoch: Epoch) -> Seq:
        """The last entry of an own epoch, shown or not; 0 for one that is not in this outbox."""
        past = self._histories.get(epoch)
        return Seq(past.base.seq + len(past.entries)) if past is not None else Seq(0)

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
        self.forgotten_entries.append((epoch, entry))
        super()._forget(epoch, entry)

    def _forget_rows(self, event: EventId) -> None:
        rows = self.obligations(event)
        if rows:
            self._set(self.forgotten_deliveries, event, rows)
        super()._forget_rows(event)


def _copied(value: _Value) -> _Value:
    """Containers anew, with all that they hold; records never change."""
    match value:
        case dict():
            return type(value)((key, _copied(item)) for key, item in value.items())
        case list() | set() | deque():
            return type(value)(map(_copied, value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(
                value, **{field.name: _copied(getattr(value, field.name)) for field in fields(value)}
            )
    return value


def forgotten_too_early(disk: Disk) -> list[Delivery]:
    """Deliveries that were forgotten before they had an end."""
    rows = [row for gone in disk.forgotten_deliveries.values() for row in gone]
    return [row for row in rows if not settled(Kind(row.kind), row.state)]
