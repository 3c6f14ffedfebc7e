"""Where taking back what a node has forgotten goes on."""

from gateway.engine.lapses import Lapses
from outbox.ids import Epoch, NodeId
from outbox.records import Delivery, DeliveryState, Lapse

B = NodeId("b")
ONE = Lapse(B, Epoch("000002-0123456789ab"), "000001-0123456789ab/3")
OTHER = Lapse(B, Epoch("000003-0123456789ab"), "000001-0123456789ab/3")
ROW = Delivery(
    event_id="evt_1", kind="message", from_agent="ann", to_agent="bob", node=B, state=DeliveryState.ACCEPTED,
    seq=1, thread_id="evt_1", emitted_at_ms=5, created_at_ms=5, expires_at_ms=9, next_at_ms=None,
)  # fmt: skip


def test_one_after_the_other_each_to_its_end() -> None:
    lapses = Lapses([ONE])
    lapses.begin(OTHER)
    seen = []
    while (found := lapses.next()) is not None:
        seen.append(found[0])
        lapses.end(found[0])
    assert seen == [ONE, OTHER]
    assert not lapses


def test_it_goes_on_behind_what_was_looked_at_and_begins_anew_when_told() -> None:
    lapses = Lapses()
    assert not lapses
    lapses.begin(ONE)
    first = lapses.next()
    lapses.went_on(ONE, ROW)
    assert lapses.next() == (ONE, (5, "evt_1", B))
    lapses.begin(ONE)
    assert lapses.next() == first
    assert lapses
