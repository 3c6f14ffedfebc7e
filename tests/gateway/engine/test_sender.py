"""What leaves: labels, routes, idempotency, answers to answers."""

from hashlib import sha256
from typing import Any

import msgspec
import pytest

from gateway.engine.effects import Handed, Refused, Sent
from gateway.engine.inputs import Grant, Reply, Send
from gateway.engine.limits import EXPIRES_IN_MS_MAX, HANDS_MAX, NEAR_TOLD_MAX
from gateway.engine.pace import PaceLimits
from gateway.engine.policy import Policy
from outbox.envelope import DeadLetter, Trace, decode_payload
from outbox.kinds import Kind
from outbox.limits import HOPS_MAX, IDEMPOTENCY_KEY_MAX, PAYLOAD_BYTES_MAX, THREAD_ID_MAX, TYPE_MAX

TRACED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00"


def test_schema_and_trace_are_said_and_left_out_where_there_are_none(world: Any) -> None:
    world.send("a", "ann", "bob", schema="orders/new@v1", traceparent=TRACED)
    world.send("a", "ann", "bob")
    labels = [(event.schema, event.trace.traceparent) for event in world.said("a", Kind.MESSAGE)]
    assert labels == [("orders/new@v1", TRACED), (None, None)]
    _, bare = [entry.body for page in world.pages_of("a") for entry in page.entries]
    assert b"schema" not in bare
    assert b"traceparent" not in bare


def test_the_event_says_who_where_and_until_when(world: Any) -> None:
    sent = world.send(
        "a", "ann", "agents/bob/inbox", type="ask", thread_id="t-1", expires_in_ms=60_000, priority=0
    )
    (event,) = world.said("a")
    assert (event.source_node_id, event.source_agent_id, event.to_agent_id) == ("a", "ann", "bob")
    assert (event.type, event.thread_id, event.priority, sent.thread_id) == ("ask", "t-1", 0, "t-1")
    assert event.trace.source_owner_epoch == 1
    assert event.trace.route_decision.owner_node_id == "b"
    row = world.delivery("a", sent.event_id)
    assert row.expires_at_ms == world.wall_ms + 60_000
    assert row.next_at_ms == world.wall_ms + world.policy.retry.ack_timeout_ms


@pytest.mark.parametrize(
    ("to", "code", "hint"),
    [
        ("bop", "unknown_recipient", "bob"),
        ("nobody-like-that", "unknown_recipient", "gateway agents"),
        ("bob@a", "unknown_recipient", "bob@b"),
        ("Bob", "invalid_id", "bob"),
        ("", "invalid_id", ""),
    ],
)
def test_an_address_nobody_answers_to_is_refused_and_nothing_is_appended(
    world: Any, to: str, code: str, hint: str
) -> None:
    refused = world.send("a", "ann", to, idempotency_key="k")
    assert refused.code == code
    assert hint in refused.hint
    assert world.said("a") == []
    assert world.store("a").count_deliveries() == {}
    assert world.store("a").remembered("ann", "k") is None


def test_a_tick_says_a_few_times_which_names_look_like_an_unknown_one(world: Any) -> None:
    """Looking takes long where a mesh has many agents, and a loop misspells hundreds a second."""

    def misspelt(*names: str) -> list[bool]:
        sends = [Send(req=n, agent="ann", to=to, payload=msgspec.Raw(b"1")) for n, to in enumerate(names)]
        refused = world.tick("a", *sends)
        assert [answer.code for answer in refused] == ["unknown_recipient"] * len(names)
        return ["bob" in answer.hint for answer in refused]

    assert misspelt("bop", "bop,ann", *["bobb"] * NEAR_TOLD_MAX) == [True] * NEAR_TOLD_MAX + [False] * 2
    assert misspelt("bop") == [True]


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": 5},
        {"priority": -1},
        {"expires_in_ms": 0},
        {"expires_in_ms": EXPIRES_IN_MS_MAX + 1},
        {"expires_in_ms": 10**18},
        {"type": "t" * (TYPE_MAX + 1)},
        {"thread_id": "t" * (THREAD_ID_MAX + 1)},
        {"schema": "no name"},
        {"traceparent": "00-1-2-3"},
        {"idempotency_key": ""},
        {"idempotency_key": "k" * (IDEMPOTENCY_KEY_MAX + 1)},
    ],
    ids=str,
)
def test_terms_out_of_range_are_refused_and_nothing_is_appended(world: Any, wrong: dict[str, Any]) -> None:
    assert world.send("a", "ann", "bob", **wrong).code == "invalid_event"
    assert world.said("a") == []


