from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.awaited import Awaited, is_missing
from gateway.engine.turnkey import Place
from outbox.blobref import BlobId
from outbox.ids import Epoch, MeshId, NodeId
from outbox.memory import MemoryStore
from outbox.records import Blob, Identity

blobs = st.sampled_from([BlobId(digit * 64) for digit in "12"])
places = st.sampled_from([("inbox", "one"), ("inbox", "two"), ("other", "three")])


@given(st.lists(st.tuples(places, st.none() | blobs)))
def test_each_waits_for_one_blob_in_the_order_of_its_coming(steps: list[tuple[Place, BlobId | None]]) -> None:
    awaited, model = Awaited(), dict[Place, BlobId]()
    for place, blob in steps:
        if blob is None:
            awaited.drop(place)
            model.pop(place, None)
        elif place not in model:
            awaited.add(blob, place)
            model[place] = blob
        assert (place in awaited) is (place in model)
        for each in (BlobId("1" * 64), BlobId("2" * 64)):
            waiting = [key[1] for key, wanted in model.items() if wanted == each]
            assert [awaited.turns(each, most) for most in range(4)] == [waiting[:most] for most in range(4)]


def test_what_is_not_named_is_not_missing() -> None:
    store = MemoryStore(Identity(MeshId("mesh"), NodeId("a"), Epoch("000001-0123456789ab")))
    sha256 = BlobId("1" * 64)
    assert not is_missing(store, None)
    assert is_missing(store, sha256)
    store.begin()
    store.put_blob(Blob(sha256=sha256, bytes=1, stored_at_ms=1))
    assert not is_missing(store, sha256)
