from auth.attempt import Attempt
from auth.audit import AuditAction
from auth.errors import NodeMismatch


def test_a_refusal_is_recorded_with_what_was_known() -> None:
    attempt = Attempt("exchange", "198.51.100.7" + "x" * 200, 5)
    attempt.node, attempt.subject = "mbp", "inv_1"
    event = attempt.refusal(NodeMismatch("no"))
    assert (event.action, event.detail) == (AuditAction.REFUSED, "exchange node_mismatch")
    assert (event.at_ms, event.node, event.jkt, event.subject) == (5, "mbp", "", "inv_1")
    assert len(event.client) == 64
