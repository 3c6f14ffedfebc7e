import pytest

from outbox.kinds import RULES, AckStatus, Kind, Outcome, known_kind


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_a_rule_and_a_name(kind: Kind) -> None:
    assert kind in RULES
    assert known_kind(kind.value) is kind


@pytest.mark.parametrize("text", ["", "Message", "task_create", "message "])
def test_other_names_are_no_known_kind(text: str) -> None:
    assert known_kind(text) is None


@pytest.mark.parametrize("kind", Kind)
def test_what_wakes_an_agent_is_acknowledged_and_nothing_else(kind: Kind) -> None:
    rule = RULES[kind]
    assert rule.wakes is rule.accepted
    assert rule.accepted or not rule.processed


def test_nobody_acknowledges_an_acknowledgement() -> None:
    assert not RULES[Kind.ACK].accepted
    assert not RULES[Kind.DEAD_LETTER].accepted


def test_levels_and_outcomes_are_wire_words() -> None:
    assert [*AckStatus] == ["accepted", "processed"]
    assert [*Outcome] == ["ok", "failed", "refused"]
