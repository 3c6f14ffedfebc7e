"""What the journals must say after a run, held against what agents were told.

The invariants themselves are the product's (``gateway.judging``); here they are applied to all nodes, with
two more that need a run whose every message is meant to end well.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing

from gateway.clock import Clock
from gateway.judging.endings import check_agreement, check_settlements
from gateway.judging.evidence import read_mesh
from gateway.judging.facts import Mesh
from gateway.judging.faults import Fault
from gateway.judging.invariants import check_all
from gateway.judging.witness import Account
from outbox.delivery import settled
from outbox.kinds import Kind
from outbox.reader import JournalReader
from outbox.records import DeliveryState
from tests.mesh.processes import Node

ROWS_MAX = 100_000


def faults(nodes: tuple[Node, ...], account: Account) -> list[Fault]:
    """Every broken promise of a run that has come to rest."""
    mesh: Mesh = {facts.node: facts for facts in read_mesh([node.home for node in nodes], Clock())}
    return [*_faults(mesh, account)]


def _faults(mesh: Mesh, account: Account) -> Iterator[Fault]:
    yield from check_all(mesh, account)
    yield from check_settlements(mesh, account)
    yield from check_agreement(mesh)


def at_rest(nodes: tuple[Node, ...], messages: int) -> bool:
    """Whether so many messages were sent, all of them have ended, and everybody has read everything."""
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(node.journal())) for node in nodes]
        rows = [row for reader in readers for row in reader.deliveries(DeliveryState, ROWS_MAX)]
        return (
            sum(row.kind == Kind.MESSAGE for row in rows) >= messages
            and all(settled(Kind(row.kind), row.state) for row in rows)
            and not any(reader.open_turns() for reader in readers)
            and all(_has_read(one, other) for one in readers for other in readers if one is not other)
        )


def _has_read(reader: JournalReader, other: JournalReader) -> bool:
    cursor = reader.cursor(other.identity().node)
    return (cursor.seq if cursor is not None else 0) == other.head().seq