def test_a_payload_above_the_limit_is_refused_and_nothing_is_appended(world: Any) -> None:
    refused = world.send("a", "ann", "bob", b'"' + b"x" * PAYLOAD_BYTES_MAX + b'"', idempotency_key="k")
    assert refused.code == "too_large"
    assert world.said("a") == []
    assert world.store("a").remembered("ann", "k") is None


def test_known_but_owned_by_nobody_is_a_dead_letter_at_once(world: Any) -> None:
    world.own("bob", "b", 1, active=False)
    world.see()
    sent = world.send("a", "ann", "bob")
    assert sent.node is None
    row = world.delivery("a", sent.event_id)
    assert (row.state, row.error, row.next_at_ms) == ("dead_letter", "no_owner", None)
    letter = decode_payload(world.said("a", Kind.DEAD_LETTER)[0], DeadLetter)
    assert letter == DeadLetter(ref=sent.event_id, reason="no_owner", attempts=1)
    assert world.incidents("a") == [("dead_letter", sent.event_id)]
    assert world.pull("b", "a")
    assert world.said("b") == []


# --- idempotency


def test_the_same_request_gets_the_same_answer_and_appends_nothing(either: Any) -> None:
    world = either
    first = world.send("a", "ann", "bob", idempotency_key="k", type="t")
    world.own("bob", "b", 1, active=False)
    world.see()
    again = world.send("a", "ann", "bob", idempotency_key="k", type="t")
    assert again == msgspec.structs.replace(first, req=again.req, duplicate=True)
    assert len(world.said("a")) == 1


def test_a_moved_recipient_does_not_change_the_answer(world: Any) -> None:
    first = world.send("a", "ann", "bob@b", idempotency_key="k")
    world.own("bob", "c", 2)
    world.see()
    assert world.send("a", "ann", "bob@b", idempotency_key="k").event_id == first.event_id


