from gateway.engine.turnkey import parse_turn_key, turn_key, turn_text
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.records import Received, TurnState


def test_a_key_names_the_source_the_event_and_the_agent() -> None:
    row = Received(
        event_id=EventId("evt_" + "5" * 32),
        source=NodeId("lab.one-2"),
        epoch=Epoch("000001-0123456789ab"),
        seq=Seq(1),
        kind="message",
        to_agent=AgentId("ann"),
        body=b"{}",
        state=TurnState.QUEUED,
        accepted_at_ms=1,
        expires_at_ms=2,
    )
    assert turn_key(row) == (row.source, row.event_id, row.to_agent)
    assert turn_text(turn_key(row)) == f"{row.event_id}@lab.one-2/ann"
    assert parse_turn_key(turn_text(turn_key(row))) == turn_key(row)
