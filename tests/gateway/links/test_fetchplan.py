from typing import Any

import pytest

from gateway.links.fetchplan import GONE, WRONG, Ask, Carrier, FetchPlan, Lost
from gateway.links.limits import BLOB_AGAIN_MS, BLOBS_AT_ONCE, DISTRUST_MS
from gateway.wire.frames import BlobRefusal
from outbox.blobref import BlobId
from outbox.ids import NodeId
from outbox.records import MissingBlob

A, SEED, OTHER = NodeId("a"), NodeId("seed"), NodeId("other")
DIRECT, RELAY, SECOND = (
    Carrier(1, A, frozenset()),
    Carrier(2, SEED, frozenset({A})),
    Carrier(3, OTHER, frozenset({A})),
)
ROOM = 1 << 40


def blob(number: int, size: int = 5, *, awaited: bool = True, source: NodeId = A) -> MissingBlob:
    return MissingBlob(BlobId(f"{number:064x}"), size, source, awaited)


ONE = blob(1)


def missing(*blobs: MissingBlob) -> FetchPlan:
    plan = FetchPlan()
    plan.misses(blobs)
    return plan


def links(asks: list[Ask]) -> list[tuple[int, int]]:
    return [(ask.link, int(ask.blob.sha256, 16)) for ask in asks]


def test_a_blob_comes_from_where_it_was_first_else_from_who_has_a_copy() -> None:
    assert missing(ONE).decide([RELAY, DIRECT], 0, mirror_room=0) == [Ask(1, A, ONE)]
    assert missing(ONE).decide([SECOND, RELAY], 0, mirror_room=0) == [Ask(3, OTHER, ONE)]
    assert missing(ONE).decide([Carrier(4, SEED, frozenset({OTHER}))], 0, mirror_room=0) == []
    assert not missing()


def test_one_at_a_time_over_a_link_awaited_ones_and_small_ones_first() -> None:
    plan = missing(blob(1, 9, awaited=False), blob(2, 9), blob(3, 2), blob(4, 1, awaited=False))
    order = []
    for _ in range(4):
        (ask,) = plan.decide([DIRECT], 0, mirror_room=ROOM)
        assert plan.decide([DIRECT], 0, mirror_room=ROOM) == []
        order.append(int(ask.blob.sha256, 16))
        plan.done(ask.blob.sha256)
    assert order == [3, 2, 4, 1]
    assert not plan


def test_only_so_many_come_at_once() -> None:
    plan = missing(*(blob(number) for number in range(9)))
    carriers = [Carrier(number, NodeId(f"n{number}"), frozenset({A})) for number in range(9)]
    assert len(plan.decide(carriers, 0, mirror_room=0)) == BLOBS_AT_ONCE


def test_copies_get_what_there_is_room_for() -> None:
    plan = missing(blob(1, 60, awaited=False), blob(2, 70, awaited=False), blob(3, 500))
    assert links(plan.decide([DIRECT, RELAY, SECOND], 0, mirror_room=100)) == [(1, 3), (3, 1)]


def test_who_has_none_is_asked_again_later_and_somebody_else_meanwhile() -> None:
    plan = missing(ONE)
    plan.decide([DIRECT, RELAY], 0, mirror_room=0)
    plan.refused(ONE.sha256, A, "silent", 0)
    assert plan.decide([DIRECT], BLOB_AGAIN_MS - 1, mirror_room=0) == []
    assert links(plan.decide([DIRECT, RELAY], 1, mirror_room=0)) == [(2, 1)]
    plan.broke_off(ONE.sha256)
    assert links(plan.decide([DIRECT, RELAY], BLOB_AGAIN_MS, mirror_room=0)) == [(1, 1)]


def test_who_lied_is_left_alone_for_long() -> None:
    plan = missing(ONE)
    plan.decide([RELAY], 0, mirror_room=0)
    plan.lied(ONE.sha256, SEED, 0)
    assert plan.decide([RELAY], DISTRUST_MS - 1, mirror_room=0) == []
    assert links(plan.decide([RELAY, SECOND], 1, mirror_room=0)) == [(3, 1)]
    plan.broke_off(ONE.sha256)
    assert links(plan.decide([RELAY], DISTRUST_MS, mirror_room=0)) == [(2, 1)]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (BlobRefusal.FORBIDDEN, GONE),
        (BlobRefusal.GONE, GONE),
        (BlobRefusal.SHORT, "blob_wrong_size"),
        (BlobRefusal.ABSENT, None),
        ("silent", None),
    ],
)
def test_what_its_own_node_denies_and_nobody_else_has_is_lost(code: Any, why: str | None) -> None:
    plan = missing(ONE)
    plan.refused(ONE.sha256, A, code, 0)
    found = plan.lost([DIRECT])
    assert [lost.why.split(":")[0] for lost in found] == ([why] if why else [])
    assert plan.lost([DIRECT, RELAY]) == [], "the relay was not asked"
    plan.refused(ONE.sha256, SEED, BlobRefusal.ABSENT, 0)
    assert len(plan.lost([DIRECT, RELAY])) == len(found)


def test_what_is_under_way_is_not_lost() -> None:
    plan = missing(ONE)
    plan.lied(ONE.sha256, A, 0)
    assert [lost.why.split(":")[0] for lost in plan.lost([])] == [WRONG]
    plan.decide([RELAY], 0, mirror_room=0)
    assert plan.lost([]) == []


def test_what_is_missing_no_more_is_forgotten() -> None:
    plan = missing(ONE)
    plan.refused(ONE.sha256, A, BlobRefusal.GONE, 0)
    plan.misses([])
    plan.misses([ONE])
    assert plan.lost([DIRECT]) == list[Lost]()


def test_a_full_disk_fetches_nothing() -> None:
    plan = missing(ONE)
    plan.pause(100)
    assert plan.decide([DIRECT], 99, mirror_room=0) == []
    assert len(plan.decide([DIRECT], 100, mirror_room=0)) == 1
