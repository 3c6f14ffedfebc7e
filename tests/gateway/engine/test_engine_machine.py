"""Three engines, late and repeated pages, lost ticks, restarts, agents that come and go; then calm."""

from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from gateway.courier.limits import CourierLimits
from gateway.engine.effects import Appended, Handed, Refused, Sent, StreamBroken
from gateway.engine.inputs import (
    AddAgent,
    Extend,
    Grant,
    Nack,
    PageRead,
    RemoveAgent,
    Reply,
    Send,
    Settle,
    Subscribe,
    Unsubscribe,
    ViewChanged,
)
from gateway.engine.limits import ERRAND_ROWS_MAX
from gateway.engine.policy import Policy
from outbox.delivery import settled
from outbox.envelope import Ack, decode_event, decode_header, decode_payload
from outbox.kinds import Kind, Outcome
from outbox.records import DeliveryState, TurnState
from outbox.retry import RetryPolicy

POLICY = Policy(
    retry=RetryPolicy(first_ms=50, cap_ms=200, attempts_max=3, ack_timeout_ms=100),
    expires_in_ms=10_000,
    sla_accept_ms=1_000,
    sla_process_ms=1_500,
    silence_ms=2_000,
    hold_ms=800,
)
LIMITS = CourierLimits(max_depth=5, reserve_share=0.2, lease_ms=300, max_deliveries=3)
HOMES = {"ann": "a", "amy": "a", "bob": "b", "cat": "c"}
NODES = st.sampled_from("abc")
AGENTS = st.sampled_from(sorted(HOMES))
LOST = st.sampled_from([False, False, False, True])
ROUNDS_MAX = 60


