import msgspec

from outbox.kinds import RULES
from spark.events import ROOT_KINDS, Role, quoted
from spark.schema import DISTRUSTED, Flag
from spark.tasks import TaskKind
from tests.spark.histories import NODES, Task, Turn, history, root_of
from tests.spark.reporting import one, told


def said(spark, place, rows):
    return sorted((row.rootId, row.node, row.role) for row in told(spark, place, rows).collect())


def test_each_event_says_what_it_says_and_a_reply_also_that_its_parent_was_answered(spark, tmp_path):
    rows = history([
        one(attempts=2, refusals_ms=(5,), accepted_ms=(1,), turns=(Turn(2, "failed", "b"),), dead_ms=9),
        one(answers=0, accepted_ms=(3,)),
    ])  # fmt: skip
    first, reply = root_of(0), root_of(1)
    of_first = [
        ("a", Role.SENT), ("b", Role.SENT), ("a", Role.REFUSED),
        ("b", Role.ACCEPTED), ("b", Role.PROCESSED), ("a", Role.DEAD), ("b", Role.BURIED),
        ("a", Role.REPLIED),
    ]  # fmt: skip
    of_reply = [("b", Role.SENT), ("b", Role.ACCEPTED)]
    assert said(spark, tmp_path, rows) == sorted(
        [(first, *what) for what in of_first] + [(reply, *what) for what in of_reply]
    )


def test_each_destination_is_a_route_and_a_broadcast_goes_to_all_that_are_known(spark, tmp_path):
    rows = history([one()])
    message = rows[0]
    home = ("a", Role.ROOT)
    cases = (
        ("b,007", [("007", Role.ROUTED), home, ("b", Role.ROUTED)]),
        ("*", [home, *((node, Role.ROUTED) for node in sorted(NODES))]),
        ("b", [("b", Role.SENT)]),
        ("", [("", Role.SENT)]),
        (None, [("", Role.SENT)]),
    )
    for number, (to, expected) in enumerate(cases):
        changed = [msgspec.structs.replace(message, to_nodes=to)]
        found = said(spark, tmp_path / str(number), changed)
        assert sorted((node, role) for _, node, role in found) == sorted(expected)


def test_an_event_to_several_is_addressed_to_each_and_a_dead_letter_names_the_node_it_gives_up(
    spark, tmp_path
):
    rows = history([one(receiver="b,007", dead_ms=9)])
    found = said(spark, tmp_path, rows)
    assert [(node, role) for _, node, role in found] == sorted(
        [
            ("a", Role.ROOT),
            ("007", Role.ADDRESSED),
            ("b", Role.ADDRESSED),
            ("a", Role.DEAD),
            ("007", Role.BURIED),
        ]
    )
    everybody = [msgspec.structs.replace(rows[0], to_nodes="*")]
    roles = {role for *_, role in said(spark, tmp_path / "all", everybody)}
    assert roles == {Role.ROOT, Role.ROUTED}, "who was meant it does not say"


def test_steps_of_a_task_stand_for_themselves_and_say_how_far_it_is(spark, tmp_path):
    task = Task(accepted_ms=1, updates_ms=(2,), end="task_complete", end_ms=3)
    rows = said(spark, tmp_path, history([one(task=task)]))
    steps = [role for root, node, role in rows if root == root_of(0) and node == "b"]
    assert steps == [Role.SENT, Role.TASK_ACCEPTED, Role.TASK_UPDATED, Role.TASK_COMPLETED]
    assert sum(role == Role.SENT for *_, role in rows) == 4


def test_what_cannot_be_trusted_says_nothing_and_a_wrong_clock_only_loses_its_time(spark, tmp_path):
    (message, *_) = history([one()])
    rows = [
        msgspec.structs.replace(message, seq=seq, root_id=f"evt_{seq}", flags=flags)
        for seq, flags in enumerate([None, *DISTRUSTED, Flag.CREATED_AT, "created_at,bad_payload"], start=1)
    ]
    known = told(spark, tmp_path, rows).where(f"role = {Role.SENT:d}").orderBy("rootId").collect()
    clock = f"evt_{len(DISTRUSTED) + 2}"
    assert [(row.rootId, row.at is not None) for row in known] == [("evt_1", True), (clock, False)]


def test_a_root_is_what_somebody_must_acknowledge():
    assert {kind for kind, rule in RULES.items() if rule.accepted} == {"message", "reply"}
    assert set(ROOT_KINDS) == {"message", "reply", *TaskKind}


def test_names_cannot_leave_their_quotes():
    assert quoted(["a", "o'b"]) == "'a', 'o''b'"
