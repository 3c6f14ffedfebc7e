import itertools

import pytest
from pycrdt import Doc, Map

from stateroom.errors import InvalidUpdate
from stateroom.replica import Replica, Touched, merge
from stateroom.varints import uint


@pytest.fixture
def ids() -> itertools.count:
    return itertools.count(100)


def replica(ids: itertools.count) -> Replica:
    return Replica({"nodes"}, lambda: next(ids))


def test_changes_are_handed_over_once_with_their_origin(ids) -> None:
    one, two = replica(ids), replica(ids)
    one.put("nodes", "a", "1")
    (origin, update), *rest = one.take().updates
    assert (origin, rest) == (None, [])
    link = object()
    two.apply(update, link)
    happened = two.take()
    assert happened.updates[0][0] is link
    assert happened.touched == [Touched("nodes", "a", "1")]
    assert two.take().updates == []


def test_an_update_that_changes_nothing_is_no_news(ids) -> None:
    one = replica(ids)
    one.put("nodes", "a", "1")
    update = one.encode()
    one.take()
    one.apply(update, object())
    assert (one.take().updates, one.client_id) == ([], 100)


def test_a_forged_clock_makes_us_begin_again_under_a_new_id(ids) -> None:
    one, other = replica(ids), replica(ids)
    one.put("nodes", "a", "1")
    forger = Doc(client_id=one.client_id)
    forger.apply_update(one.encode())
    forger.get("nodes", type=Map)["evil"] = "x"
    one.take()
    one.apply(forger.get_update(one.state()), object())
    assert one.client_id != forger.client_id
    other.apply(forger.get_update(), object())
    one.apply(other.lacking(one.state()), object())
    one.put("nodes", "b", "2")
    other.apply(one.encode(), object())
    for each in (one, other):
        assert [each.get("nodes", key) for key in ("a", "b", "evil")] == ["1", "2", "x"]


def test_the_nine_byte_claim_on_a_victims_clock_is_refused(ids) -> None:
    victim, other = replica(ids), replica(ids)
    claim = b"\x01\x01" + uint(victim.client_id) + b"\x00\x00\x05\x00"
    for each in (victim, other):
        with pytest.raises(InvalidUpdate, match="gc"):
            each.apply(claim, object())
    victim.put("nodes", "a", "1")
    other.apply(victim.encode(), object())
    assert other.get("nodes", "a") == "1"


def test_native_errors_are_typed(ids) -> None:
    one = replica(ids)
    with pytest.raises(InvalidUpdate):
        one.lacking(b"\x01")
    with pytest.raises(InvalidUpdate):
        one.apply(b"\x01\x01", object())


def test_a_panic_of_the_native_code_is_a_refusal(ids, monkeypatch) -> None:
    panic = type("PanicException", (BaseException,), {})

    class Panicking:
        client_id = 1

        def get_update(self, _: bytes) -> bytes:
            raise panic

    one = replica(ids)
    one._doc = Panicking()
    with pytest.raises(InvalidUpdate, match="panic"):
        one.lacking(b"\x00")


def test_other_base_exceptions_pass(ids) -> None:
    class Interrupted:
        client_id = 1

        def get_update(self, _: bytes) -> bytes:
            raise KeyboardInterrupt

    one = replica(ids)
    one._doc = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        one.lacking(b"\x00")


def test_overwriting_ones_own_key_does_not_grow_the_document(ids) -> None:
    one = replica(ids)
    for number in range(3000):
        one.put("nodes", "a", f"{number:05}")
    assert len(one.encode()) < 200
    assert len(one.compacted()) < 200


def test_merged_updates_do_what_all_of_them_do(ids) -> None:
    one, two = replica(ids), replica(ids)
    for key in "abc":
        one.put("nodes", key, key)
    two.apply(merge([update for _, update in one.take().updates]), object())
    assert two.encode() == one.encode()
