import pytest

from gateway.courier.errors import Conflict, InvalidCredit, StreamFull, UnknownLease, UnknownStream
from outbox.errors import CallerError

ERRORS = {
    "unknown_stream": UnknownStream("agents/jen/inbox"),
    "rate_limited": StreamFull("agents/jen/inbox", 9),
    "invalid_credit": InvalidCredit("credit is not a positive whole number", 10),
    "conflict": UnknownLease("agents/jen/inbox", "evt_1"),
}


@pytest.mark.parametrize("code", ERRORS)
def test_each_error_has_its_code_a_hint_and_is_the_callers(code: str) -> None:
    error = ERRORS[code]
    assert isinstance(error, CallerError)
    assert error.code == code
    assert error.hint


def test_only_a_full_stream_is_worth_another_try() -> None:
    assert [code for code, error in ERRORS.items() if error.retryable] == ["rate_limited"]


def test_a_lease_that_is_gone_is_a_conflict() -> None:
    assert issubclass(UnknownLease, Conflict)
