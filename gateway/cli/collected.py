"""What a collector says: what came to stdout, where it is to a terminal."""

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from gateway.cli.output import emit_json_line, note

if TYPE_CHECKING:
    from gateway.lake.collector import Collected
    from outbox.forks import ForkProof
    from outbox.ids import NodeId, Seq


def show_place(node: str, seq: int) -> None:
    """Where an outbox is, for whoever watches."""
    if sys.stderr.isatty():
        note(f"{node}: collected up to {seq}")


def tell_forks(proofs: Iterable["ForkProof"]) -> None:
    """What is new about nodes that have signed two histories."""
    for proof in proofs:
        known = proof.known
        note(f"{known.node} has signed two histories of {known.epoch}: the proof is kept for reports")


def tell_ends(ends: "Mapping[NodeId, Seq]") -> None:
    """Whose outbox has an end, since the node was put out of the mesh."""
    for node, seq in sorted(ends.items()):
        upto = (
            f"its outbox counts up to {seq}, and is read no further"
            if seq
            else "nothing of its outbox counts"
        )
        note(f"{node} was put out: {upto}")


def tell(found: dict["NodeId", "Collected"], *, quiet: bool, as_json: bool) -> None:
    """What was added; when following, only what is new."""
    told = {node: done for node, done in found.items() if done.rows or not quiet}
    if as_json and (told or not quiet):
        emit_json_line(
            {
                node: {"events": done.rows, "head": done.head.seq, "flagged": done.flagged}
                for node, done in told.items()
            }
        )
    elif not as_json:
        for node, done in told.items():
            click.echo(f"{node}: {done.rows} new events, up to {done.head.seq}")
