"""What ``collect --links`` does and says: rounds over the mesh, as a node whose gateway does not run."""

import asyncio
from collections.abc import Collection

from gateway.cli.collected import show_place, tell, tell_ends, tell_forks
from gateway.cli.output import note
from gateway.clock import Clock
from gateway.collecting.rounds import Round, Rounds
from gateway.errors import Denied, TimedOut, Unreachable
from gateway.home import Home
from gateway.lake.lake import Lake
from outbox.errors import PeerError
from outbox.ids import NodeId
from spark.limits import VISIT_EVERY_S
from spark.objects import LakePath


def collect_over_links(
    home: Home, lake: LakePath, only: Collection[NodeId], *, follow: bool, as_json: bool
) -> None:
    """One round, or with ``follow`` rounds until interrupted, over links that are kept.

    Raises as ``Rounds.collect``; once a first round has reached somebody, later ones may reach nobody.
    """
    asyncio.run(_collect(home, lake, only, follow=follow, as_json=as_json))


async def _collect(
    home: Home, lake: LakePath, only: Collection[NodeId], *, follow: bool, as_json: bool
) -> None:
    async with Rounds.opened(home, Lake(lake), Clock()) as rounds:
        told = _tell(await rounds.collect(only, show_place), frozenset(), quiet=False, as_json=as_json)
        while follow:
            await asyncio.sleep(VISIT_EVERY_S)
            try:
                found = await rounds.collect(only, show_place)
            except (Unreachable, TimedOut, Denied, PeerError) as error:
                note(f"{error}; it is tried again")
                continue
            told = _tell(found, told, quiet=True, as_json=as_json)


def _tell(found: Round, told: frozenset[str], *, quiet: bool, as_json: bool) -> frozenset[str]:
    """What came to stdout, what did not to stderr: once, until it changes."""
    tell(found.found, quiet=quiet, as_json=as_json)
    tell_forks(found.forks)
    tell_ends({node: seq for node, seq in found.ended.items() if f"{node} {seq}" not in told})
    missed = {f"{unread.node}: {unread.why}" for unread in found.unread}
    missed |= {f"{node}: nobody who was reached has its outbox" for node in found.absent}
    for line in sorted(missed - told):
        note(line)
    return frozenset(missed) | {f"{node} {seq}" for node, seq in found.ended.items()}
