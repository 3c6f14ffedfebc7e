"""Flow control: a frame may begin while credit is left, and what was handled is granted anew."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.links.credit import Allowance, Grants, Window
from gateway.links.errors import CreditOverrun
from gateway.links.limits import GRANT_AT_BYTES, LINK_WINDOW_BYTES, VERSION1_WINDOW_BYTES


def test_nothing_is_sent_before_something_is_granted() -> None:
    allowance = Allowance()
    assert not allowance.open
    allowance.grant(10)
    allowance.spend(9, 1)
    assert allowance.open
    allowance.spend(5, 2)
    assert not allowance.open
    allowance.grant(4)
    assert not allowance.open
    allowance.grant(1)
    assert allowance.open


def test_a_frame_that_began_without_credit_is_a_breach() -> None:
    grants = Grants()
    with pytest.raises(CreditOverrun):
        grants.arrived(1)
    assert grants.due() == LINK_WINDOW_BYTES
    grants.arrived(LINK_WINDOW_BYTES - 1)
    grants.arrived(500)
    with pytest.raises(CreditOverrun):
        grants.arrived(1)


def test_small_change_is_kept_until_it_is_worth_a_frame() -> None:
    grants = Grants()
    grants.due()
    grants.handled(GRANT_AT_BYTES - 1)
    assert grants.due() == 0
    grants.handled(1)
    assert grants.due() == GRANT_AT_BYTES
    assert grants.due() == 0


@given(st.lists(st.integers(1, LINK_WINDOW_BYTES), max_size=40))
def test_an_honest_writer_is_never_in_breach_and_never_stuck(sizes: list[int]) -> None:
    allowance, grants = Allowance(), Grants()
    for number, size in enumerate(sizes):
        if (due := grants.due()) > 0:
            allowance.grant(due)
        assert allowance.open, "everything was handled, so there is credit"
        allowance.spend(size, number)
        grants.arrived(size)
        grants.handled(size)


def test_a_window_of_version_1_closes_when_it_is_full_and_opens_again() -> None:
    window = Window()
    window.spend(VERSION1_WINDOW_BYTES - 1, 10)
    assert window.open
    window.spend(1, 20)
    assert not window.open
    window.seen(9)
    assert not window.open
    window.seen(10)
    assert window.open
    window.spend(VERSION1_WINDOW_BYTES, 30)
    window.seen(30)
    assert window.open
