"""A gateway's door on a real database, and nodes that knock: everything the joining tests need.

Time and randomness are counted, so every run is the same.
"""

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from auth.certificates import issue_certificate, mesh_id_of
from auth.errors import AuthError
from auth.gate import Gate
from auth.gatekeeper import Gatekeeper
from auth.gateway_proofs import Pin
from auth.invites import Invite, InviteToken
from auth.joiner import Joiner, Trusted
from auth.keys import PublicKey, SigningKey
from auth.ledger_schema import LEDGER_MIGRATIONS
from auth.members import KeyOf, nobody
from auth.memory_ledger import MemoryLedger
from auth.messages import TicketAnswer, encode_message
from auth.sqlite_ledger import SqliteLedger
from auth.upgrade import Admission
from outbox.database import Database
from outbox.ids import NodeId

START_MS = 1_800_000_000_000
ROOMS = ("cursors", "pipe", "state")
VECTORS = Path(__file__).parents[3] / "shared" / "vectors"


def key_of_seed(name: str) -> SigningKey:
    return SigningKey(sha256(name.encode()).digest())


class Node:
    """A machine that wants in."""

    def __init__(self, name: str, seed: str = "") -> None:
        self.name = NodeId(name)
        self.key = key_of_seed(seed or name)
        self.joiner = Joiner(self.name, self.key)


class World:
    """One gateway, its clock and its entropy."""

    def __init__(self, database: Database | None, name: str = "vps") -> None:
        self.now_ms = START_MS
        self.calls = 0
        self.database = database
        self.root = key_of_seed(f"root of {name}")
        self.key = key_of_seed(f"key of {name}")
        self.mesh = mesh_id_of(self.root.public)
        self.name = NodeId(name)
        self.ledger = MemoryLedger() if database is None else SqliteLedger(database)
        self.start()

    def start(self, boot: str = "boot-1") -> None:
        """Start the gateway (again): a new ticket key, the same ledger."""
        gate = Gate(
            mesh=self.mesh,
            node=self.name,
            node_key=self.key,
            ticket_key=key_of_seed(f"{boot} of {self.name}"),
            boot=boot,
            nonce_key=sha256(self.name.encode()).digest(),
            certificate=issue_certificate(self.root, self.name, self.key.public, START_MS),
            rooms=ROOMS,
            ledger=self.ledger,
        )
        self.gatekeeper = Gatekeeper(gate)

    @property
    def pin(self) -> Pin:
        return Pin(mesh=self.mesh, jkt=self.key.public.jkt)

    def entropy(self) -> bytes:
        self.calls += 1
        text = f"{self.name} {self.calls}".encode()
        return sha256(text).digest() + sha256(b"more" + text).digest()

    def client(self) -> str:
        """Every request from another address: the limiter has tests of its own."""
        return f"198.51.100.{self.calls}"

    def transact(self, call: Callable[[], Any]) -> Any:
        """What the owner of the database does around each call."""
        if self.database is None:
            return call()
        self.database.begin()
        try:
            answer = call()
        except AuthError:
            self.database.commit()
            raise
        except BaseException:
            self.database.rollback()
            raise
        self.database.commit()
        return answer

    def invite(self, **rules: Any) -> tuple[Invite, InviteToken]:
        return self.transact(lambda: self.gatekeeper.create_invite(self.now_ms, self.entropy(), **rules))

    def challenge(self, node: Node) -> Trusted:
        body, asked = node.joiner.challenge(self.pin, self.entropy())
        answer = self.gatekeeper.challenge(body, self.now_ms, self.entropy(), self.client())
        return node.joiner.accept(asked, encode_message(answer))

    def exchange_body(self, node: Node, token: InviteToken, rooms: tuple[str, ...] = ("state",)) -> bytes:
        return node.joiner.exchange(self.challenge(node), token, self.now_ms, rooms)

    def send_exchange(self, body: bytes, key_of: KeyOf = nobody) -> TicketAnswer:
        return self.transact(
            lambda: self.gatekeeper.exchange(body, self.now_ms, self.entropy(), self.client(), key_of)
        )

    def exchange(self, node: Node, token: InviteToken, rooms: tuple[str, ...] = ("state",)) -> TicketAnswer:
        return self.send_exchange(self.exchange_body(node, token, rooms))

    def send_renew(self, body: bytes, key_of: KeyOf = nobody) -> TicketAnswer:
        return self.transact(
            lambda: self.gatekeeper.renew(body, self.now_ms, self.entropy(), self.client(), key_of)
        )

    def renew(self, node: Node, rooms: tuple[str, ...] = ("state",), key_of: KeyOf = nobody) -> TicketAnswer:
        return self.send_renew(node.joiner.renew(self.challenge(node), self.now_ms, rooms), key_of)

    def socket_proof(self, node: Node, ticket: str, path: str = "/ansible/yjs/state") -> str:
        return node.joiner.upgrade_headers(self.name, ticket, path, self.now_ms)["Ansible-Node-Proof"]

    def send_upgrade(
        self, ticket: str, proof: str, room: str = "state", path: str = "/ansible/yjs/state"
    ) -> Admission:
        return self.transact(
            lambda: self.gatekeeper.upgrade(
                ticket, proof, path=path, room=room, now_ms=self.now_ms, client=self.client()
            )
        )

    def upgrade(self, node: Node, ticket: str, room: str = "state") -> Admission:
        path = f"/ansible/yjs/{room}"
        return self.send_upgrade(ticket, self.socket_proof(node, ticket, path), room, path)

    def join(self, node: Node, **rules: Any) -> Admission:
        _, token = self.invite(**rules)
        return self.upgrade(node, self.exchange(node, token).ws_ticket)

    def state(self) -> tuple[object, ...]:
        """All that a refusal must not change (the audit may grow)."""
        return (
            self.ledger.invites(),
            self.ledger.members(),
            self.ledger.nonces_held(),
            self.ledger.tickets_held(),
        )


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Worlds on the ledger's twin in memory, for properties that need many."""
    return lambda name="vps": World(None, name)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """One world on SQLite."""
    database = Database.create(tmp_path / "journal.db", wal_bytes=0)
    database.migrate("ledger", LEDGER_MIGRATIONS)
    yield World(database)
    database.close()


@pytest.fixture
def make_node() -> Callable[..., Node]:
    return Node


@pytest.fixture
def mbp() -> Node:
    return Node("mbp")


@pytest.fixture
def key() -> SigningKey:
    return key_of_seed("some node")


@pytest.fixture
def make_key() -> Callable[[str], SigningKey]:
    return key_of_seed


@pytest.fixture
def key_book() -> Callable[[dict[str, PublicKey]], KeyOf]:
    """Admission records of the mesh, as the state room would answer."""
    return lambda book: book.get


@pytest.fixture
def vectors() -> Callable[[str], Any]:
    """Published test vectors, which are not part of this project."""

    def load(name: str) -> Any:
        path = VECTORS / name
        if not path.exists():
            pytest.skip(f"no test vectors {name} beside the checkout")
        return json.loads(path.read_text())

    return load
