import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.courier.subscriptions import Ring, Subscription


def reader(name: str) -> Subscription:
    return Subscription(name, "s", name)


def test_readers_with_much_credit_alternate() -> None:
    ring = Ring()
    ring.grant(reader("a"), 2)
    ring.grant(reader("b"), 3)
    assert [ring.spend().id for _ in range(5)] == ["a", "b", "a", "b", "b"]
    assert not ring.turns


def test_more_credit_keeps_the_place() -> None:
    ring, first, second = Ring(), reader("a"), reader("b")
    ring.grant(first, 1)
    ring.grant(second, 1)
    ring.grant(first, 1)
    assert ring.spend() is first


def test_one_who_leaves_takes_its_credit_along() -> None:
    ring, gone = Ring(), reader("a")
    ring.grant(gone, 4)
    ring.leave(gone)
    assert gone.credit == 0
    with pytest.raises(KeyError):
        ring.spend()


@given(st.integers(1, 20), st.integers(0, 400))
def test_shares_of_readers_that_grant_one_at_a_time_differ_by_one_at_most(readers: int, items: int) -> None:
    ring, shares = Ring(), dict.fromkeys((str(name) for name in range(readers)), 0)
    for name in shares:
        ring.grant(reader(name), 1)
    for _ in range(items):
        served = ring.spend()
        shares[served.id] += 1
        ring.grant(served, 1)
    assert max(shares.values()) - min(shares.values()) <= 1
