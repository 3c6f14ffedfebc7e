"""Blobs in a store: both keep which are here and find out who names one."""

import json
from typing import Any

import pytest

from outbox.blobref import BlobId
from outbox.chain import Entry, Page, extend, genesis, sign_checkpoint
from outbox.envelope import Header, encode_header
from outbox.ids import AgentId, Epoch, NodeId, Seq
from outbox.journal import Journal
from outbox.memory import MemoryStore
from outbox.reader import JournalReader
from outbox.records import Blob, DeliveryState, MissingBlob, Naming, TurnState
from outbox.store import Store

MBP = NodeId("mbp")
EPOCH = Epoch("000001-0123456789ab")
ONE, TWO, THREE = (BlobId(digit * 64) for digit in "123")


def naming(blob: BlobId, size: int = 5) -> bytes:
    return json.dumps({"payloadRef": {"sha256": blob, "bytes": size}}).encode()


def header(number: int, to: str = "lab") -> bytes:
    return encode_header(Header(event_id=f"evt_{number:032x}", kind="message", to=(NodeId(to),), size=1))


def here(blob: BlobId, at_ms: int = 0, size: int = 5) -> Blob:
    return Blob(sha256=blob, bytes=size, stored_at_ms=at_ms)


def copy(store: Store, world: Any, *bodies: bytes) -> None:
    """Add one batch to the copy of mbp's outbox."""
    entries = tuple(Entry(Seq(place), header(place), body) for place, body in enumerate(bodies, 1))
    head = extend(genesis(world.identity.mesh, MBP, EPOCH), entries)
    checkpoint = sign_checkpoint(world.identity.mesh, MBP, head, lambda _: b"s")
    store.extend_copy(MBP, Page(EPOCH, entries, checkpoint), 0)


def test_a_blob_is_here_until_it_is_dropped(store: Store) -> None:
    store.begin()
    store.put_blob(here(ONE, 1, size=3))
    store.put_blob(here(TWO, 2, size=4))
    store.put_blob(here(ONE, 3, size=3))
    store.commit()
    assert store.blob(ONE) == here(ONE, 3, size=3)
    assert [row.sha256 for row in store.blobs()] == [ONE, TWO]
    assert store.blob_bytes() == 7
    store.begin()
    store.drop_blob(ONE)
    store.drop_blob(THREE)
    store.commit()
    assert store.blob(ONE) is None
    assert store.blob_bytes() == 4
    store.begin()
    store.drop_blob(TWO)
    store.rollback()
    assert store.blob(TWO) is not None


def test_what_an_entry_a_copy_or_a_turn_names_is_named(store: Store, world: Any) -> None:
    store.begin()
    for number, blob in enumerate((ONE, TWO, THREE)):
        store.put_blob(here(blob, number))
    assert [row.sha256 for row in store.unnamed_blobs(9, 9)] == [ONE, TWO, THREE]
    assert [row.sha256 for row in store.unnamed_blobs(9, 2)] == [ONE, TWO]
    assert [row.sha256 for row in store.unnamed_blobs(2, 9)] == [ONE, TWO]
    world.append(store, world.entry(1, 1, body=naming(ONE)))
    copy(store, world, b"{}", naming(TWO))
    store.put_received(world.received(9, blob=THREE, state=TurnState.DONE))
    assert store.unnamed_blobs(9, 9) == []
    store.commit()
    assert store.unnamed_blobs(9, 9) == []
    assert store.naming(ONE, 9) == [Naming(world.identity.node, world.entry(1, 1, body=naming(ONE)).header)]
    assert store.naming(TWO, 9) == [Naming(MBP, header(2))]
    assert store.naming(THREE, 9) == []


def test_whoever_goes_takes_the_name_along(store: Store, world: Any) -> None:
    store.begin()
    for blob in (ONE, TWO, THREE):
        store.put_blob(here(blob))
    world.append(store, world.entry(1, 1, body=naming(ONE)))
    copy(store, world, naming(TWO))
    store.put_received(world.received(3, blob=THREE, state=TurnState.DONE))
    store.commit()
    store.begin()
    store.move_floor(EPOCH, Seq(1))
    found = store.copy(MBP)
    assert found is not None
    store.trim_copy(found, 1)
    store.prune_ledger(MBP, EPOCH, Seq(3), 10)
    assert [row.sha256 for row in store.unnamed_blobs(9, 9)] == [ONE, TWO, THREE]
    store.commit()
    assert [row.sha256 for row in store.unnamed_blobs(9, 9)] == [ONE, TWO, THREE]


def test_what_is_named_and_not_here_is_missing_turns_first(store: Store, world: Any) -> None:
    store.begin()
    copy(store, world, naming(ONE, 7), naming(TWO))
    store.put_received(world.received(1, blob=TWO, body=naming(TWO, 6), source=NodeId("lab")))
    store.put_received(world.received(2, blob=THREE, body=naming(THREE), state=TurnState.HELD))
    store.put_received(world.received(3, blob=THREE, body=naming(THREE), state=TurnState.DONE))
    wanted = [MissingBlob(TWO, 6, NodeId("lab"), awaited=True), MissingBlob(ONE, 7, MBP, awaited=False)]
    assert store.missing_blobs(9) == wanted
    assert store.missing_blobs(1) == wanted[:1]
    store.put_blob(here(TWO))
    assert store.missing_blobs(9) == wanted[1:]
    store.commit()
    assert store.missing_blobs(9) == wanted[1:]


@pytest.mark.parametrize(
    ("kind", "state", "expected"),
    [
        ("reply", DeliveryState.ACCEPTED, True),
        ("reply", DeliveryState.DEAD_LETTER, False),
        ("message", DeliveryState.ACCEPTED, False),
    ],
)
def test_a_reply_that_names_a_blob_is_kept_while_it_lives(
    store: Store, world: Any, kind: str, state: DeliveryState, expected: bool
) -> None:
    store.begin()
    world.append(store, world.entry(1, 1), world.entry(2, 2, body=naming(ONE)))
    store.put_delivery(world.delivery(2, kind=kind, state=state, expires_at_ms=9000))
    store.commit()
    assert store.first_unfetched(EPOCH, Seq(2), 8999) == ((EPOCH, 2) if expected else None)
    assert store.first_unfetched(EPOCH, Seq(2), 9000) is None
    assert store.first_unfetched(EPOCH, Seq(1), 8999) is None


def test_a_reader_sees_what_is_committed(open_journal: Any, world: Any, tmp_path: Any) -> None:
    journal: Journal = open_journal()
    reader = JournalReader.open(tmp_path / "journal.db")
    journal.begin()
    journal.put_blob(here(ONE))
    journal.put_received(world.received(1, to_agent=AgentId("ann"), blob=TWO, body=naming(TWO)))
    world.append(journal, world.entry(1, 1, body=naming(ONE)))
    assert reader.blob(ONE) is None
    assert reader.missing_blobs(9) == []
    journal.commit()
    assert reader.blob(ONE) == here(ONE)
    assert reader.missing_blobs(9) == [MissingBlob(TWO, 5, MBP, awaited=True)]
    assert reader.naming(ONE, 9) == journal.naming(ONE, 9)
    reader.close()


def test_an_empty_store_has_none(world: Any) -> None:
    store = MemoryStore(world.identity)
    assert (store.blobs(), store.blob_bytes(), store.missing_blobs(9)) == ([], 0, [])
