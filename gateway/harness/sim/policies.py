"""What the operators of one world have set."""

from msgspec.structs import replace

from gateway.engine.policy import MirrorPolicy, Policy, Retention
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.plan import Fault, Plan

_IMPATIENT = Policy(sla_accept_ms=60_000, sla_process_ms=60_000)
"""Incidents and status requests after a minute."""
_ERRAND_ROWS = 2
"""What is left of an errand meets everything else."""
_READER_LEASES_MS = (90_000, 5 * 60_000)
"""The liar is a member that never reads: without a lease it would hold everything for ever."""
_BLOB_GRACE_MS = 20_000
"""A sender that is slow finds that its file was let go of, and brings it again."""


def policy_of(plan: Plan, *, copies: bool, files: bool) -> Policy:
    """The policy of one node: of a seed when it keeps copies, of a world in which messages are ``files``."""
    policy = _IMPATIENT if Dice(plan.seed, "policy").chance(0.5) else Policy()
    if Dice(plan.seed, "errands").chance(0.3):
        policy = replace(policy, errand_rows=_ERRAND_ROWS)
    if copies:
        policy = replace(policy, mirror=MirrorPolicy(nodes="all"))
    if files:
        policy = replace(policy, blob_grace_ms=_BLOB_GRACE_MS)
    if Fault.RETENTION in plan.faults:
        lease_ms = Dice(plan.seed, "retention").among(_READER_LEASES_MS)
        policy = replace(policy, retention=Retention(entries_max=15, reader_lease_ms=lease_ms))
    return policy
