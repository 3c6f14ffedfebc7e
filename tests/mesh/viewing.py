"""Tickets for viewers that nobody here wrote."""

from gateway.links.peering import PATHS
from tests.mesh.knocking import Newcomer, door_of
from tests.mesh.processes import Node


async def viewer_of(node: Node) -> tuple[Newcomer, str]:
    """A member that runs no gateway, and an unused ticket of its own for room ``state``."""
    door = await door_of(node)
    viewer = door.newcomer("viewer")
    await viewer.join(await door.invite("viewer"))
    answer = await viewer.renew(("state",))
    return viewer, str(answer.json["wsTicket"])


def state_url(node: Node) -> str:
    """Of the room."""
    return f"ws://127.0.0.1:{node.port}{PATHS['state']}"