@pytest.mark.parametrize(
    "change",
    [
        {"payload": msgspec.Raw(b"2")},
        {"to": "bob@b"},
        {"type": "other"},
        {"schema": "other"},
        {"thread_id": "t"},
        {"priority": 1},
        {"expires_in_ms": 5_000},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_key_of_another_request_is_a_conflict(world: Any, change: dict[str, Any]) -> None:
    first = Send(req=1, agent="ann", to="bob", payload=msgspec.Raw(b"1"), idempotency_key="k")
    event = world.ask("a", first).event_id
    refused = world.ask("a", msgspec.structs.replace(first, req=2, **change))
    assert refused.code == "idempotency_conflict"
    assert event in refused.what
    assert len(world.said("a")) == 1


def test_who_asks_again_may_do_so_in_another_span(world: Any) -> None:
    first = world.send("a", "ann", "bob", idempotency_key="k", traceparent=TRACED)
    again = world.send("a", "ann", "bob", idempotency_key="k", traceparent=OTHER)
    assert (again.event_id, again.duplicate) == (first.event_id, True)
    assert [event.trace.traceparent for event in world.said("a")] == [TRACED]


def test_labels_that_came_later_change_no_digest_of_before(world: Any) -> None:
    """What was sent before an upgrade and is asked for again after it is still the same request."""
    world.send("a", "ann", "bob", b"1", idempotency_key="k")
    was = sha256(msgspec.json.encode(("bob", msgspec.Raw(b"1"), None, None, None, 2, False))).digest()
    assert world.store("a").remembered("ann", "k").request_hash == was


def test_keys_belong_to_their_agent(world: Any) -> None:
    world.live("a", "amy")
    first = world.sent("a", "ann", "bob", idempotency_key="k")
    assert world.sent("a", "amy", "bob", idempotency_key="k") != first


# --- replies


@pytest.fixture
def asked(world: Any) -> Any:
    """``ann`` has asked, ``bob`` holds the question."""
    world.question = world.sent("a", "ann", "bob", thread_id="talk")
    world.pull("b", "a")
    (hand,) = world.listen("b", "bob")
    world.lease = hand.lease_id
    return world


def test_a_reply_inherits_the_conversation(asked: Any) -> None:
    answer = asked.reply("b", "bob", asked.question, lease_id=asked.lease, type="answer")
    (event,) = asked.said("b", Kind.REPLY)
    assert (event.corr_id, event.thread_id, event.type) == (asked.question, "talk", "answer")
    assert (answer.agent, answer.node) == ("ann", "a")


def test_answers_belong_to_the_trace_of_what_they_answer_unless_they_bring_their_own(world: Any) -> None:
    question = world.sent("a", "ann", "bob", traceparent=TRACED, thread_id="talk", schema="q@v1")
    world.pull("b", "a")
    world.listen("b", "bob")
    world.send("b", "bob", "ann", cause=question)
    world.send("b", "bob", "ann", thread_id="talk")
    world.send("b", "bob", "ann", cause=question, traceparent=OTHER)
    world.send("b", "bob", "ann")
    assert [(e.trace.traceparent, e.schema) for e in world.said("b", Kind.MESSAGE)] == [
        (TRACED, None),
        (TRACED, None),
        (OTHER, None),
        (None, None),
    ]
    for given, carried in ((None, TRACED), (OTHER, OTHER)):
        world.reply("b", "bob", question, lease_id=world.row("b", question).lease_id, traceparent=given)
        assert world.said("b", Kind.REPLY)[-1].trace.traceparent == carried


def test_a_broken_trace_of_a_peer_is_not_taken_over(world: Any, stranger: Any) -> None:
    world.own("eve", "x")
    world.see()
    event = stranger.event(to_agent_id="bob", trace=Trace(source_owner_epoch=1, traceparent="\x1b[31m"))
    world.tick("b", stranger.says(event))
    assert world.row("b", event.event_id).state == "queued"
    world.reply("b", "bob", event.event_id)
    assert world.said("b", Kind.REPLY)[0].trace.traceparent is None


def test_a_reply_with_a_key_is_sent_once(asked: Any) -> None:
    first = asked.reply("b", "bob", asked.question, lease_id=asked.lease, idempotency_key="k")
    again = asked.reply("b", "bob", asked.question, lease_id=asked.lease, idempotency_key="k")
    assert (again.event_id, again.duplicate) == (first.event_id, True)
    other = asked.reply("b", "bob", asked.question, b'"no"', idempotency_key="k")
    assert other.code == "idempotency_conflict"
    assert len(asked.said("b", Kind.REPLY)) == 1
    assert asked.acks("b", asked.question) == ["accepted", "ok"]


def test_a_reply_that_is_refused_leaves_the_turn_where_it_was(asked: Any) -> None:
    assert asked.reply("b", "bob", asked.question, lease_id="other").code == "conflict"
    wrong = asked.reply("b", "bob", asked.question, lease_id=asked.lease, type="t" * (TYPE_MAX + 1))
    assert wrong.code == "invalid_event"
    large = asked.reply(
        "b", "bob", asked.question, b'"' + b"x" * PAYLOAD_BYTES_MAX + b'"', lease_id=asked.lease
    )
    assert large.code == "too_large"
    assert asked.row("b", asked.question).state == "leased"
    assert asked.said("b", Kind.REPLY) == []
    assert asked.settle("b", "bob", asked.question, lease_id=asked.lease).duplicate is False


def test_a_reply_finds_an_asker_that_has_moved_and_one_that_is_unknown(asked: Any) -> None:
    asked.own("ann", "c", 2)
    asked.see()
    assert asked.reply("b", "bob", asked.question, lease_id=asked.lease).node == "c"
    asked.own("ann", "c", 2, active=False)
    asked.see()
    late = asked.reply("b", "bob", asked.question)
    assert late.node == "a"


def test_a_late_reply_is_sent_although_the_turn_is_over(asked: Any) -> None:
    asked.settle("b", "bob", asked.question, lease_id=asked.lease, outcome="failed", error="tired")
    asked.meet()
    assert asked.incidents("a") == [("turn_failed", asked.question)]
    asked.reply("b", "bob", asked.question)
    asked.meet()
    assert asked.acks("b", asked.question) == ["accepted", "failed: tired"]
    row = asked.delivery("a", asked.question)
    assert (row.state, row.outcome, row.replied_at_ms) == ("processed", "failed", asked.wall_ms)
    assert asked.incidents("a") == []


def test_agents_that_answer_each_other_for_ever_are_stopped(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.meet()
    for hops in range(1, HOPS_MAX + 1):
        node, agent = ("b", "bob") if hops % 2 else ("a", "ann")
        event = world.ask(
            node, Reply(req=hops, agent=agent, event_id=event, payload=msgspec.Raw(b"1"))
        ).event_id
        world.meet()
    refused = world.reply("b", "bob", event)
    assert refused.code == "hop_limit"
    assert world.row("b", event).state == "queued"


# --- circles


def hand_over(world: Any, node: str, agent: str, last: dict[str, Any]) -> Any:
    """The agent's next turn."""
    if agent in last:
        (hand,) = [e for e in world.tick(node, Grant(1, f"s-{agent}", 1)) if isinstance(e, Handed)]
    else:
        (hand,) = world.listen(node, agent, f"s-{agent}", credit=1)
    last[agent] = hand
    return hand


def go_round(world: Any, ring: list[tuple[str, str]], names: str) -> tuple[int, Any]:
    """Each agent sends on what it gets, as a message of its own, and ends its turn; until one is refused."""
    (node, agent), last = ring[0], {}
    answer = world.send(node, agent, ring[1 % len(ring)][1], thread_id="t")
    for step in range(1, 100):
        world.meet()
        node, agent = ring[step % len(ring)]
        hand = hand_over(world, node, agent, last)
        named = {"cause": hand.event_id, "thread_id": "t", "": None}[names]
        answer = world.send(node, agent, ring[(step + 1) % len(ring)][1], **({names: named} if names else {}))
        if isinstance(answer, Refused):
            return step, answer
        world.settle(node, agent, hand.event_id, lease_id=hand.lease_id)
    return 100, answer


RINGS = {
    "itself": [("a", "ann")],
    "pair": [("a", "ann"), ("b", "bob")],
    "triangle": [("a", "ann"), ("b", "bob"), ("c", "cat")],
}


@pytest.fixture
def three(make_world: Any) -> Any:
    world = make_world("a", "b", "c")
    for node, agent in RINGS["triangle"]:
        world.live(node, agent)
    return world


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("names", ["cause", "thread_id"])
def test_a_circle_that_says_why_comes_to_an_end(three: Any, ring: str, names: str) -> None:
    steps, refused = go_round(three, RINGS[ring], names)
    assert (steps, refused.code) == (HOPS_MAX + 1, "hop_limit")
    assert "end your turn" in refused.hint


@pytest.mark.parametrize("ring", RINGS)
def test_what_names_no_cause_is_no_circle(three: Any, ring: str) -> None:
    """It looks the same as two agents that have much to tell each other and work at the same time."""
    steps, answer = go_round(three, RINGS[ring], "")
    assert (steps, type(answer)) == (100, Sent)


@pytest.mark.parametrize("ring", RINGS)
def test_a_circle_that_names_no_cause_is_slowed_down_all_the_same(make_world: Any, ring: str) -> None:
    """Each of its agents has a bucket of its own, and is told how long to wait."""
    world = make_world("a", "b", "c", policy=Policy(unsaid=PaceLimits(burst=5, per_minute=6)))
    for node, agent in RINGS["triangle"]:
        world.live(node, agent)
    steps, refused = go_round(world, RINGS[ring], "")
    assert (steps, refused.code, refused.retryable) == (5 * len(RINGS[ring]) + 1, "loop_limit", True)
    assert "try again in 10 s" in refused.hint
    node, agent = RINGS[ring][1 % len(RINGS[ring])]
    world.advance(10_000)
    world.sent(node, agent, "ann")


def test_who_was_handed_nothing_sends_as_much_as_it_likes(make_world: Any) -> None:
    world = make_world("a", "b", policy=Policy(unsaid=PaceLimits(burst=2, per_minute=1)))
    world.live("a", "ann")
    world.live("b", "bob")
    for _ in range(10):
        event = world.sent("a", "ann", "bob")
    world.meet()
    world.listen("b", "bob")
    world.reply("b", "bob", event, lease_id=world.row("b", event).lease_id)
    world.meet()
    world.listen("a", "ann")
    for _ in range(10):
        world.sent("a", "ann", "bob")  # the reply was asked for


def test_a_cause_is_an_event_that_came_for_the_agent(world: Any) -> None:
    event = world.sent("a", "ann", "bob", thread_id="t")
    assert world.send("a", "ann", "bob", cause=event).code == "not_found"
    world.pull("b", "a")
    answer = world.send("b", "bob", "ann", cause=event)
    assert answer.thread_id == "t", "it belongs to the conversation"


def test_answers_have_a_pace_and_what_nobody_caused_has_none(make_world: Any) -> None:
    policy = Policy(answers=PaceLimits(burst=3, per_minute=6))
    world = make_world("a", "b", policy=policy)
    world.live("a", "ann")
    world.live("b", "bob")
    event = world.sent("a", "ann", "bob", thread_id="t")
    world.pull("b", "a")
    world.listen("b", "bob", credit=1)
    for _ in range(20):
        world.sent("b", "bob", "ann")  # of its own accord, whatever it has in hand
    for named in ({"cause": event}, {"thread_id": "t"}, {"cause": event}):
        world.sent("b", "bob", "ann", **named)
    refused = world.send("b", "bob", "ann", cause=event)
    assert (refused.code, refused.retryable) == ("loop_limit", True)
    assert "try again in 10 s" in refused.hint
    assert world.send("b", "bob", "ann", thread_id="t").code == "loop_limit"
    world.sent("b", "bob", "ann")
    world.advance(10_000)
    world.sent("b", "bob", "ann", cause=event)


def test_agents_that_pour_out_messages_for_each_other_are_not_slowed(make_world: Any) -> None:
    """Each has one of the other's in hand all the time."""
    world = make_world("a", "b", policy=Policy(answers=PaceLimits(burst=1, per_minute=1)))
    world.live("a", "ann")
    world.live("b", "bob")
    last: dict[str, Any] = {}
    world.sent("a", "ann", "bob")
    for _ in range(2 * HOPS_MAX):
        world.meet()
        hand = hand_over(world, "b", "bob", last)
        world.sent("b", "bob", "ann")
        world.meet()
        other = hand_over(world, "a", "ann", last)
        world.sent("a", "ann", "bob")
        world.settle("b", "bob", hand.event_id, lease_id=hand.lease_id)
        world.settle("a", "ann", other.event_id, lease_id=other.lease_id)
    assert {event.trace.hops for event in world.said("a", Kind.MESSAGE)} == {0}


def test_who_asks_on_while_it_reads_a_reply_is_not_taken_for_a_circle(make_world: Any) -> None:
    world = make_world("a", "b", policy=Policy(answers=PaceLimits(burst=1, per_minute=1)))
    world.live("a", "ann")
    world.live("b", "bob")
    world.sent("a", "ann", "bob")
    last: dict[str, Any] = {}
    for _ in range(HOPS_MAX + 2):
        world.meet()
        question = hand_over(world, "b", "bob", last)
        assert not isinstance(world.reply("b", "bob", question.event_id, lease_id=question.lease_id), Refused)
        world.meet()
        answer = hand_over(world, "a", "ann", last)
        world.sent("a", "ann", "bob")
        world.settle("a", "ann", answer.event_id, lease_id=answer.lease_id)


def test_who_works_on_many_things_is_not_taken_for_a_circle(world: Any) -> None:
    for _ in range(HANDS_MAX + 1):
        world.sent("a", "ann", "bob", thread_id="t")
    world.pull("b", "a")
    world.listen("b", "bob", credit=HANDS_MAX + 1)
    world.sent("b", "bob", "ann", thread_id="t")
    assert world.said("b", Kind.MESSAGE)[0].trace.hops == 0


def test_the_same_thread_is_the_same_conversation(world: Any) -> None:
    world.live("b", "ben")
    world.sent("a", "ann", "bob", thread_id="t")
    world.pull("b", "a")
    world.listen("b", "bob", credit=1)
    world.sent("b", "bob", "ben", thread_id="t")
    world.sent("b", "bob", "ben", thread_id="other")
    assert [event.trace.hops for event in world.said("b", Kind.MESSAGE)] == [1, 0]


# --- nobody there


def test_what_may_wait_for_an_owner_waits_and_burns_no_attempt(world: Any) -> None:
    world.own("zoe", "b", active=False)
    world.see()
    event = world.sent("a", "ann", "zoe", wait=True)
    row = world.delivery("a", event)
    assert (row.node, row.state, world.incidents("a")) == (None, "retry_pending", [])
    for _ in range(3):
        world.wake("a")
    world.live("b", "zoe")
    world.tick("a")
    row = world.delivery("a", event)
    assert (row.node, row.state, row.tries, row.attempt) == ("b", "emitted", 1, 2)
    world.pull("b", "a")
    assert world.acks("b", event) == ["accepted"]


def test_what_waits_for_an_owner_ends_when_it_expires(world: Any) -> None:
    world.own("zoe", "b", active=False)
    world.see()
    event = world.sent("a", "ann", "zoe", wait=True, expires_in_ms=3_600_000)
    while world.delivery("a", event).state == "retry_pending":
        world.wake("a")
    row = world.delivery("a", event)
    assert (row.state, row.error, world.wall_ms) == ("dead_letter", "expired", row.expires_at_ms)
