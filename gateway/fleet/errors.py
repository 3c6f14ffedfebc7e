"""Errors of whoever runs gateways as processes, below the mesh's tree.

::

    MeshError
    └── WorldError
        └── FleetFailed    fleet_failed    a gateway or a command did not do its part
"""

from outbox.errors import WorldError


class FleetFailed(WorldError):
    """A gateway did not start, a command failed, or a condition did not come true in time."""

    code = "fleet_failed"
