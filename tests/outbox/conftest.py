"""One node's stream to test with: records with sensible values, batches that follow on, a real key."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from outbox.chain import Checkpoint, Entry, Head, extend, sign_checkpoint
from outbox.envelope import Header, encode_header
from outbox.ids import AgentId, Epoch, EventId, MeshId, NodeId, Seq
from outbox.journal import Journal
from outbox.memory import MemoryStore
from outbox.records import Delivery, DeliveryState, Identity, Received, TurnState
from outbox.store import Store
from tests.appending import append

MESH = MeshId("mesh-" + "x" * 38)
NODE = NodeId("vps")
EPOCH = Epoch("000001-0123456789ab")


class World:
    """Builders; everything they make is a function of their arguments."""

    identity = Identity(MESH, NODE, EPOCH)
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))

    def sign(self, text: bytes) -> bytes:
        return self.key.sign(text)

    def verify(self, signature: bytes, text: bytes) -> bool:
        try:
            self.key.public_key().verify(signature, text)
        except InvalidSignature:
            return False
        return True

    def event(self, number: int) -> EventId:
        return EventId(f"evt_{number:032x}")

    def entry(
        self, seq: int, event: int, *, attempt: int = 1, corr: int | None = None, body: bytes = b"{}"
    ) -> Entry:
        header = Header(
            event_id=self.event(event),
            kind="message" if corr is None else "ack",
            corr_id=None if corr is None else self.event(corr),
            to="*",
            attempt=attempt,
            size=len(body),
        )
        return Entry(Seq(seq), encode_header(header), body)

    def checkpoint(self, head: Head, entries: list[Entry]) -> Checkpoint:
        return sign_checkpoint(MESH, NODE, extend(head, entries), self.sign)

    def append(self, store: Store, *entries: Entry) -> None:
        """One batch, in the transaction that is open."""
        append(store, entries, self.sign)

    def fill(self, store: Store, count: int, *, batch: int = 1, body: bytes = b"{}") -> None:
        """So many batches of ``batch`` fresh events, each committed."""
        for _ in range(count):
            first = store.head().seq + 1
            store.begin()
            self.append(store, *(self.entry(seq, seq, body=body) for seq in range(first, first + batch)))
            store.commit()

    def delivery(self, number: int, **changes: Any) -> Delivery:
        fields: dict[str, Any] = {
            "event_id": self.event(number),
            "kind": "message",
            "from_agent": AgentId("ann"),
            "to_agent": AgentId("bob"),
            "node": NodeId("mbp"),
            "state": DeliveryState.EMITTED,
            "seq": Seq(number),
            "thread_id": self.event(number),
            "emitted_at_ms": 1000 + number,
            "created_at_ms": 1000 + number,
            "expires_at_ms": 9000,
            "next_at_ms": 2000 + number,
        }
        return Delivery(**(fields | changes))

    def received(self, number: int, **changes: Any) -> Received:
        fields: dict[str, Any] = {
            "event_id": self.event(number),
            "source": NodeId("mbp"),
            "epoch": EPOCH,
            "seq": Seq(number),
            "kind": "message",
            "to_agent": AgentId("ann"),
            "body": b'{"text": "\xc3\xa9"}',
            "state": TurnState.QUEUED,
            "accepted_at_ms": 5000,
            "expires_at_ms": 9000,
        }
        return Received(**(fields | changes))


@pytest.fixture(scope="session")
def world() -> World:
    return World()


@pytest.fixture
def open_journal(tmp_path: Path, world: World) -> Iterator[Callable[[], Journal]]:
    """Opens the journal of one node, again and again; the first call makes it. All are closed at the end."""
    path, opened = tmp_path / "journal.db", []

    def again() -> Journal:
        if path.exists():
            journal = Journal.open(path, wal_bytes=0)
        else:
            journal = Journal.create(path, world.identity, wal_bytes=0)
        opened.append(journal)
        return journal

    yield again
    for journal in opened:
        journal.close()


@pytest.fixture(params=["journal", "memory"])
def store(request: pytest.FixtureRequest, world: World) -> Store:
    """Each of the two stores, empty."""
    if request.param == "memory":
        return MemoryStore(world.identity)
    make: Callable[[], Journal] = request.getfixturevalue("open_journal")
    return make()
