from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from outbox.batch import batch_bytes, check_batch
from outbox.chain import Entry, genesis
from outbox.errors import StorageFailed
from outbox.ids import NodeId, Seq


@pytest.fixture
def head(world: Any) -> Any:
    return genesis(world.identity.mesh, world.identity.node, world.identity.epoch)


def test_entries_are_indexed_by_their_headers(world: Any, head: Any) -> None:
    entries = [world.entry(1, 7, attempt=2), world.entry(2, 8, corr=7)]
    found = check_batch(world.identity, head, entries, world.checkpoint(head, entries))
    assert [(item.event, item.attempt, item.kind, item.corr) for item in found] == [
        (world.event(7), 2, "message", None),
        (world.event(8), 1, "ack", world.event(7)),
    ]
    assert [item.entry for item in found] == entries


def test_an_empty_batch_is_refused(world: Any, head: Any) -> None:
    with pytest.raises(StorageFailed, match="without entries"):
        check_batch(world.identity, head, [], world.checkpoint(head, []))


@pytest.mark.parametrize(
    "change",
    [
        {"node": NodeId("mbp")},
        {"mesh": "other"},
        {"seq": Seq(2)},
        {"hash": bytes(32)},
        {"epoch": "000002-0123456789ab"},
    ],
)
def test_a_checkpoint_of_something_else_is_refused(world: Any, head: Any, change: dict[str, Any]) -> None:
    entries = [world.entry(1, 7)]
    checkpoint = msgspec.structs.replace(world.checkpoint(head, entries), **change)
    with pytest.raises(StorageFailed):
        check_batch(world.identity, head, entries, checkpoint)


def test_a_batch_that_does_not_follow_on_is_refused(world: Any, head: Any) -> None:
    with pytest.raises(StorageFailed, match="does not follow"):
        check_batch(world.identity, head, [world.entry(2, 7)], world.checkpoint(head, [world.entry(1, 7)]))


@pytest.mark.parametrize(
    "garble",
    [
        lambda header: header[:0],
        lambda header: header.replace(b"evt_", b"evt-", 1),
        lambda header: header.replace(b'"corrId":"evt_', b'"corrId":"evt-'),
    ],
)
def test_an_entry_without_a_readable_header_is_refused(
    world: Any, head: Any, garble: Callable[[bytes], bytes]
) -> None:
    entries = [Entry(Seq(1), garble(world.entry(1, 7, corr=6).header), b"{}")]
    with pytest.raises(StorageFailed, match="no readable header"):
        check_batch(world.identity, head, entries, world.checkpoint(head, entries))


def test_a_batch_weighs_headers_and_bodies() -> None:
    assert batch_bytes([Entry(Seq(1), b"123", b"4567"), Entry(Seq(2), b"8", b"")]) == 8
