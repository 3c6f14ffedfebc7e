"""Operators who allow blobs more than they might take, when the faults of a world end."""

from gateway.harness.sim.findings import Promise
from gateway.harness.sim.gateway import BLOBS_BYTES_MAX
from gateway.harness.sim.mesh import SimMesh


def start_with_room(mesh: SimMesh) -> None:
    """They have seen that files are refused and allow more: gateways start again for that. All run."""
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
