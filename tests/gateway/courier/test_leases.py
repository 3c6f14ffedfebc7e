import pytest

from gateway.courier.item import Item
from gateway.courier.leases import Holder, Lease, Leases, holder

SESSION, LONE = Holder("phone", None), Holder(None, "sub-1")


def test_a_session_holds_its_leases_and_a_reader_without_one_its_own() -> None:
    assert holder("phone", "sub-1") == SESSION
    assert holder(None, "sub-1") == LONE


@pytest.mark.parametrize(
    ("lease_id", "session", "answers"),
    [
        ("l1", "phone", True),
        ("l1", None, True),
        (None, "phone", True),
        (None, None, True),
        ("l2", "phone", False),
        ("l1", "laptop", False),
        (None, "", False),
        ("", None, False),
    ],
)
def test_what_is_given_must_match(lease_id: str | None, session: str | None, answers: bool) -> None:
    assert Lease("l1", Item("a", 2), SESSION).answers_to(lease_id, session) is answers


def test_leases_are_found_by_item_and_by_holder_until_they_end() -> None:
    leases = Leases()
    first, second, other = (
        Lease("l1", Item("a", 2), SESSION),
        Lease("l2", Item("b", 2), SESSION),
        Lease("l3", Item("c", 2), LONE),
    )
    for lease in (first, second, other):
        leases.add(lease)
    assert leases.of(SESSION) == [first, second]
    assert leases.get("c") is other
    leases.end("a")
    leases.end("a")
    assert leases.of(SESSION) == [second]
    assert leases.get("a") is None
    assert len(leases) == 2
