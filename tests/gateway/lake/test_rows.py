import msgspec
import pytest

from gateway.lake.rows import row_of
from outbox.chain import Entry
from outbox.envelope import Ack, DeadLetter, MaintenanceNotice, RouteDecision, Signal, Trace, encode_payload
from outbox.kinds import AckStatus, Outcome
from outbox.timestamps import parse_rfc3339, rfc3339
from spark.limits import COUNT_MAX, CREATED_AHEAD_MS_MAX, TEXT_MAX
from tests.gateway.outboxes import NOW_MS, STREAM, answer, entry, event_id, message


def row(event, to=("mbp",)):
    made, bad = row_of(entry(1, event, to), STREAM, NOW_MS)
    assert bad is None
    return made


def test_a_message_is_about_itself():
    trace = Trace(attempt=2, route_decision=RouteDecision("mbp", 3, "owner"))
    made = row(message(7, trace=trace, thread_id="talk", type="note", priority=1), to=("mbp", "lab"))
    assert (made.root_id, made.corr_id, made.event_id) == (event_id(7), None, event_id(7))
    assert (made.to_nodes, made.owner_node_id, made.attempt, made.priority) == ("mbp,lab", "mbp", 2, 1)
    assert made.created_at == (NOW_MS + 7) * 1000
    assert made.flags is None


def test_a_reply_is_about_itself_and_keeps_its_parent():
    made = row(message(8, kind="reply", corr_id=event_id(7)))
    assert (made.root_id, made.corr_id, made.flags) == (event_id(8), event_id(7), None)


def test_an_ack_is_about_what_it_refers_to():
    ack = Ack(
        ref=event_id(7), status=AckStatus.PROCESSED, outcome=Outcome.FAILED, error="x" * 900,
        engaged_at=rfc3339(NOW_MS), deliveries=2,
    )  # fmt: skip
    made = row(answer(9, 7, ack))
    assert (made.root_id, made.status, made.outcome, made.deliveries) == (
        event_id(7),
        "processed",
        "failed",
        2,
    )
    assert made.error == "x" * TEXT_MAX
    assert made.engaged_at == NOW_MS * 1000


def test_a_dead_letter_tells_why():
    made = row(
        answer(9, 7, DeadLetter(ref=event_id(7), reason="expired", attempts=8, last_error="no answer"))
    )
    assert (made.root_id, made.reason, made.error, made.attempts) == (event_id(7), "expired", "no answer", 8)


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        (Signal(signal="retention_floor", detail="x"), ("retention_floor", None, None, None)),
        (Signal(signal="m" * 900), ("m" * TEXT_MAX, None, None, None)),
        (
            Signal(signal="maintenance", maintenance=MaintenanceNotice(until=rfc3339(NOW_MS), reason="disk")),
            ("maintenance", NOW_MS * 1000, False, "disk"),
        ),
        (
            Signal(signal="maintenance", maintenance=MaintenanceNotice(over=True)),
            ("maintenance", None, True, None),
        ),
    ],
)
def test_a_signal_tells_which_one_it_is_and_what_it_announces(signal, expected):
    made = row(message(9, kind="signal", to_agent_id=None, payload=encode_payload(signal)), to="*")
    assert (made.signal, made.until_at, made.is_over, made.reason) == expected
    assert (made.root_id, made.flags) == (event_id(9), None)


@pytest.mark.parametrize("maintenance", [{"until": "soon"}, {"until": 5}, "gone"])
def test_a_signal_that_cannot_be_read_announces_nothing(maintenance):
    payload = msgspec.Raw(msgspec.json.encode({"signal": "maintenance", "maintenance": maintenance}))
    made = row(message(9, kind="signal", to_agent_id=None, payload=payload), to="*")
    assert (made.signal, made.flags) == (None, "bad_payload")


def test_a_task_tells_its_versions_and_times_and_an_unreadable_one_is_still_a_step():
    payload = {
        "capabilityId": "cap.build", "requestedVersion": "^1", "delegationSkillVersion": "1.0.0",
        "acceptWithinMs": 5000, "completeWithinMs": 2**40, "input": {"any": "thing"},
    }  # fmt: skip
    made = row(message(7, kind="task_create", payload=msgspec.Raw(msgspec.json.encode(payload))))
    assert (made.capability_id, made.version, made.skill_version) == ("cap.build", "^1", "1.0.0")
    assert (made.accept_within_ms, made.complete_within_ms, made.flags) == (5000, COUNT_MAX, None)
    payload = {"etaAt": rfc3339(NOW_MS), "resolvedVersion": "1.4.2", "errorClass": "crash", "error": "boom"}
    made = row(
        message(8, kind="task_failed", corr_id=event_id(7), payload=msgspec.Raw(msgspec.json.encode(payload)))
    )
    assert (made.root_id, made.corr_id, made.version) == (event_id(8), event_id(7), "1.4.2")
    assert (made.eta_at, made.error_class, made.error) == (NOW_MS * 1000, "crash", "boom")
    for broken in (b'{"etaAt":"soon"}', b"[]", b'{"capabilityId":7}'):
        made = row(message(9, kind="task_update", corr_id=event_id(7), payload=msgspec.Raw(broken)))
        assert (made.kind, made.corr_id, made.flags) == ("task_update", event_id(7), "unreadable_task")


