"""What waits, by its source: for its stream to be read, or for a node to say what it knows."""

from gateway.courier.courier import Courier
from gateway.courier.item import Item
from gateway.courier.limits import CourierLimits
from gateway.engine.inputs import Now
from gateway.engine.limits import BEHIND_MS_MAX
from gateway.engine.turnkey import turn_key
from gateway.engine.withheld import Withheld
from gateway.routing import inbox_stream
from outbox.ids import AgentId, Epoch, EventId, MeshId, NodeId, Seq
from outbox.memory import MemoryStore
from outbox.records import Identity, Received, TurnState

EPOCH = Epoch("000001-0123456789ab")
A = NodeId("a")
ROW = Received(
    event_id=EventId("evt_" + "0" * 32),
    source=A,
    epoch=EPOCH,
    seq=Seq(1),
    kind="message",
    to_agent=AgentId("bob"),
    body=b"{}",
    state=TurnState.QUEUED,
    accepted_at_ms=0,
    expires_at_ms=1 << 50,
)


def start(*, doubted: bool) -> tuple[Courier, Withheld, MemoryStore]:
    store = MemoryStore(Identity(MeshId("m" * 43), NodeId("b"), EPOCH))
    store.begin()
    if doubted:
        store.doubt(A, EPOCH)
    store.commit()
    courier = Courier(CourierLimits())
    stream = inbox_stream(ROW.to_agent)
    courier.open(stream)
    courier.readmit(stream, Item(turn_key(ROW), ROW.priority), 0)
    courier.subscribe("s", stream, "run")
    courier.grant("s", 5)
    withheld = Withheld(courier)
    withheld.load(store)
    withheld.admit(store, ROW, Now(0, 0))
    return courier, withheld, store


def dealt(courier: Courier, now_ms: int) -> int:
    return len(courier.pump(now_ms, lambda: "lease").hand_overs)


def test_what_nobody_doubts_is_dealt() -> None:
    courier, withheld, _ = start(doubted=False)
    assert dealt(courier, 1) == 1
    assert withheld.next_ms() is None


def test_neither_time_nor_the_end_of_the_stream_ends_a_doubt() -> None:
    courier, withheld, _ = start(doubted=True)
    assert dealt(courier, 1) == 0
    withheld.go_on(A, Now(2, 2))
    withheld.let_go_late(Now(BEHIND_MS_MAX, BEHIND_MS_MAX))
    assert dealt(courier, BEHIND_MS_MAX) == 0


def test_a_turn_that_ended_waits_no_longer() -> None:
    courier, withheld, _ = start(doubted=True)
    courier.discard(inbox_stream(ROW.to_agent), turn_key(ROW))
    withheld.drop(turn_key(ROW))
    withheld.drop(turn_key(ROW))
    assert withheld.next_ms() is None
