"""Who is in no state room hears of revocations when a link begins, and is believed when it tells of them."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from auth.keyring import Keyring
from auth.keys import SigningKey
from auth.sqlite_ledger import SqliteLedger
from gateway.cli.exits import Exit
from gateway.clock import Clock
from gateway.wire.frames import VERSION, VERSIONS, Have, Hello
from outbox import base64url
from outbox.database import Database
from outbox.ids import NodeId
from stateroom.bodies import ROOT, RevocationBody, RoomMap, revocation_key
from stateroom.records import parse_record, sign_record
from stateroom.revocations import revocation_body
from tests.gateway.local.test_cli import command
from tests.mesh.knocking import SWITCHING, Door, Newcomer, assert_refusal, door_of
from tests.mesh.piping import Pipe, open_pipe
from tests.mesh.processes import READY_WITHIN_S, Node, until
from tests.mesh.serving import serving


@pytest.fixture
def seed(mesh_dir: Path) -> Node:
    node = Node("vps", mesh_dir)
    node.found()
    return node


async def member(door: Door, name: str) -> Newcomer:
    """Admitted, by a pipe that is gone again: it was in no room ever."""
    newcomer = door.newcomer(name)
    answer = await newcomer.exchange(await door.invite(name), ("pipe",))
    assert (await newcomer.upgrade(str(answer.json["wsTicket"]), "pipe")).status == SWITCHING
    return newcomer


def word(by: str, signer: SigningKey, of: Newcomer, *, root_key: bytes = b"") -> str:
    """That a key is revoked, as a link tells it."""
    body = RevocationBody(
        node=NodeId(of.name), public_key=base64url.encode(of.key.public.raw), next_epoch=1000, reason="lost"
    )
    return sign_record(
        signer.sign,
        mesh=of.pin.mesh,
        room_map=RoomMap.REVOCATIONS,
        key=revocation_key(of.key.public.jkt, by),
        signer=by,
        epoch=1,
        counter=1,
        body=body,
        root_key=root_key,
    )


def root_of(seed: Node) -> SigningKey:
    root = Keyring(seed.home.keys).root_key()
    assert root is not None
    return root


async def greet_with(pipe: Pipe, *words: str) -> Hello:
    """Begin a link, say these words, and what the gateway has said."""
    await pipe.send(Hello(VERSION, VERSIONS, pipe.node, pipe.mesh, 0, words))
    said = await pipe.next(Hello)
    assert isinstance(said, Hello)
    return said


async def revoked(node: Node) -> dict[str, str]:
    """Who is out, and why, as its operator sees it."""
    async with node.client() as gateway:
        return {row.node: row.reason for row in await gateway.nodes() if row.revoked}


async def test_a_word_in_hello_is_enough_and_stays(seed: Node) -> None:
    root = root_of(seed)
    async with serving(seed, Clock()):
        door = await door_of(seed)
        mbp, pi = await member(door, "mbp"), await member(door, "pi")
        said = word(ROOT, root, pi, root_key=root.public.raw)
        async with open_pipe(mbp) as pipe:
            await greet_with(pipe, "no record", word("mbp", mbp.key, pi), said)

        async def kept() -> bool:
            with closing(Database.open_read_only(seed.home.journal)) as journal:
                return SqliteLedger(journal).is_revoked(pi.key.public.jkt)

        await until(kept, READY_WITHIN_S, "the ledger knows")
        refused = await pi.renew(("pipe",))
        assert_refusal(refused, 403, "node_revoked")
        assert refused.json["revocations"] == [said]
        assert refused.json["detail"] == "this key of pi was revoked: by root, lost"
        assert "lost" in (await revoked(seed))["pi"]
        assert (await mbp.renew(("pipe",))).status == 200
    seed.home.room.unlink()
    async with serving(seed, Clock()):
        assert set(await revoked(seed)) == {"pi"}
        assert_refusal(await pi.renew(("pipe",)), 403, "node_revoked")
        async with open_pipe(mbp) as pipe:
            assert (await greet_with(pipe)).revocations == (said,)


async def test_a_word_of_who_may_not_is_nothing(seed: Node) -> None:
    async with serving(seed, Clock()):
        door = await door_of(seed)
        mbp, pi = await member(door, "mbp"), await member(door, "pi")
        async with open_pipe(mbp) as pipe:
            as_root = word(ROOT, mbp.key, pi, root_key=root_of(seed).public.raw)
            await greet_with(pipe, as_root, word("mbp", mbp.key, pi), word("vps", mbp.key, pi))
            await pipe.next(Have)
        assert await revoked(seed) == {}
        assert (await pi.renew(("pipe",))).status == 200


async def test_a_banned_name_is_told_why_with_any_key_and_others_are_told_nothing(seed: Node) -> None:
    async with serving(seed, Clock()):
        door = await door_of(seed)
        pi = await member(door, "pi")
        async with seed.client() as gateway:
            await gateway.revoke_node("pi", ban=True, reason="for good")
        thief = door.newcomer("pi")
        refused = await thief.exchange(await door.invite("pi"), ("pipe",))
        assert_refusal(refused, 403, "node_revoked")
        assert refused.json["detail"] == "the name pi was revoked for good: by vps, for good"
        (told,) = refused.json["revocations"]
        assert revocation_body(parse_record(str(told))).public_key == base64url.encode(pi.key.public.raw)
        stranger = await door.newcomer("lab").renew(("pipe",))
        assert_refusal(stranger, 403, "node_mismatch")
        assert "revocations" not in stranger.json


async def test_a_link_ends_so_that_the_next_one_tells(seed: Node) -> None:
    async with serving(seed, Clock()):
        door = await door_of(seed)
        mbp = await member(door, "mbp")
        await member(door, "pi")
        async with open_pipe(mbp) as pipe:
            await pipe.greet()
            async with seed.client() as gateway:

                async def linked() -> bool:
                    return any(link.node == "mbp" for link in (await gateway.status()).links)

                await until(linked, READY_WITHIN_S, "mbp is linked")
            code, out, err = await command(
                seed, "node", "revoke", "pi", "--reason", "stolen", "--yes", "--json"
            )
            assert (code, err) == (Exit.OK, "")
            done = json.loads(out)
            assert (done["node"], done["by"], done["reason"]) == ("pi", "vps", "stolen")
            bye, _ = await pipe.farewell()
            assert bye is not None
            assert (bye.code, bye.hint) == ("link_ended", "there is a revocation to tell of")
        async with open_pipe(mbp) as pipe:
            (told,) = (await greet_with(pipe)).revocations
            assert revocation_body(parse_record(told)).node == "pi"
