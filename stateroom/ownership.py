"""Who owns an agent, as a function of a set of records: the order of their arrival cannot matter.

Owners follow one another by rising ``ownerEpoch``. The first claim (``ownerEpoch`` 1) is signed by the
claimant itself; of several the lowest node id wins, on every node alike. Each later epoch is granted by the
owner of the epoch before, or by a seed, whose word goes before the owner's; of several grants of equal
standing the lowest new owner wins. A stranger cannot begin above the first epoch, and no timeout moves an
agent.
"""

from collections.abc import Callable, Iterable
from itertools import groupby

import msgspec

from stateroom.bodies import AgentBody
from stateroom.limits import FIRST_OWNER_EPOCH
from stateroom.records import Record


class Ownership(msgspec.Struct, frozen=True):
    """The outcome for one agent."""

    shown: Record
    """The record that readers see: the owner's newest, or the grant while the owner has not spoken."""
    grant: Record
    """The record by which the owner came to own it."""

    @property
    def proof(self) -> str:
        """What a successor must carry as ``handover`` to show that this owner had the right."""
        return self.grant.text


def agent_body(record: Record) -> AgentBody:
    """The body of a record of map ``agents``, which is never a tombstone."""
    assert isinstance(record.body, AgentBody)
    return record.body


def may_ever_count(record: Record) -> bool:
    """Whether some set of records could give this one a say: first claims are made by the claimant."""
    body = agent_body(record)
    return body.owner_epoch > FIRST_OWNER_EPOCH or body.owner == record.signer


def settle(records: Iterable[Record], is_seed: Callable[[str], bool]) -> Ownership | None:
    """The owner, from all records of one agent whose signatures hold; None when nobody has a right."""
    settled: Ownership | None = None
    ordered = sorted(records, key=_owner_epoch)
    for _, group in groupby(ordered, key=_owner_epoch):
        settled = _succeed(settled, list(group), is_seed)
    return settled


def _succeed(
    before: Ownership | None, records: list[Record], is_seed: Callable[[str], bool]
) -> Ownership | None:
    grants = [record for record in records if _grants(before, record, is_seed)]
    if not grants:
        return before
    best = min(grants, key=lambda grant: (not is_seed(grant.signer), agent_body(grant).owner))
    owner = agent_body(best).owner
    grant = max((g for g in grants if agent_body(g).owner == owner and g.signer == best.signer), key=_rank)
    own = [r for r in records if r.signer == owner == agent_body(r).owner]
    return Ownership(max(own, key=_rank, default=grant), grant)


def _grants(before: Ownership | None, record: Record, is_seed: Callable[[str], bool]) -> bool:
    if agent_body(record).owner_epoch == FIRST_OWNER_EPOCH:
        return record.signer == agent_body(record).owner
    return is_seed(record.signer) or (before is not None and record.signer == agent_body(before.grant).owner)


def _owner_epoch(record: Record) -> int:
    return agent_body(record).owner_epoch


def _rank(record: Record) -> tuple[int, int, str]:
    return record.rank
