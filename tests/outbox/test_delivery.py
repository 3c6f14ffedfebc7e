from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.delivery import (
    FINAL,
    STEPS,
    Input,
    diagram,
    is_final,
    is_for_several,
    settled,
    standing,
    step,
)
from outbox.kinds import RULES, Kind
from outbox.records import DeliveryState

S, I = DeliveryState, Input  # noqa: E741 - a table reads better


def test_the_ends_are_processed_replied_and_dead_letter() -> None:
    assert {S.PROCESSED, S.REPLIED, S.DEAD_LETTER} == FINAL
    assert [state for state in S if is_final(state)] == [S.PROCESSED, S.REPLIED, S.DEAD_LETTER]


@pytest.mark.parametrize(
    ("inputs", "end"),
    [
        ([I.ACK_ACCEPTED, I.ACK_PROCESSED], S.PROCESSED),
        ([I.ACK_ACCEPTED, I.REPLY, I.ACK_PROCESSED], S.REPLIED),
        ([I.ACK_ACCEPTED, I.ACK_PROCESSED, I.REPLY], S.PROCESSED),
        ([I.LOST, I.RETRIED, I.ACK_ACCEPTED, I.ACK_PROCESSED], S.PROCESSED),
        ([I.REFUSED_NOT_OWNER, I.RETRIED, I.REFUSED_NOT_OWNER, I.EXHAUSTED], S.DEAD_LETTER),
        ([I.LOST, I.ACK_PROCESSED], S.PROCESSED),
        ([I.REFUSED], S.DEAD_LETTER),
        ([I.REFUSED_FULL, I.RETRIED, I.REFUSED_FULL, I.RETRIED, I.ACK_ACCEPTED], S.ACCEPTED),
        ([I.REFUSED_FULL, I.REFUSED_FULL, I.EXHAUSTED], S.DEAD_LETTER),
        ([I.ACK_ACCEPTED, I.REFUSED_FULL], S.DEAD_LETTER),
        ([I.EXPIRED], S.DEAD_LETTER),
        ([I.ACK_ACCEPTED, I.SLA_BREACH, I.EXPIRED], S.DEAD_LETTER),
        ([I.ACK_ACCEPTED, I.SLA_BREACH, I.ACK_PROCESSED], S.PROCESSED),
        ([I.ACK_ACCEPTED, I.REFUSED], S.DEAD_LETTER),
        ([I.REROUTED, I.ACK_PROCESSED], S.SUPERSEDED),
        ([I.LOST, I.REROUTED, I.RETRIED, I.ACK_ACCEPTED], S.ACCEPTED),
        ([I.ACK_ACCEPTED, I.ACCEPTANCE_LOST, I.RETRIED, I.ACK_PROCESSED], S.PROCESSED),
    ],
)
def test_lives_of_a_delivery(inputs: list[Input], end: DeliveryState) -> None:
    state = S.EMITTED
    for what in inputs:
        state = step(state, what) or state
    assert state is end


@pytest.mark.parametrize("what", Input)
def test_nothing_raises_the_dead(what: Input) -> None:
    assert step(S.DEAD_LETTER, what) is None


@pytest.mark.parametrize(
    ("state", "what"),
    [(S.ACCEPTED, I.ACK_ACCEPTED), (S.ACCEPTED, I.LOST), (S.EMITTED, I.RETRIED), (S.PROCESSED, I.EXPIRED)],
)
def test_steps_that_are_not_in_the_table_change_nothing(state: DeliveryState, what: Input) -> None:
    assert step(state, what) is None


@given(st.lists(st.sampled_from(Input), max_size=20))
def test_no_input_leads_out_of_an_end(inputs: list[Input]) -> None:
    state = S.EMITTED
    for what in inputs:
        after = step(state, what) or state
        assert not is_final(state) or after is state
        state = after


def test_an_end_can_be_reached_from_everywhere() -> None:
    reaching = set(FINAL)
    for _ in S:
        reaching |= {before for (before, _), after in STEPS.items() if after in reaching}
    assert reaching == set(S)


def test_every_state_but_an_end_has_its_own_way_out_by_time() -> None:
    for state in set(S) - FINAL - {S.SUPERSEDED}:
        assert step(state, I.EXPIRED) is S.DEAD_LETTER


def test_what_went_elsewhere_owes_nothing_and_is_shown_only_when_nothing_else_is(world: Any) -> None:
    assert settled(Kind.MESSAGE, S.SUPERSEDED)
    first = world.delivery(1, state=S.SUPERSEDED)
    second = world.delivery(1, node="lab", state=S.ACCEPTED, attempt=2)
    assert standing([first, second]) is second
    assert standing([first]) is first
    assert standing([]) is None


def test_of_several_nodes_the_least_advanced_is_shown(world: Any) -> None:
    rows = [
        world.delivery(1, node=node, state=state)
        for node, state in [("a", S.PROCESSED), ("b", S.ACCEPTED), ("c", S.EMITTED), ("d", S.DEAD_LETTER)]
    ]
    assert standing(rows) is rows[2]
    assert standing(rows[:2]) is rows[1]


@pytest.mark.parametrize(
    ("address", "several"), [("bob", False), ("*", True), ("group:ops", True), ("a,b", True)]
)
def test_an_address_says_whether_it_means_several(world: Any, address: str, several: bool) -> None:
    assert is_for_several(world.delivery(1, to_agent=address)) is several


@pytest.mark.parametrize("kind", Kind)
def test_accepted_settles_what_has_no_second_level(kind: Kind) -> None:
    assert settled(kind, S.ACCEPTED) is not RULES[kind].processed
    assert not settled(kind, S.EMITTED)
    assert all(settled(kind, state) for state in FINAL)


def test_the_diagram_shows_every_step_once() -> None:
    lines = diagram().splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> emitted"]
    arrows = [line.strip().split(": ") for line in lines if ": " in line]
    shown = [(arrow, what) for arrow, inputs in arrows for what in inputs.split(", ")]
    assert sorted(shown) == sorted((f"{before} --> {after}", what) for (before, what), after in STEPS.items())
    assert [line.strip() for line in lines if line.endswith("--> [*]")] == [
        "processed --> [*]",
        "replied --> [*]",
        "dead_letter --> [*]",
    ]