class MeshMachine(RuleBasedStateMachine):
    def __init__(self, make_world: Any, rows: int) -> None:
        super().__init__()
        self.world = make_world(
            "a", "b", "c", policy=msgspec.structs.replace(POLICY, errand_rows=rows), limits=LIMITS
        )
        for agent, node in HOMES.items():
            self.world.live(node, agent)
        self.numbers = count(1_000)
        self.sent: dict[str, str] = {}
        self.keys: dict[tuple[str, str], str] = {}
        self.hands: list[tuple[str, str, Handed]] = []
        self.counts: dict[tuple[str, str], int] = {}
        self.ended: dict[tuple[str, str], str] = {}
        self.pages: list[tuple[str, PageRead]] = []
        self.listening: dict[str, str] = {}
        for agent in HOMES:
            self.listen(agent=agent, session="run-1", credit=3)

    # --- every tick is watched

    def tick(self, node: str, *inputs: Any, lost: bool = False) -> list[Any]:
        effects: list[Any] = self.world.tick(node, *inputs, lost=lost)
        if lost:
            self.forget_sockets(node)
        for effect in effects:
            match effect:
                case Handed():
                    self.watch_hand(node, effect)
                case Appended():
                    self.watch_acks(node, effect)
                case Sent():
                    self.sent[effect.event_id] = node
                case StreamBroken():
                    raise AssertionError(effect)
        return effects

    def forget_sockets(self, node: str) -> None:
        for agent in [agent for agent in self.listening if HOMES[agent] == node]:
            del self.listening[agent]

    def watch_hand(self, node: str, hand: Handed) -> None:
        key = node, hand.event_id
        assert key not in self.ended, "handed over after its ACK was committed"
        before = self.counts.get(key, 0)
        assert hand.delivery_count == before + (not hand.resumed)
        self.counts[key] = hand.delivery_count
        row = self.world.row(node, hand.event_id)
        assert (row.state, row.lease_id, row.delivery_count) == (
            TurnState.LEASED,
            hand.lease_id,
            hand.delivery_count,
        )
        agent = next(agent for agent, subscriber in self.listening.items() if subscriber == hand.subscriber)
        self.hands.append((node, agent, hand))

    def watch_acks(self, node: str, appended: Appended) -> None:
        for entry in appended.page.entries:
            event = decode_event(entry.body)
            if event.kind != Kind.ACK:
                continue
            ack = decode_payload(event, Ack)
            (source,) = decode_header(entry.header).to
            row = next(iter(self.world.store(node).turns_of(source, ack.ref)), None)
            if row is None:
                assert ack.outcome is Outcome.REFUSED
            elif ack.status == "processed" and row.state is TurnState.DONE and ack.error == row.error:
                assert self.ended.setdefault((node, ack.ref), event.event_id) == event.event_id

    # --- agents

    @rule(
        sender=AGENTS,
        to=AGENTS,
        priority=st.integers(0, 4),
        key=st.sampled_from([None, "k1", "k2"]),
        life_ms=st.sampled_from([None, None, None, 250]),
        lost=LOST,
    )
    def send(  # noqa: PLR0917 - Hypothesis names them
        self, sender: str, to: str, priority: int, key: str | None, life_ms: int | None, lost: bool
    ) -> None:
        request = Send(
            req=next(self.numbers),
            agent=sender,
            to=to,
            payload=msgspec.Raw(b'"hello"'),
            priority=priority,
            idempotency_key=f"{key}-{to}-{priority}-{life_ms}" if key else None,
            expires_in_ms=life_ms,
        )
        for answer in self.tick(HOMES[sender], request, lost=lost):
            if isinstance(answer, Sent) and request.idempotency_key:
                known = self.keys.setdefault((sender, request.idempotency_key), answer.event_id)
                assert answer.event_id == known
                assert self.world.store(HOMES[sender]).obligations(known)

    @rule(agent=AGENTS, session=st.sampled_from(["run-1", "run-2"]), credit=st.integers(1, 3))
    def listen(self, agent: str, session: str, credit: int) -> None:
        node, subscriber = HOMES[agent], f"socket-{next(self.numbers)}"
        if not self.lives(agent):
            return
        if agent in self.listening:
            self.tick(node, Unsubscribe(self.listening[agent]))
        self.listening[agent] = subscriber
        self.tick(
            node,
            Subscribe(req=next(self.numbers), subscriber=subscriber, agent=agent, session=session),
            Grant(next(self.numbers), subscriber, credit),
        )

    @precondition(lambda self: self.hands)
    @rule(
        data=st.data(),
        how=st.sampled_from(["ok", "failed", "nack", "extend", "reply", "reply", "die"]),
        lost=LOST,
    )
    def answer(self, data: st.DataObject, how: str, lost: bool) -> None:
        place = data.draw(st.integers(0, len(self.hands) - 1))
        node, agent, hand = self.hands[place]
        about = {
            "req": next(self.numbers),
            "agent": agent,
            "event_id": hand.event_id,
            "lease_id": hand.lease_id,
        }
        match how:
            case "ok" | "failed":
                self.tick(node, Settle(**about, outcome=Outcome(how)), lost=lost)
            case "nack":
                self.tick(node, Nack(**about, delay_ms=50), lost=lost)
            case "extend":
                self.tick(node, Extend(**about, lease_ms=500), lost=lost)
            case "reply":
                self.tick(node, Reply(**about, payload=msgspec.Raw(b'"yes"')), lost=lost)
            case _:
                self.hands.pop(place)

    def lives(self, agent: str) -> bool:
        return any(row.name == agent for row in self.world.store(HOMES[agent]).agents())

    @rule(agent=st.sampled_from(["bob", "cat"]))
    def come(self, agent: str) -> None:
        if not self.lives(agent):
            self.come_or_go(agent)

    @rule(agent=st.sampled_from(["bob", "cat"]))
    def come_or_go(self, agent: str) -> None:
        node, active = HOMES[agent], not self.lives(agent)
        request = (
            AddAgent(next(self.numbers), agent, b"") if active else RemoveAgent(next(self.numbers), agent)
        )
        changed = next(e for e in self.tick(node, request) if getattr(e, "req", None) == request.req)
        if isinstance(changed, Refused):
            assert (changed.code, changed.retryable) == ("name_taken", True), "its turns are still failing"
            return
        self.listening.pop(agent, None)
        self.world.own(agent, node, changed.owner_epoch, active=active)
        self.see(node)

    # --- the world

    @rule(reader=NODES, source=NODES, entries_max=st.sampled_from([1, 3, 500]), lost=LOST)
    def carry(self, reader: str, source: str, entries_max: int, lost: bool) -> None:
        page = self.world.page(reader, source, entries_max) if reader != source else None
        if page is not None:
            self.pages.append((reader, PageRead(source, page)))
            self.tick(reader, self.pages[-1][1], lost=lost)

    @rule(nodes=st.sampled_from(["ab", "ba", "bc", "ac", "abc"]))
    def meet(self, nodes: str) -> None:
        for reader in nodes:
            for source in nodes:
                self.carry(reader=reader, source=source, entries_max=500, lost=False)

    @rule()
    def rumour(self) -> None:
        for node in "abc":
            self.publish(node)
        for node in "abc":
            self.see(node)

    @precondition(lambda self: self.pages)
    @rule(data=st.data())
    def carry_again(self, data: st.DataObject) -> None:
        reader, read = data.draw(st.sampled_from(self.pages))
        before = self.world.store(reader).cursor(read.node)
        if before is not None and before.seq >= read.page.checkpoint.seq:
            self.tick(reader, read)
            assert self.world.store(reader).cursor(read.node) == before

    @rule(reader=NODES, source=NODES)
    def leave_a_hole(self, reader: str, source: str) -> None:
        page = self.world.page(reader, source, 1) if reader != source else None
        later = self.world.store(source).read(page.checkpoint.head, 1, 1) if page is not None else None
        if later is not None:
            before = self.world.store(reader).cursor(source)
            effects = self.world.tick(reader, PageRead(source, later))
            assert any(isinstance(effect, StreamBroken) for effect in effects)
            assert self.world.store(reader).cursor(source) == before
            for effect in effects:
                if isinstance(effect, Handed):
                    self.watch_hand(reader, effect)
                elif isinstance(effect, Appended):
                    self.watch_acks(reader, effect)

    @rule(node=NODES)
    def restart(self, node: str) -> None:
        self.world.restart(node)
        self.forget_sockets(node)

    @rule(node=NODES)
    def publish(self, node: str) -> None:
        self.world.publish(node)

    @rule(node=NODES)
    def see(self, node: str) -> None:
        self.tick(node, ViewChanged(self.world.view()))

    @rule(node=NODES, ms=st.sampled_from([0, 20, 60, 120, 350]))
    def pass_time(self, node: str, ms: int) -> None:
        self.world.advance(ms)
        self.tick(node)

    # --- calm

    def teardown(self) -> None:
        for _ in range(ROUNDS_MAX):
            if self.calm():
                break
            self.work_off()
        self.check()

    def calm(self) -> bool:
        read = all(
            self.world.page(reader, source) is None
            for reader in "abc"
            for source in "abc"
            if reader != source
        )
        waits = any(
            node.engine.next_wake_ms(self.world.now()) is not None for node in self.world.nodes.values()
        )
        return read and not waits

    def work_off(self) -> None:
        for reader in "abc":
            for source in "abc":
                self.carry(reader=reader, source=source, entries_max=500, lost=False)
        for node in "abc":
            self.world.publish(node)
        for node in "abc":
            self.see(node)
        for agent in HOMES:
            self.listen(agent=agent, session="calm", credit=20)
        hands, self.hands = self.hands, []
        for node, agent, hand in hands:
            settle = Settle(
                req=next(self.numbers), agent=agent, event_id=hand.event_id, lease_id=hand.lease_id
            )
            self.tick(node, settle)
        self.world.advance(400)
        for node in "abc":
            self.tick(node)

    def check(self) -> None:
        assert self.calm(), "it does not come to rest"
        self.world.verify()
        for event, node in self.sent.items():
            self.check_delivery(node, event)
        for node in "abc":
            counts = self.world.store(node).count_received()
            assert set(counts) <= {TurnState.DONE}, counts

    def check_delivery(self, node: str, event: str) -> None:
        row = self.world.delivery(node, event)
        assert settled(Kind(row.kind), row.state), row
        there = (
            self.world.store(row.node).received(node, event, row.to_agent) if row.node is not None else None
        )
        if row.accepted_at_ms is not None or row.processed_at_ms is not None:
            assert there is not None, "accepted without a row"
        if there is not None and row.kind == Kind.MESSAGE:
            assert there.state is TurnState.DONE
            assert (row.node, event) in self.ended
            if row.state is DeliveryState.DEAD_LETTER:
                assert there.outcome is Outcome.REFUSED or row.outcome is there.outcome
            else:
                assert row.outcome is there.outcome


@pytest.mark.parametrize("rows", [ERRAND_ROWS_MAX, 1], ids=["at once", "row by row"])
def test_whatever_happens_every_send_ends_where_both_sides_see_it(make_world: Any, rows: int) -> None:
    run_state_machine_as_test(
        lambda: MeshMachine(make_world, rows),
        settings=settings(
            max_examples=75,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
