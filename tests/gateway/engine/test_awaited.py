from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.awaited import Awaited, is_missing
from gateway.engine.turnkey import TurnKey
from outbox.blobref import BlobId
from outbox.ids import AgentId, Epoch, EventId, MeshId, NodeId
from outbox.memory import MemoryStore
from outbox.records import Blob, Identity

blobs = st.sampled_from([BlobId(digit * 64) for digit in "12"])
keys = st.sampled_from([(NodeId("a"), EventId(event), AgentId("bob")) for event in ("one", "two", "three")])


@given(st.lists(st.tuples(keys, st.none() | blobs)))
def test_each_waits_for_one_blob_in_the_order_of_its_coming(
    steps: list[tuple[TurnKey, BlobId | None]],
) -> None:
    awaited, model = Awaited(), dict[TurnKey, BlobId]()
    for key, blob in steps:
        if blob is None:
            awaited.drop(key)
            model.pop(key, None)
        elif key not in model:
            awaited.add(blob, key)
            model[key] = blob
        assert (key in awaited) is (key in model)
        for each in (BlobId("1" * 64), BlobId("2" * 64)):
            waiting = [turn for turn, wanted in model.items() if wanted == each]
            assert [awaited.turns(each, most) for most in range(4)] == [waiting[:most] for most in range(4)]


def test_what_is_not_named_is_not_missing() -> None:
    store = MemoryStore(Identity(MeshId("mesh"), NodeId("a"), Epoch("000001-0123456789ab")))
    sha256 = BlobId("1" * 64)
    assert not is_missing(store, None)
    assert is_missing(store, sha256)
    store.begin()
    store.put_blob(Blob(sha256=sha256, bytes=1, stored_at_ms=1))
    assert not is_missing(store, sha256)
