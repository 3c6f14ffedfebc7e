"""What every fault that goes on for a while needs of the troubles of a world."""

from collections.abc import Callable
from typing import Protocol

from gateway.harness.sim.mesh import SimMesh


class Troubled(Protocol):
    """Implemented by ``gateway.harness.sim.troubles``."""

    mesh: SimMesh
    is_on: bool

    def note(self, who: str, what: str, details: str = "") -> None:
        """Into the trace."""
        ...

    def later(self, us: int, action: Callable[..., None], *args: object) -> None:
        """Do it after a while."""
        ...
