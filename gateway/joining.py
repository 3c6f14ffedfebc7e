"""``gateway join``: make the home of a node that was invited.

The order makes every step repeatable: keys first, since the issuer will know this node by them; then the
exchange and one socket, in which the state room comes; the journal last. A join that was cut short anywhere
is run again with the same code: until the journal is there this home is nobody's, and a spent invite is no
obstacle to the key that spent it.
"""

import asyncio
from pathlib import Path

import msgspec
from msgspec.structs import replace

from auth.errors import BadJoinCode
from auth.joincodes import JoinCode
from auth.joiner import Joiner, pin_of
from auth.keyring import Keyring
from auth.keys import PublicKey
from gateway.clock import Clock
from gateway.door import STATE_ROOM
from gateway.errors import Denied, HomeError, TimedOut, Unreachable
from gateway.founding import new_identity, write_settings
from gateway.home import Home, write_private
from gateway.limits import JOIN_WITHIN_S
from gateway.links.peering import PATHS
from gateway.links.reach import Issuer
from gateway.links.tickets import Opening, TicketOffice
from gateway.links.visiting import replicate, visit
from gateway.rooms import Rooms
from outbox.ids import MeshId, NodeId, make_epoch
from outbox.journal import Journal
from outbox.lock import HomeLock
from stateroom.view import View

_AGAIN = "run the same command again: nothing is lost"


class Joined(msgspec.Struct, frozen=True):
    """A home that was just made."""

    mesh: MeshId
    node: NodeId
    issuer: NodeId
    home: Path


async def join(
    home: Home, code: JoinCode, node: NodeId | None, clock: Clock, settings: dict[str, object]
) -> Joined:
    """Join the mesh of a join code, as ``node`` unless the code names another.

    Raises BadJoinCode, WrongGateway (nothing secret was sent), Denied with the issuer's code, Unreachable,
    TimedOut, HomeError, HomeLocked.
    """
    name = _name(code, node)
    home.create()
    with HomeLock(home.lock):
        if Journal.made(home.journal):
            raise HomeError(f"{home.root} is the home of a node already", hint="start it with: gateway run")
        key = Keyring(home.keys).node_key(clock.entropy)
        identity = new_identity(code.mesh, name, clock)
        url, opening = await _open(code, Joiner(name, key), clock)
        issuer_key, ordinal = await _first_sync(Rooms(home.room, identity, key, clock), name, url, opening)
        first = make_epoch(ordinal, clock.entropy(6))
        issuer = Issuer(opening.gateway, url, issuer_key.text)
        write_private(home.issuer, msgspec.json.encode(issuer))
        write_settings(home, settings)
        Journal.create(home.journal, replace(identity, epoch=first)).close()
    return Joined(code.mesh, name, opening.gateway, home.root)


def _name(code: JoinCode, node: NodeId | None) -> NodeId:
    if node is not None and code.expected_node not in {None, node}:
        raise BadJoinCode(
            f"the invite is for a node named {code.expected_node}", hint="leave the name out, or use that one"
        )
    name = node or code.expected_node
    if name is None:
        raise BadJoinCode("the invite names no node", hint="choose a name with --node NAME")
    return name


async def _open(code: JoinCode, joiner: Joiner, clock: Clock) -> tuple[str, Opening]:
    """The first address that answers, and what opens the state room there."""
    office = TicketOffice(joiner, clock, allow_plain=True)
    failure: Unreachable | None = None
    try:
        for url in code.urls:
            try:
                return url, await _exchange(office, url, code)
            except Unreachable as error:
                failure = error
    finally:
        await office.close()
    assert failure is not None, "a join code has at least one address"
    raise failure


async def _exchange(office: TicketOffice, url: str, code: JoinCode) -> Opening:
    pin, path = pin_of(code), PATHS[STATE_ROOM]
    try:
        return await office.exchange(url, pin, code.token, path)
    except Denied as refusal:
        if refusal.wire_code != "token_already_used":
            raise
        try:
            # An earlier try may have spent it and died before it heard so: then the key is a member's.
            return await office.renew(url, pin, STATE_ROOM, path)
        except Denied:
            raise refusal from None


async def _first_sync(rooms: Rooms, node: NodeId, url: str, opening: Opening) -> tuple[PublicKey, int]:
    """Fill the state room until it admits this node; the issuer's key as the room has it, and the ordinal of
    the first epoch: behind those of everybody who had the name before.
    """
    await rooms.load()
    admitted = asyncio.Event()

    def look(view: View) -> None:
        if view.node(node) is not None and view.node(opening.gateway) is not None:
            admitted.set()

    rooms.watch(look)
    try:
        async with (
            asyncio.timeout(JOIN_WITHIN_S),
            visit(url, opening, STATE_ROOM) as socket,
            rooms.open(),
        ):
            await replicate(rooms, socket, opening.gateway, admitted)
    except TimeoutError:
        raise TimedOut("the state room did not come in time", hint=_AGAIN) from None
    finally:
        rooms.close()
    found = rooms.view().node(opening.gateway)
    if not admitted.is_set() or found is None:
        raise Unreachable(f"{opening.gateway} closed the state room before it was complete", hint=_AGAIN)
    former = rooms.view().revocations.get(node, ())
    return PublicKey.from_bytes(found.public_key), max((word.next_epoch for word in former), default=1)
