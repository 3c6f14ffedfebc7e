"""A signed outbox in memory, to be collected."""

from collections.abc import Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from outbox.chain import Checkpoint, Entry, Head, Page, extend, genesis, sign_checkpoint
from outbox.envelope import Ack, DeadLetter, Event, encode_event, encode_header, encode_payload, header_of
from outbox.ids import AgentId, Epoch, MeshId, NodeId, Seq, make_event_id
from outbox.records import Identity
from outbox.timestamps import rfc3339

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
STREAM = Identity(MeshId("m" * 43), NodeId("vps"), Epoch("000001-00000000000a"))
NOW_MS = 1_780_000_000_000


def verify(signature: bytes, message: bytes) -> bool:
    try:
        KEY.public_key().verify(signature, message)
    except InvalidSignature:
        return False
    return True


def event_id(number: int):
    return make_event_id(NOW_MS, number.to_bytes(10))


def message(number: int, **more) -> Event:
    fields = {
        "event_id": event_id(number),
        "kind": "message",
        "source_node_id": STREAM.node,
        "created_at": rfc3339(NOW_MS + number),
        "source_agent_id": AgentId("planner"),
        "to_agent_id": AgentId("coder"),
    }
    return Event(**fields | more)


def answer(number: int, about: int, payload: Ack | DeadLetter, **more) -> Event:
    kind = "ack" if isinstance(payload, Ack) else "dead_letter"
    fields = {"kind": kind, "corr_id": event_id(about), "payload": encode_payload(payload)}
    return message(number, **fields | more)


def entry(seq: int, event: Event, to=("mbp",)) -> Entry:
    body = encode_event(event)
    return Entry(Seq(seq), encode_header(header_of(event, to, len(body))), body)


class Outbox:
    """Entries in batches; ``read`` answers as a store does, one batch a page."""

    is_writer = True

    def __init__(self, entries: Sequence[Entry] = (), batch: int = 10) -> None:
        self.pages: list[Page] = []
        self.head = genesis(STREAM.mesh, STREAM.node, STREAM.epoch)
        for start in range(0, len(entries), batch):
            self.append(tuple(entries[start : start + batch]))

    def genesis(self) -> Head:
        return genesis(STREAM.mesh, STREAM.node, STREAM.epoch)

    def floor(self) -> Checkpoint | None:
        return None

    def append(self, entries: tuple[Entry, ...]) -> None:
        self.head = extend(self.head, entries)
        self.pages.append(
            Page(STREAM.epoch, entries, sign_checkpoint(STREAM.mesh, STREAM.node, self.head, KEY.sign))
        )

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        return next((page for page in self.pages if page.entries[0].seq == after.seq + 1), None)


def messages(count: int, batch: int = 10) -> Outbox:
    return Outbox([entry(seq, message(seq)) for seq in range(1, count + 1)], batch)
