"""What went with the histories that nodes gave up: told in numbers, never passed over."""

import msgspec

from gateway.judging.engagements import ends_before
from gateway.judging.facts import Mesh
from gateway.judging.pasts import Pasts
from gateway.judging.witness import Account, Promise
from outbox.ids import EventId


class Losses(msgspec.Struct, frozen=True):
    """Events and turns that somebody forgot."""

    forgotten: frozenset[EventId] = frozenset()
    """Their senders were told "appended", and they stand only in an outbox that was given up."""
    gone: frozenset[EventId] = frozenset()
    """Of these the ones that are in nobody's inbox."""
    dealt_again: int = 0
    """Turns that came once more after their end was forgotten."""


NOTHING = Losses()


def losses(mesh: Mesh, account: Account, pasts: Pasts) -> Losses:
    """All of a run."""
    kept = {entry.event_id for facts in mesh.values() for entry in facts.outbox}
    gave_up = {entry.event_id for past in pasts.all for entry in past.lost.outbox} - kept
    told = {one.event_id for one in (*account.promises, *_of_clones(pasts))}
    read = {turn.event for facts in mesh.values() for turn in facts.received}
    forgotten = frozenset(told & gave_up)
    return Losses(forgotten, forgotten - read, _dealt_again(account, pasts))


def _of_clones(pasts: Pasts) -> tuple[Promise, ...]:
    return tuple(promise for past in pasts.all for promise in past.account.promises)


def _dealt_again(account: Account, pasts: Pasts) -> int:
    """A turn that comes three times is one."""
    ended = ends_before(account)
    return len(
        {
            (turn.agent, turn.event_id)
            for turn in account.sightings
            if (end := ended(turn)) is not None and pasts.lapse(turn, end) is not None
        }
    )
