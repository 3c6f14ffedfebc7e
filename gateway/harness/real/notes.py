"""What the harness itself saw of a run, beside what agents saw and journals say."""

from collections.abc import Mapping

import msgspec

from gateway.harness.real.faultclass import FaultClass
from gateway.judging.clocks import Wrong
from gateway.judging.facts import NodeFacts
from gateway.judging.lives import Life
from gateway.judging.pasts import NONE, Pasts
from gateway.judging.witness import Account
from outbox.chain import Head
from outbox.ids import NodeId


class End(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway ended, and nobody had asked for it."""

    node: NodeId
    status: int
    trouble: FaultClass | None
    """What was being done to it; None: nothing explains it."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """How far a journal was when its gateway was dead."""

    node: NodeId
    order: int = 0
    """Of the witness: when it was dead."""
    head: Head
    cursors: dict[NodeId, Head]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known about a run."""

    mesh: dict[NodeId, NodeFacts]
    account: Account
    pasts: Pasts = NONE
    """What nodes gave up."""
    marks: tuple[Mark, ...] = ()
    ends: tuple[End, ...] = ()
    clocks: Mapping[NodeId, Wrong] = msgspec.field(default_factory=dict)
    """How wrong clocks were set, for those that were."""
    lives: tuple[Life, ...] = ()
    """Of all gateways, one after the other."""
    complaints: tuple[tuple[NodeId, str], ...] = ()
    """Bugs that gateways met and wrote into their logs."""
    readmitted: tuple[NodeId, ...] = ()
    """Nodes whose spent invite let somebody in again."""
    rooms_differ: str = ""
    """How two gateways' rooms differ; empty when all are alike."""
    unanswered: int = 0
    """Sends that no gateway answered in time."""
    rested: bool = True
    """Whether nothing was on its way any more when the gateways were stopped."""
