"""What a local bearer token may do.

``admin`` does everything; ``agent:<name>`` speaks as that one agent and reads its inbox.
"""

import msgspec

from outbox.ids import AgentId


class Admin(msgspec.Struct, frozen=True, tag="admin"):
    """The operator of this node."""


class AsAgent(msgspec.Struct, frozen=True, tag="agent"):
    """One agent, and nobody else."""

    name: AgentId


Scope = Admin | AsAgent


def may_act_as(scope: Scope, agent: AgentId) -> bool:
    """Whether this scope may send as an agent and read its inbox."""
    return scope in {Admin(), AsAgent(agent)}
