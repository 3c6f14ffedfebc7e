import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycrdt import Doc, Map

from stateroom.errors import InvalidUpdate
from stateroom.limits import STUCK_BYTES_MAX
from stateroom.preflight import clocks
from stateroom.replica import Replica, Touched, merge
from stateroom.varints import uint
from tests.stateroom.updates import circle, deleted, entry, hole, next_entry, update, written


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


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.integers(0, 2)), max_size=40))
def test_whoever_is_told_from_where_it_stands_never_finds_a_gap(steps: list[tuple[int, str, int]]) -> None:
    numbers = itertools.count(100)
    replicas = [replica(numbers) for _ in range(3)]
    for count, (who, key, whom) in enumerate(steps):
        one, other = replicas[who], replicas[whom]
        one.put("nodes", key, str(count))
        assert other.apply(one.lacking(other.state()), object())
        assert all(each._clocks == clocks(each.state()) for each in replicas)
    for one, other in itertools.permutations(replicas, 2):
        assert other.apply(one.encode(), object())
    assert len({tuple(each.get("nodes", key) for key in "abc") for each in replicas}) == 1


@pytest.mark.parametrize(
    "missing",
    [
        update(written(7, 1, entry("k", "v"))),
        update(written(7, 0, hole(3), entry("k", "v"))),
        update(written(6, 0, entry("k", "v"), hole(2))),
        update(written(7, 0, next_entry(6, 0, "v"))),
        update(written(7, 0, entry("k", "v")), deletes=deleted(7, 1, 1)),
        update(deletes=deleted(6, 0, 1)),
        update(deletes=deleted(100, 1, 1)),
    ],
)
def test_what_builds_on_what_is_not_here_is_left_aside(ids, missing: bytes) -> None:
    one = replica(ids)
    one.put("nodes", "a", "1")
    one.take()
    state, whole = one.state(), one.encode()
    for _ in range(50):
        assert not one.apply(missing, object())
    assert (one.state(), one.encode(), one.take().touched) == (state, whole, [])


def test_what_comes_with_all_that_it_builds_on_is_taken(ids) -> None:
    one = replica(ids)
    one.put("nodes", "a", "1")
    assert one.apply(update(written(7, 0, next_entry(100, 0, "2"))), object())
    assert one.apply(update(written(7, 1, next_entry(7, 0, "3")), deletes=deleted(7, 0, 1)), object())
    assert one.apply(update(written(8, 0, next_entry(7, 1, "4")), written(6, 0, entry("b", "5"))), object())
    assert (one.get("nodes", "a"), one.get("nodes", "b")) == ("4", "5")


def test_what_waits_for_itself_is_refused_and_does_not_pile_up(ids) -> None:
    """It stands in the native document, unseen and uncounted, until that is given up."""
    one = replica(ids)
    client, stuck = one.client_id, [update(written(7, 0, next_entry(7, 0, "v")))]
    while one.client_id == client:
        with pytest.raises(InvalidUpdate, match="circle"):
            one.apply(stuck[-1], object())
        stuck.append(circle("x" * 20_000, 2 * len(stuck)))
    assert STUCK_BYTES_MAX < sum(map(len, stuck[:-1])) < 2 * STUCK_BYTES_MAX
    one.put("nodes", "a", "1")
    other = replica(ids)
    assert other.apply(one.encode(), object())
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
