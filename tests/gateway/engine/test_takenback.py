"""What a row says of a hand counts unless it was taken back; the rest is in ``test_questioning``."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.errands import Task
from gateway.engine.takenback import TakenBack
from gateway.engine.turnkey import turn_key
from outbox.ids import AgentId, Epoch, EventId, MeshId, NodeId, Seq
from outbox.memory import MemoryStore
from outbox.records import Errand, Identity, Received, TurnState

EPOCH = Epoch("000001-0123456789ab")
ROW = Received(
    event_id=EventId("evt_" + "0" * 32),
    source=NodeId("a"),
    epoch=EPOCH,
    seq=Seq(1),
    kind="message",
    to_agent=AgentId("bob"),
    body=b"{}",
    state=TurnState.LEASED,
    lease_id="lease-1",
    session="run-1",
    accepted_at_ms=0,
    expires_at_ms=1 << 50,
)
FREE = replace(ROW, state=TurnState.QUEUED, lease_id=None, session=None)


class Part:
    """As much of a tick as is looked at."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store


@pytest.fixture
def part() -> Any:
    store = MemoryStore(Identity(MeshId("m" * 43), NodeId("b"), EPOCH))
    store.begin()
    store.put_received(ROW)
    store.doubt(ROW.source, EPOCH)
    return Part(store)


def test_a_lease_counts_where_nothing_was_taken_back(part: Any) -> None:
    taken = TakenBack()
    taken.load(part.store)
    assert taken.admit(ROW) == ROW
    assert taken.write(part, 9, lambda _: None) == 0


def test_what_an_engine_before_took_back_is_in_no_hand_and_is_written(part: Any) -> None:
    part.store.put_errand(Errand(Task.HANDS, "b"))
    taken, other = TakenBack(), replace(ROW, source=NodeId("c"))
    taken.load(part.store)
    assert [taken.admit(row) for row in (ROW, other, FREE)] == [FREE, other, FREE]
    assert taken.write(part, 9, lambda _: None) == 1
    assert part.store.open_turns() == [FREE]


@pytest.mark.parametrize("lease", [None, "lease-2"])
def test_what_has_ended_or_is_dealt_anew_stays_as_it_is(part: Any, lease: str | None) -> None:
    taken = TakenBack()
    taken.add(turn_key(ROW))
    if lease is None:
        part.store.put_received(replace(ROW, state=TurnState.DONE))
    assert taken.write(part, 1, lambda _: lease) == 1
    (row,) = part.store.ledger(ROW.event_id)
    assert row.lease_id == "lease-1"
