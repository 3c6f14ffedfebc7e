"""Who is told what agents see: the witness of a world, or nobody, where a copy of a home runs."""

from typing import Protocol

from gateway.engine.effects import Handed, Sent, Told
from gateway.harness.sim.notices import Notice


class Seeing(Protocol):
    """What agents tell of."""

    def sent(self, node: str, agent: str, key: str, answer: Sent) -> None:
        """An agent was told that its message is in the outbox."""
        ...

    def is_out(self, to: str) -> bool:
        """Whether one of these agents lives at a node that was put out."""
        ...

    def reported_to(self, node: str, agent: str, notice: Notice, answer: Told) -> None:
        """An agent was told that the incident of a report is in the outbox."""
        ...

    def handed(self, node: str, agent: str, turn: Handed) -> None:
        """An agent has a turn in its hands."""
        ...

    def returned(self, node: str, agent: str, event: str) -> None:
        """An agent gave its turn back."""
        ...

    def ended(self, node: str, agent: str, event: str) -> None:
        """An agent was told that its turn has ended."""
        ...


class Unseen:
    """Tells nobody: no promise is made about what a copy does, but that it is found out."""

    def sent(self, node: str, agent: str, key: str, answer: Sent) -> None:
        """As ``Seeing``."""

    def is_out(self, to: str) -> bool:  # noqa: ARG002 - as ``Seeing``
        """As ``Seeing``."""
        return False

    def reported_to(self, node: str, agent: str, notice: Notice, answer: Told) -> None:
        """As ``Seeing``."""

    def handed(self, node: str, agent: str, turn: Handed) -> None:
        """As ``Seeing``."""

    def returned(self, node: str, agent: str, event: str) -> None:
        """As ``Seeing``."""

    def ended(self, node: str, agent: str, event: str) -> None:
        """As ``Seeing``."""
