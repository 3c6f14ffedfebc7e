"""What a simulated mesh does without: invites, and tokens of agents."""

from gateway.engine.desk import Desk, DoorRequest
from gateway.engine.effects import Answer
from gateway.engine.inputs import Now
from outbox.errors import NotFound
from stateroom.view import View


class NoDesk(Desk):
    """Nobody is invited."""

    def answer(self, item: DoorRequest, now: Now, view: View) -> Answer:  # noqa: ARG002 - as a Desk
        """Raises NotFound."""
        raise NotFound("there are no invites in a simulated mesh")


class NoTokens:
    """Nobody shows one."""

    def refresh(self) -> None:
        """Agents need none here."""
