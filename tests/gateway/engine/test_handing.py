"""A subscriber gets the event's own bytes, and under which lease."""

from gateway.courier.item import HandOver
from gateway.engine.effects import Handed
from gateway.engine.handing import handed
from outbox.records import Received, TurnState

ROW = Received(
    event_id="evt_1", source="a", epoch="e", seq=1, kind="message", to_agent="bob", body=b"{}",
    state=TurnState.QUEUED, accepted_at_ms=1, expires_at_ms=9,
)  # fmt: skip


def test_it_says_how_often_it_was_handed_over_and_for_how_long() -> None:
    hand = HandOver("socket", "agents/bob/inbox", ("a", "evt_1", "bob"), "lease", "run", 2, resumed=True)
    assert handed(ROW, hand, 30_000) == Handed(
        "socket", "evt_1", "lease", 30_000, 2, resumed=True, body=b"{}"
    )
