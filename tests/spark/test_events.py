import msgspec

from outbox.kinds import RULES
from spark.events import Role, statements
from spark.schema import DISTRUSTED, Flag
from tests.spark.histories import Turn, history, root_of
from tests.spark.reporting import frame, one


def said(spark, place, rows):
    return sorted((row.rootId, row.role) for row in statements(frame(spark, place, rows)).collect())


def test_each_event_says_what_it_says_and_a_reply_says_two_things(spark, tmp_path):
    rows = history([
        one(attempts=2, refused_first=True, accepted_ms=(1,), turns=(Turn(2, "failed", "b"),), dead_ms=9),
        one(answers=0, accepted_ms=(3,)),
    ])  # fmt: skip
    first, reply = root_of(0), root_of(1)
    roles = [Role.ROOT, Role.ROOT, Role.REFUSED, Role.ACCEPTED, Role.PROCESSED, Role.DEAD, Role.REPLIED]
    assert said(spark, tmp_path, rows) == sorted(
        [(first, role) for role in roles] + [(reply, Role.ROOT), (reply, Role.ACCEPTED)]
    )


def test_what_cannot_be_trusted_says_nothing_and_a_wrong_clock_only_loses_its_time(spark, tmp_path):
    (message, *_) = history([one()])
    rows = [
        msgspec.structs.replace(message, seq=seq, root_id=f"evt_{seq}", flags=flags)
        for seq, flags in enumerate([None, *DISTRUSTED, Flag.CREATED_AT, "created_at,bad_payload"], start=1)
    ]
    known = statements(frame(spark, tmp_path, rows)).orderBy("rootId").collect()
    clock = f"evt_{len(DISTRUSTED) + 2}"
    assert [(row.rootId, row.at is not None) for row in known] == [("evt_1", True), (clock, False)]


def test_a_root_is_what_somebody_must_acknowledge():
    assert {kind for kind, rule in RULES.items() if rule.accepted} == {"message", "reply"}
