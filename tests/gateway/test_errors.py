from gateway.errors import Busy, Denied, Unreachable
from outbox.errors import CallerError, WorldError


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
