"""The numbers of an engine fit together."""

from gateway.engine.policy import Policy


def test_the_defaults_grow_from_retry_to_giving_up() -> None:
    policy = Policy()
    assert policy.retry.ack_timeout_ms < policy.sla_accept_ms < policy.sla_process_ms
    assert policy.hold_ms < policy.silence_ms < policy.expires_in_ms
