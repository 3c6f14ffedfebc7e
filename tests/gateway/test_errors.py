from gateway.errors import Busy, Denied, Unreachable, as_told
from outbox.errors import CallerError, NotFound, WorldError


def test_a_denial_keeps_what_the_gateway_said() -> None:
    denied = Denied("busy", "too much", hint="later", retryable=True)
    assert isinstance(denied, CallerError)
    assert (denied.wire_code, str(denied), denied.hint, denied.is_retryable) == (
        "busy",
        "too much",
        "later",
        True,
    )
    assert denied.code == "refused"


def test_what_the_world_did_may_be_tried_again() -> None:
    assert issubclass(Busy, WorldError)
    assert Busy.retryable
    assert Unreachable.retryable


def test_a_denial_is_told_on_as_the_gateway_that_refused_said_it() -> None:
    assert as_told(Denied("busy", "x", retryable=True)) == ("busy", True)
    assert as_told(Denied("conflict", "x")) == ("conflict", False)
    assert as_told(Busy("x")) == ("busy", True)
    assert as_told(NotFound("x")) == ("not_found", False)