@pytest.mark.parametrize(
    ("promise", "at_ms"),
    [({"etaAt": rfc3339(NOW_MS)}, NOW_MS), ({"etaSeconds": 90}, NOW_MS + 9 + 90_000), ({}, None)],
)
def test_an_ack_may_say_when_the_work_will_be_done(promise, at_ms):
    said = {"ref": event_id(7), "status": "accepted"} | promise
    made = row(message(9, kind="ack", corr_id=event_id(7), payload=msgspec.Raw(msgspec.json.encode(said))))
    assert made.eta_at == (None if at_ms is None else at_ms * 1000)


def test_the_digest_tells_two_entries_at_one_place_apart():
    one, other = entry(1, message(1)), entry(1, message(1, type="other"))
    digests = [row_of(found, STREAM, NOW_MS)[0].digest for found in (one, other, one)]
    assert digests[0] == digests[2] != digests[1]
    assert all(0 <= digest < 2**63 for digest in digests)


DONE = AckStatus.PROCESSED
ACK = Ack(ref=event_id(7), status=AckStatus.ACCEPTED)


@pytest.mark.parametrize(
    ("event", "to", "flags"),
    [
        (message(1, kind="task_dance"), (), "unknown_kind"),
        (message(1, created_at="1970-01-01T00:00:00Z"), (), "created_at"),
        (message(1, created_at="2020-01-01T00:00:00.000Z"), (), None),
        (message(1, created_at=rfc3339(NOW_MS + CREATED_AHEAD_MS_MAX)), (), None),
        (message(1, created_at=rfc3339(NOW_MS + CREATED_AHEAD_MS_MAX + 1)), (), "created_at"),
        (message(1, source_node_id="lab"), (), "foreign_source"),
        (message(1, trace=Trace(attempt=2**70)), (), "out_of_range"),
        (message(1), "*", None),
        (message(1), "everybody", "header_disagrees"),
        (message(1), ("a,b",), "header_disagrees"),
        (answer(1, 6, ACK), (), "bad_payload"),
        (message(1, kind="ack", corr_id=event_id(7)), (), "bad_payload"),
        (answer(1, 7, Ack(ref=event_id(7), status=DONE, engaged_at="noon")), (), "bad_payload"),
        (answer(1, 7, Ack(ref=event_id(7), status=DONE, deliveries=-1)), (), "out_of_range"),
        (answer(1, 7, DeadLetter(ref=event_id(7), reason="", attempts=2**40)), (), "out_of_range"),
        (message(1, kind="ack", corr_id=event_id(7), source_node_id="lab", created_at="1999-01-01T00:00:00Z"),
         (), "foreign_source,created_at,bad_payload"),
    ],
)  # fmt: skip
def test_doubts_are_flagged_and_the_row_is_kept(event, to, flags):
    made = row(event, to)
    assert made.flags == flags
    assert made.seq == 1
    assert max(made.attempt, made.attempts or 0, made.deliveries or 0) <= COUNT_MAX
    assert made.created_at == parse_rfc3339(event.created_at) * 1000


def test_a_header_that_lies_about_its_body_is_flagged():
    honest, other = entry(1, message(1)), entry(1, message(2))
    made, bad = row_of(Entry(honest.seq, other.header, honest.body), STREAM, NOW_MS)
    assert (made.flags, bad) == ("header_disagrees", None)


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (None, b""),
        (None, b"\xff\x00"),
        (None, b'{"v":1}'),
        (None, b'"\\ud800"'),
        (b"[", None),
        (None, b"[" * 100_000),
    ],
)
def test_bytes_that_are_no_event_keep_their_place_and_go_to_quarantine(header, body):
    good = entry(4, message(1))
    strange = Entry(good.seq, good.header if header is None else header, good.body if body is None else body)
    made, bad = row_of(strange, STREAM, NOW_MS)
    assert (made.seq, made.flags, made.event_id, made.bytes) == (4, "not_an_event", None, len(strange.body))
    assert (bad.header, bad.body, bad.seq) == (strange.header, strange.body, 4)
    assert bad.reason
