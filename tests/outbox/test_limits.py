from outbox import limits
from outbox.envelope import Header, encode_header
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.retry import RetryPolicy
from outbox.schema import position


def test_a_payload_at_its_limit_leaves_room_for_the_envelope() -> None:
    assert limits.PAYLOAD_BYTES_MAX < limits.BODY_BYTES_MAX <= limits.PAGE_BYTES_MAX


def test_a_header_with_many_destinations_fits() -> None:
    nodes = tuple(NodeId("n" * 63) for _ in range(100))
    header = Header(event_id=EventId("evt_" + "0" * 32), kind="message", to=nodes, size=1)
    assert len(encode_header(header)) < limits.HEADER_BYTES_MAX


def test_the_largest_position_fits_an_sqlite_integer() -> None:
    assert position(Epoch("999999-ffffffffffff"), Seq(limits.SEQ_MAX)) < 1 << 63


def test_the_write_ahead_log_holds_what_gathers_between_checkpoints() -> None:
    assert limits.WAL_CHECKPOINT_PAGES * 4096 <= limits.WAL_BYTES


def test_the_default_policy_gives_up_long_before_an_event_expires() -> None:
    policy = RetryPolicy()
    waits = sum(
        policy.ceiling_ms(attempt) + policy.ack_timeout_ms for attempt in range(1, policy.attempts_max + 1)
    )
    assert waits * 100 < limits.EXPIRES_IN_MS_DEFAULT
