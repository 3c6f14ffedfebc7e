"""What the state room proves of forks goes into the lake, and nothing else of it."""

from contextlib import closing

import msgspec
import pytest
from msgspec.structs import replace

from auth.keyring import Keyring
from gateway.clock import Clock
from gateway.founding import found
from gateway.home import Home
from gateway.lake.lake import Lake
from gateway.lake.proofs import home_proofs, keep_proofs
from gateway.rooms import Rooms
from outbox.chain import Head, sign_checkpoint
from outbox.forks import ForkProof, fold
from outbox.ids import Epoch, NodeId, Seq
from outbox.reader import JournalReader
from spark.layout import FORKS
from spark.sources import event_files
from tests.gateway.lake.test_collector import run
from tests.gateway.outboxes import messages

EPOCH = Epoch("000001-0000000000aa")


@pytest.fixture
def home(tmp_path):
    home = Home.of({"GATEWAY_HOME": str(tmp_path / "home")})
    found(home, NodeId("pi"), Clock(), {})
    return home


@pytest.fixture
def forked(home):
    """A proof that the home's own node has signed two histories."""
    key = Keyring(home.keys).kept_node_key()
    with closing(JournalReader.open(home.journal)) as reader:
        who = reader.identity()
    leaves = (b"l" * 32, b"m" * 32)

    def signed(seq, digest):
        return sign_checkpoint(who.mesh, who.node, Head(EPOCH, Seq(seq), digest), key.sign)

    return ForkProof(signed(10, b"a" * 32), signed(12, fold(b"b" * 32, leaves)), b"b" * 32, leaves)


async def say(home, proof):
    with closing(JournalReader.open(home.journal)) as reader:
        who = reader.identity()
    rooms = Rooms(home.room, who, Keyring(home.keys).kept_node_key(), Clock())
    await rooms.load()
    async with rooms.open():
        rooms.say_founder(home.admission.read_text())
        rooms.say_fork(proof)
        await rooms.state.settled()
    rooms.close()


async def test_a_proof_goes_into_the_lake_once_and_can_be_checked_there(home, forked, tmp_path):
    lake, key = Lake(tmp_path / "lake"), Keyring(home.keys).kept_node_key().public
    run(messages(5), lake)
    assert home_proofs(home, Clock()) == []
    await say(home, forked)
    (proof,) = home_proofs(home, Clock())
    assert proof == forked
    assert (keep_proofs(lake, [proof]), keep_proofs(lake, [proof])) == ([forked], [])
    (kept,) = event_files(lake.root).proofs
    assert (kept.node, kept.epoch, kept.seq) == ("pi", EPOCH, 10)
    assert lake.verify({"pi": key.verify}.get).faults == ()

    (path,) = (lake.root / FORKS).rglob("proof-*.json")
    for content, problem in (
        (b"{}", "missing required field"),
        (msgspec.json.encode(replace(forked, before=bytes(32))), "proves nothing"),
        (msgspec.json.encode(replace(forked, known=replace(forked.known, seq=Seq(11)))), "another place"),
    ):
        path.write_bytes(content)
        (fault,) = lake.verify({"pi": key.verify}.get).faults
        assert problem in fault.problem


async def test_what_proves_nothing_is_not_kept_and_a_home_without_a_room_has_nothing_to_say(home, forked):
    await say(home, replace(forked, before=bytes(32)))
    assert home_proofs(home, Clock()) == []
    for path in home.root.glob("room.db*"):
        path.unlink()
    assert home_proofs(home, Clock()) == []
