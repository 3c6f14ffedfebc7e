"""Nodes whose blobs may take little."""

from gateway.harness.sim.dice import Dice
from gateway.harness.sim.gateway import BLOBS_BYTES_MAX
from gateway.harness.sim.plan import Fault, Plan

_SMALL_BYTES = (120_000, 300_000)
"""Enough for the largest file of a world."""


def room_for_blobs(plan: Plan, name: str) -> int:
    """What the blobs of a node may take."""
    dice = Dice(plan.seed, f"store of {name}")
    small = Fault.SMALL_STORE in plan.faults and dice.chance(0.5)
    return dice.between(*_SMALL_BYTES) if small else BLOBS_BYTES_MAX
