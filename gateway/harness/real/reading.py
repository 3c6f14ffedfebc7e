"""Reads what a run has left: the journals of its nodes, and those that they gave up."""

from collections.abc import Mapping, Sequence

from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.harness.real.bygone import Bygone
from gateway.home import Home
from gateway.judging.evidence import deliverable, read_journal
from gateway.judging.facts import NodeFacts
from gateway.judging.pasts import Past, Pasts
from outbox.ids import NodeId


def read_all(
    homes: Mapping[NodeId, Home], bygones: Sequence[Bygone], clock: Clock
) -> tuple[dict[NodeId, NodeFacts], Pasts]:
    """All of them, each with the ledger rows of everything that any of them had to deliver."""
    events = deliverable(homes.values(), (bygone.lost for bygone in bygones))
    keys = {node: Keyring(home.keys).node_key(clock.entropy).public.verify for node, home in homes.items()}
    mesh = {node: read_journal(home.journal, keys[node], events) for node, home in homes.items()}
    pasts = (
        Past(
            node=bygone.node,
            way=bygone.way,
            order=bygone.order,
            since_ms=bygone.since_ms,
            base=read_journal(bygone.base, keys[bygone.node], events),
            lost=read_journal(bygone.lost, keys[bygone.node], events),
            account=bygone.account,
            accepted={node: known.accepted for node, known in bygone.known.items()},
            ended={node: known.ended for node, known in bygone.known.items()},
            read={node: known.read for node, known in bygone.known.items() if known.read is not None},
        )
        for bygone in bygones
    )
    return mesh, Pasts(pasts)
