"""Every delivery in these states is met once, in order, whatever the parts."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.sweep import Sweep
from outbox.ids import AgentId, EventId, MeshId, NodeId, Seq, make_epoch
from outbox.memory import MemoryStore
from outbox.records import Delivery, DeliveryState, Identity

STATES = (DeliveryState.EMITTED, DeliveryState.ACCEPTED, DeliveryState.SUPERSEDED)


def row(at: int, state: DeliveryState) -> Delivery:
    return Delivery(
        event_id=EventId(f"evt_{at:032x}"),
        kind="message",
        from_agent=AgentId("ann"),
        to_agent=AgentId("bob"),
        node=NodeId("b"),
        state=state,
        seq=Seq(at + 1),
        thread_id="t",
        emitted_at_ms=0,
        created_at_ms=at // 3,
        expires_at_ms=1 << 40,
        next_at_ms=None,
    )


@given(
    found=st.lists(st.sampled_from(DeliveryState), max_size=20),
    shares=st.lists(st.integers(1, 5), min_size=1),
    restarts=st.booleans(),
)
def test_each_is_met_once_in_parts(found: list[DeliveryState], shares: list[int], restarts: bool) -> None:
    store = MemoryStore(Identity(MeshId("mesh"), NodeId("a"), make_epoch(1, bytes(6))))
    store.begin()
    rows = [row(at, state) for at, state in enumerate(found)]
    for each in rows:
        store.put_delivery(each)
    sweep, met, part = Sweep(STATES), list[Delivery](), 0
    while True:
        most = shares[part % len(shares)]
        taken = sweep.take(store, most)
        met += taken
        if len(taken) < most:
            break
        part += 1
        if restarts:
            sweep = Sweep(STATES, sweep.written)
    assert met == [each for state in STATES for each in rows if each.state is state]
