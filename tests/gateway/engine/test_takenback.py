"""What a row says of a hand counts unless it was taken back; the rest is in ``test_questioning``."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.courier.courier import Courier
from gateway.courier.item import Item
from gateway.courier.limits import CourierLimits
from gateway.engine.errands import Task
from gateway.engine.inputs import Now
from gateway.engine.takenback import TakenBack
from gateway.engine.turnkey import turn_key
from gateway.routing import inbox_stream
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
        self.now = Now(0, 0)


@pytest.fixture
def part() -> Any:
    store = MemoryStore(Identity(MeshId("m" * 43), NodeId("b"), EPOCH))
    store.begin()
    store.put_received(ROW)
    store.doubt(ROW.source, EPOCH)
    return Part(store)


@pytest.fixture
def courier() -> Courier:
    """``bob`` has the turn in hand."""
    made = Courier(CourierLimits())
    made.restore(inbox_stream(ROW.to_agent), Item(turn_key(ROW), 2, deliveries=1), "lease-1", "run-1", 0)
    return made


def test_a_lease_counts_where_nothing_was_taken_back(part: Any, courier: Courier) -> None:
    taken = TakenBack(courier)
    taken.load(part.store)
    assert taken.admit(ROW) == ROW
    assert taken.write(part, 9) == 0
    assert courier.lease_of(inbox_stream(ROW.to_agent), turn_key(ROW)) == "lease-1"


def test_what_an_engine_before_took_back_is_in_no_hand_and_is_written(part: Any) -> None:
    part.store.put_errand(Errand(Task.HANDS, "b"))
    taken, other = TakenBack(Courier(CourierLimits())), replace(ROW, source=NodeId("c"))
    taken.load(part.store)
    assert [taken.admit(row) for row in (ROW, other, FREE)] == [FREE, other, FREE]
    assert taken.write(part, 9) == 1
    assert part.store.open_turns() == [FREE]


def test_what_is_of_other_nodes_stays_in_its_hand(part: Any, courier: Courier) -> None:
    taken = TakenBack(courier)
    taken.begin([NodeId("c")])
    assert taken.write(part, 9) == 1
    assert part.store.open_turns() == [ROW]


@pytest.mark.parametrize("dealt", [False, True])
def test_what_has_ended_or_is_dealt_anew_stays_as_it_is(part: Any, courier: Courier, *, dealt: bool) -> None:
    taken, stream = TakenBack(courier), inbox_stream(ROW.to_agent)
    taken.begin([ROW.source])
    assert courier.lease_of(stream, turn_key(ROW)) is None
    if dealt:
        courier.discard(stream, turn_key(ROW))
        courier.restore(stream, Item(turn_key(ROW), 2), "lease-2", "run-2", 0)
    else:
        part.store.put_received(replace(ROW, state=TurnState.DONE))
    assert taken.write(part, 1) == 1
    (row,) = part.store.ledger(ROW.event_id)
    assert row.lease_id == "lease-1"
