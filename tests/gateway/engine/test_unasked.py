"""Where the asking of one node after the other goes on."""

from msgspec.structs import replace

from gateway.engine.unasked import Unasked
from outbox.ids import NodeId
from outbox.records import Delivery, DeliveryState

A, B = NodeId("a"), NodeId("b")
ROW = Delivery(
    event_id="evt_1", kind="message", from_agent="ann", to_agent="bob", node=B, state=DeliveryState.ACCEPTED,
    seq=1, thread_id="evt_1", emitted_at_ms=5, created_at_ms=5, expires_at_ms=9, next_at_ms=None,
)  # fmt: skip


def test_each_state_is_gone_through_once_and_then_the_next_node() -> None:
    unasked = Unasked()
    assert not unasked
    unasked.begin(A)
    unasked.begin(B)
    seen = []
    while (place := unasked.next()) is not None:
        seen.append((place.node, place.state))
        unasked.went_on(place, None)
    states = (DeliveryState.ACCEPTED, DeliveryState.SUPERSEDED)
    assert seen == [(node, state) for node in (A, B) for state in states]
    assert not unasked


def test_it_goes_on_behind_what_was_looked_at_and_begins_anew_when_told() -> None:
    unasked = Unasked()
    unasked.begin(B)
    first = unasked.next()
    assert first is not None
    unasked.went_on(first, ROW)
    place = unasked.next()
    assert place == first._replace(after=(5, "evt_1", B))
    unasked.went_on(place, replace(ROW, created_at_ms=6))
    unasked.begin(B)
    assert unasked.next() == first
