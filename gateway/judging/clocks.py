"""Clocks that disagree: what ACKs show of them, and whether somebody has set them so.

An ACK cannot come before its message: one that is older than what it answers tells by how much, at least, its
node's clock is behind that of the message's.
"""

from collections.abc import Iterator, Mapping

import msgspec

from gateway.judging.facts import Mesh
from gateway.judging.faults import Fault, FaultKind
from outbox.ids import EventId, NodeId
from outbox.kinds import RULES, known_kind
from spark.limits import CLOCK_SKEW_MS

Pair = tuple[NodeId, NodeId]
"""Who wrote the messages, and who accepted them."""


class Wrong(msgspec.Struct, frozen=True):
    """How wrong a clock was set in a run, at most, in both directions. Milliseconds."""

    ahead_ms: int = 0
    behind_ms: int = 0


def skews(mesh: Mesh) -> dict[Pair, int]:
    """The least time from a message to its first ACK for each pair of nodes; below zero, clocks disagree."""
    created: dict[EventId, tuple[NodeId, int]] = {}
    accepted: dict[EventId, tuple[int, NodeId]] = {}
    for node, facts in mesh.items():
        for entry in facts.outbox:
            kind = known_kind(entry.kind)
            if kind is not None and RULES[kind].accepted:
                first_ms = created.get(entry.event_id, (node, entry.at_ms))[1]
                created[entry.event_id] = (node, min(first_ms, entry.at_ms))
            elif entry.accepts and entry.corr_id is not None:
                said = (entry.at_ms, node)
                accepted[entry.corr_id] = min(said, accepted.get(entry.corr_id, said))
    least: dict[Pair, int] = {}
    for event, (at_ms, reader) in accepted.items():
        if event in created and (writer := created[event][0]) != reader:
            took_ms = at_ms - created[event][1]
            least[writer, reader] = min(took_ms, least.get((writer, reader), took_ms))
    return least


def check_clocks(mesh: Mesh, wrong: Mapping[NodeId, Wrong]) -> Iterator[Fault]:
    """No two clocks disagree by more than somebody has set them apart."""
    for (writer, reader), least_ms in skews(mesh).items():
        set_ms = wrong.get(writer, Wrong()).ahead_ms + wrong.get(reader, Wrong()).behind_ms
        if -least_ms > set_ms + CLOCK_SKEW_MS:
            detail = f"an ACK is {-least_ms} ms older than its message, the clocks were set {set_ms} ms apart"
            yield Fault(FaultKind.CLOCK, f"{writer}>{reader}", detail)
