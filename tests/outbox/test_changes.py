"""What a commit has changed, as one value."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from outbox.changes import BEHIND, pack, unpack
from outbox.errors import StorageFailed
from outbox.ids import NodeId, Seq
from outbox.kinds import Outcome
from outbox.records import DeliveryState, TurnState
from outbox.tables import CURSORS, DELIVERIES, RECEIVED, Cursor, Table
from tests.outbox.conftest import EPOCH, World

VERSION_15 = Path(__file__).parent / "golden" / "changes-15.msgpack"
"""As the first version that had changes wrote them; never made anew."""


def changed(world: World) -> dict[Table[Any], list[msgspec.Struct]]:
    return {
        DELIVERIES: [world.delivery(1, node=None, outcome=Outcome.OK, state=DeliveryState.REPLIED)],
        RECEIVED: [world.received(2, state=TurnState.DONE), world.received(3, body=b"\xff\x00")],
        CURSORS: [Cursor(NodeId("mbp"), EPOCH, Seq(4), bytes(32), b"s")],
    }


def test_what_is_packed_comes_out_again(world: World) -> None:
    assert set(changed(world)) == set(BEHIND)
    assert unpack(pack(changed(world))) == changed(world)


def test_what_the_first_version_has_left_is_read(world: World) -> None:
    assert unpack(VERSION_15.read_bytes()) == changed(world)


def test_fields_that_an_older_version_did_not_have_get_their_defaults(world: World) -> None:
    row = world.received(1, blob=None)
    older = {"received": [msgspec.structs.astuple(row)[:-2]]}
    assert unpack(msgspec.msgpack.encode(older)) == {RECEIVED: [row]}


@pytest.mark.parametrize(
    "value",
    [
        pack(changed(World()))[:-1],
        b"\x01",
        msgspec.msgpack.encode({"outbox": []}),
        msgspec.msgpack.encode({"cursors": [["mbp", EPOCH, "four", bytes(32)]]}),
        msgspec.msgpack.encode({"cursors": [["mbp", EPOCH, 4, bytes(32), b"", "more"]]}),
        msgspec.msgpack.encode({"cursors": [["mbp"]]}),
    ],
    ids=["torn", "no map", "another table", "another type", "more fields", "fewer fields"],
)
def test_a_damaged_value_is_a_storage_failure(value: bytes) -> None:
    with pytest.raises(StorageFailed, match="damaged") as caught:
        unpack(value)
    assert "backup" in caught.value.hint
