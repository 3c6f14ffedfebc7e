"""Nodes whose blobs may take little, and the operators who allow them more."""

from typing import TYPE_CHECKING

from gateway.harness.sim.dice import Dice
from gateway.harness.sim.findings import Promise
from gateway.harness.sim.gateway import BLOBS_BYTES_MAX
from gateway.harness.sim.plan import Fault, Plan

if TYPE_CHECKING:
    from gateway.harness.sim.mesh import SimMesh

_SMALL_BYTES = (120_000, 300_000)
"""Enough for the largest file of a world."""


def room_for_blobs(plan: Plan, name: str) -> int:
    """What the blobs of a node may take."""
    dice = Dice(plan.seed, f"store of {name}")
    small = Fault.SMALL_STORE in plan.faults and dice.chance(0.5)
    return dice.between(*_SMALL_BYTES) if small else BLOBS_BYTES_MAX


def start_with_room(mesh: "SimMesh") -> None:
    """Operators have seen that files are refused and allow more: a gateway starts again for that. All run."""
    for name, home in mesh.homes.items():
        if home.blobs_bytes_max == BLOBS_BYTES_MAX:
            continue
        taken, allowed = home.disk.blob_bytes(), home.blobs_bytes_max
        if taken > allowed:
            what = f"the blobs of {name} take {taken} bytes, and {allowed} are allowed"
            mesh.witness.find(Promise.BLOBS_ARE_WHOLE, what)
        home.blobs_bytes_max = BLOBS_BYTES_MAX
        mesh.kill(name)
    for name in mesh.names:
        mesh.start(name)
