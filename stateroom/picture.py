"""From records to the parts of a View."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from outbox import base64url
from outbox.chain import Head
from outbox.ids import AgentId, Epoch, NodeId, Seq
from stateroom.bodies import ROOT, AdmissionBody, CursorsBody, FloorBody, NodeBody, parse_fork_key, position
from stateroom.forks import fork_body_of
from stateroom.ownership import agent_body
from stateroom.records import Record
from stateroom.revocations import Revocation
from stateroom.view import CursorsView, ForkView, NodeView, OwnerView, RevocationView


class Admitted(msgspec.Struct, frozen=True):
    """Whose word counts."""

    public_key: bytes
    role: Literal["member", "seed"]
    by_root: bool
    reads_all: bool = False


class Seen(msgspec.Struct, frozen=True):
    """What presence knows about a node."""

    online: bool
    last_seen_ms: int
    """Receiver's clock."""
    links: tuple[NodeId, ...] = ()
    endpoints: tuple[str, ...] = ()


def admitted_by(record: Record) -> Admitted:
    """Whose word counts, by a record of map ``admissions``, which is never a tombstone."""
    assert isinstance(record.body, AdmissionBody)
    key = base64url.decode(record.body.public_key)
    return Admitted(key, record.body.role, record.signer == ROOT, record.body.reads_all)


def node_view(node: NodeId, admitted: Admitted, body: NodeBody | None, seen: Seen | None) -> NodeView:
    """A node, from its admission, its own record and its last heartbeat; newer endpoints are in the last."""
    endpoints = body.endpoints if body else ()
    return NodeView(
        node=node,
        public_key=admitted.public_key,
        role=admitted.role,
        reads_all=admitted.reads_all,
        endpoints=(seen.endpoints if seen else ()) or endpoints,
        outbox_epoch=Epoch(body.outbox_epoch) if body and body.outbox_epoch else None,
        head_seq=Seq(body.head_seq if body else 0),
        head_hash=body.head_hash if body else "",
        software=body.software if body else "",
        floor=_floor(body.floor) if body and body.floor else None,
        online=seen is not None and seen.online,
        last_seen_ms=seen.last_seen_ms if seen else None,
        links=seen.links if seen else (),
    )


def _floor(body: FloorBody) -> Head:
    return Head(Epoch(body.epoch), Seq(body.seq), body.hash)


def agents_view(records: Iterable[Record]) -> dict[AgentId, OwnerView]:
    """Who owns which agent, from the records that count."""
    return {AgentId(record.key): _owner_view(record) for record in records}


def _owner_view(record: Record) -> OwnerView:
    """Who owns an agent, from the record that counts."""
    body = agent_body(record)
    return OwnerView(
        agent=AgentId(record.key),
        node=NodeId(body.owner),
        owner_epoch=body.owner_epoch,
        status=body.status,
        fallback=tuple(NodeId(node) for node in body.fallback),
        grace_ms=body.grace_ms,
        groups=body.groups,
    )


def cursors_view(records: Iterable[Record]) -> dict[NodeId, CursorsView]:
    """How far each node has read the others."""
    return {
        NodeId(record.key): _cursors_view(record.body)
        for record in records
        if isinstance(record.body, CursorsBody)
    }


def _cursors_view(body: CursorsBody) -> CursorsView:
    """How far a node has read."""
    cursors = {NodeId(source): position(pair) for source, pair in body.cursors.items()}
    return CursorsView(cursors=cursors, head=position(body.head))


def forks_view(records: Iterable[Record]) -> dict[NodeId, tuple[ForkView, ...]]:
    """Which nodes have written twice, in order of their epochs."""
    forks: dict[NodeId, list[ForkView]] = {}
    for record in records:
        node, epoch = parse_fork_key(record.key)
        forks.setdefault(node, []).append(ForkView(epoch=epoch, seq=Seq(fork_body_of(record).known.seq)))
    return {node: tuple(sorted(found, key=lambda fork: fork.epoch)) for node, found in sorted(forks.items())}


def revocations_view(
    revoked: Iterable[Revocation], admitted: Mapping[str, Admitted]
) -> dict[NodeId, tuple[RevocationView, ...]]:
    """Which keys are revoked, by node in the order of their epochs; not one that the root's word keeps."""
    found: dict[NodeId, list[RevocationView]] = {}
    for word in revoked:
        now = admitted.get(word.node)
        if now is not None and now.public_key == word.public_key:
            continue
        by, reason = word.said
        view = RevocationView(
            node=word.node,
            public_key=word.public_key,
            ban=word.ban,
            by=by,
            reason=reason,
            last=word.last,
            next_epoch=word.next_epoch,
        )
        found.setdefault(word.node, []).append(view)
    return {node: tuple(sorted(views, key=lambda view: view.next_epoch)) for node, views in found.items()}
