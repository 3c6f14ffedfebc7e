"""Engagement: which local agent holds which event, and how each turn ends.

The courier deals in memory; every hand-over and every end is written to the ledger row in the same
transaction.
"""

import heapq
from collections import defaultdict

from msgspec.structs import replace

from gateway.courier.courier import Courier
from gateway.courier.errors import UnknownLease
from gateway.courier.item import HandOver, Item
from gateway.engine import acks
from gateway.engine.effects import Extended, Handed, Settled
from gateway.engine.inputs import Extend, Nack, Now, Settle, Subscribe
from gateway.engine.tick import Tick
from gateway.routing import inbox_stream
from outbox.envelope import Event, decode_event
from outbox.errors import NotFound
from outbox.ids import AgentId, EventId, NodeId
from outbox.kinds import RULES, Kind, Outcome
from outbox.records import LocalAgent, Received, TurnState
from outbox.store import Store


class Turns:
    """The open turns of one gateway. Rebuilt from the store at start and after a failed transaction."""

    def __init__(self, courier: Courier, lease_ms: int, hold_ms: int) -> None:
        self._courier = courier
        self._lease_ms = lease_ms
        self._hold_ms = hold_ms
        self._agents: dict[AgentId, LocalAgent] = {}
        self._held: defaultdict[AgentId, list[EventId]] = defaultdict(list)
        self._deadlines: list[tuple[int, EventId]] = []

    def load(self, store: Store, now: Now) -> None:
        """Queue again what is unacknowledged; a lease that was live goes on for its session."""
        for agent in store.agents():
            self._lives(agent)
        for row in store.open_turns():
            if row.state is TurnState.LEASED and row.lease_id is not None and row.session is not None:
                item = Item(row.event_id, row.priority, deliveries=row.delivery_count)
                stream = inbox_stream(row.to_agent)
                self._courier.restore(stream, item, row.lease_id, row.session, now.mono_ms)
                heapq.heappush(self._deadlines, (row.expires_at_ms, row.event_id))
            else:
                self._admit(row, decode_event(row.body), now)

    # --- who lives here

    def lives_here(self, agent: AgentId) -> bool:
        """Whether this node runs the agent."""
        return agent in self._agents

    def agent(self, name: AgentId) -> LocalAgent | None:
        """Its row."""
        return self._agents.get(name)

    def add_agent(self, tick: Tick, row: LocalAgent) -> None:
        """It lives here from now on."""
        tick.store.put_agent(row)
        self._lives(row)

    def _lives(self, row: LocalAgent) -> None:
        self._agents[row.name] = row
        self._courier.open(inbox_stream(row.name))

    def remove_agent(self, tick: Tick, name: AgentId) -> None:
        """It is gone: what it did not finish has failed, and the senders are told."""
        tick.store.drop_agent(name)
        del self._agents[name]
        for row in tick.store.open_turns():
            if row.to_agent == name:
                if row.state is not TurnState.HELD:
                    self._courier.discard(inbox_stream(name), row.event_id)
                self._finish(tick, row, Outcome.FAILED, "agent_removed")

    # --- what comes in

    def has_room(self, agent: AgentId, priority: int) -> bool:
        """Whether the agent's inbox can take one more of this priority."""
        return self._courier.has_room(inbox_stream(agent), priority)

    def take(self, row: Received, event: Event, now: Now) -> None:
        """A row that was just accepted becomes a turn, or waits for its sender's owner to be known."""
        self._admit(row, event, now)

    def _admit(self, row: Received, event: Event, now: Now) -> None:
        heapq.heappush(self._deadlines, (row.expires_at_ms, row.event_id))
        if row.state is TurnState.HELD:
            assert event.source_agent_id is not None
            self._held[event.source_agent_id].append(row.event_id)
            heapq.heappush(self._deadlines, (row.accepted_at_ms + self._hold_ms, row.event_id))
        else:
            item = Item(row.event_id, row.priority, deliveries=row.delivery_count)
            self._courier.readmit(inbox_stream(row.to_agent), item, now.mono_ms)

    def release_held(self, tick: Tick) -> None:
        """Let go what waited for its sender's owner, now that the room names one."""
        for agent in [name for name in self._held if tick.view.owner(name) is not None]:
            owner = tick.view.owner(agent)
            for event_id in self._held.pop(agent):
                row = tick.store.received(event_id)
                if row is None or row.state is not TurnState.HELD or owner is None:
                    continue
                if owner.node == row.source:
                    queued = replace(row, state=TurnState.QUEUED)
                    tick.store.put_received(queued)
                    item = Item(row.event_id, row.priority)
                    self._courier.readmit(inbox_stream(row.to_agent), item, tick.now.mono_ms)
                else:
                    self._finish(tick, row, Outcome.REFUSED, "foreign_agent")

    def cancel(self, tick: Tick, source: NodeId, event: EventId) -> None:
        """The sender gave up: what nobody holds yet is not engaged any more."""
        row = tick.store.received(event)
        if row is None or row.source != source or row.state not in {TurnState.QUEUED, TurnState.HELD}:
            return
        if row.state is TurnState.QUEUED:
            self._courier.discard(inbox_stream(row.to_agent), event)
        self._finish(tick, row, Outcome.FAILED, "cancelled")

    # --- what agents do

    def subscribe(self, tick: Tick, request: Subscribe) -> None:
        """Begin a subscription; the session's live turns are handed over again under their old leases."""
        stream = inbox_stream(request.agent)
        for hand in self._courier.subscribe(request.subscriber, stream, request.session):
            self._hand(tick, hand)

    def unsubscribe(self, subscriber: str, now: Now) -> None:
        """End it; the session keeps its leases until they run out."""
        self._courier.unsubscribe(subscriber, now.mono_ms)

    def grant(self, subscriber: str, credit: int) -> None:
        """Raises InvalidCredit, UnknownStream."""
        self._courier.grant(subscriber, credit)

    def own(self, tick: Tick, agent: AgentId, event: EventId) -> Received:
        """The row of an event in this agent's inbox. Raises NotFound."""
        row = tick.store.received(event)
        if row is None or row.to_agent != agent:
            raise NotFound(
                f"{event} is not in the inbox of {agent}", hint="list it with: gateway inbox --all"
            )
        return row

    def check_lease(self, row: Received, lease_id: str | None) -> None:
        """Raises UnknownLease unless the caller may end this turn now."""
        live = self._courier.lease_of(inbox_stream(row.to_agent), row.event_id)
        if row.state is TurnState.HELD or live != lease_id:
            raise UnknownLease(inbox_stream(row.to_agent), row.event_id)

    def settle(self, tick: Tick, request: Settle) -> Settled:
        """End a turn. The same end twice is no error. Raises NotFound, UnknownLease."""
        row = self.own(tick, request.agent, request.event_id)
        if row.state is TurnState.DONE:
            if row.outcome is not request.outcome:
                raise UnknownLease(inbox_stream(row.to_agent), row.event_id)
            return Settled(request.req, row.event_id, duplicate=True)
        self.check_lease(row, request.lease_id)
        self.finish(tick, row, request.outcome, request.error)
        return Settled(request.req, row.event_id, duplicate=False)

    def finish(self, tick: Tick, row: Received, outcome: Outcome, error: str | None) -> None:
        """End the turn of a row whose lease was checked; the terminal ACK goes out with it."""
        stream = inbox_stream(row.to_agent)
        live = self._courier.lease_of(stream, row.event_id)
        if live is not None:
            self._courier.ack(stream, row.event_id, live, None)
        else:
            self._courier.discard(stream, row.event_id)
        if row.engaged_at_ms is None:
            row = replace(row, engaged_at_ms=tick.now.wall_ms, delivery_count=max(1, row.delivery_count))
        self._finish(tick, row, outcome, error)

    def nack(self, tick: Tick, request: Nack) -> Settled:
        """Give a turn back. Raises NotFound, UnknownLease."""
        row = self.own(tick, request.agent, request.event_id)
        stream = inbox_stream(row.to_agent)
        self._courier.nack(stream, row.event_id, request.lease_id, None, request.delay_ms, tick.now.mono_ms)
        tick.store.put_received(replace(row, state=TurnState.QUEUED, lease_id=None, session=None))
        return Settled(request.req, row.event_id, duplicate=False)

    def extend(self, tick: Tick, request: Extend) -> Extended:
        """Prolong a turn. Raises NotFound, UnknownLease."""
        row = self.own(tick, request.agent, request.event_id)
        stream = inbox_stream(row.to_agent)
        expires_at_ms = self._courier.extend(
            stream, row.event_id, request.lease_id, None, request.lease_ms, tick.now.mono_ms
        )
        return Extended(request.req, row.event_id, expires_at_ms - tick.now.mono_ms)

    # --- what time does

    def deal(self, tick: Tick) -> None:
        """Expire what is too old, then hand over what subscribers have credit for."""
        self._expire(tick)
        again = True
        while again:
            again = False
            pumped = self._courier.pump(tick.now.mono_ms, tick.entropy.lease_id)
            for _, item in pumped.exhausted:
                row = tick.store.received(EventId(item.id))
                if row is not None:
                    self._finish(tick, row, Outcome.FAILED, "max_deliveries")
            for hand in pumped.hand_overs:
                again |= not self._hand(tick, hand)

    def next_wake_ms(self, now: Now) -> int | None:
        """When time alone will change something, on the monotonic clock."""
        wakes = [self._courier.next_deadline_ms()]
        if self._deadlines:
            wakes.append(now.mono_ms + max(0, self._deadlines[0][0] - now.wall_ms))
        return min((wake for wake in wakes if wake is not None), default=None)

    def _hand(self, tick: Tick, hand: HandOver) -> bool:
        row = tick.store.received(EventId(hand.item_id))
        assert row is not None, "the courier deals only in ledger rows"
        if row.expires_at_ms <= tick.now.wall_ms and not hand.resumed:
            self._courier.ack(hand.stream, hand.item_id, hand.lease_id, None)
            self._courier.grant(hand.subscriber, 1)
            self._finish(tick, row, Outcome.FAILED, "expired")
            return False
        leased = replace(
            row,
            state=TurnState.LEASED,
            delivery_count=hand.delivery_count,
            lease_id=hand.lease_id,
            session=hand.session,
            engaged_at_ms=row.engaged_at_ms or tick.now.wall_ms,
        )
        if leased != row:
            tick.store.put_received(leased)
        tick.effects.append(
            Handed(
                subscriber=hand.subscriber,
                event_id=row.event_id,
                lease_id=hand.lease_id,
                lease_ms=self._lease_ms,
                delivery_count=hand.delivery_count,
                resumed=hand.resumed,
                body=row.body,
            )
        )
        return True

    def _expire(self, tick: Tick) -> None:
        now_ms = tick.now.wall_ms
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, event_id = heapq.heappop(self._deadlines)
            row = tick.store.received(event_id)
            if row is None or row.state is TurnState.DONE:
                continue
            stream = inbox_stream(row.to_agent)
            if row.state is TurnState.HELD:
                expired = row.expires_at_ms <= now_ms
                outcome = Outcome.FAILED if expired else Outcome.REFUSED
                self._finish(tick, row, outcome, "expired" if expired else "unknown_source")
            elif self._courier.lease_of(stream, event_id) is not None:
                heapq.heappush(self._deadlines, (now_ms + self._lease_ms, event_id))
            else:
                self._courier.discard(stream, event_id)
                self._finish(tick, row, Outcome.FAILED, "expired")

    def _finish(self, tick: Tick, row: Received, outcome: Outcome, error: str | None) -> None:
        done = replace(
            row,
            state=TurnState.DONE,
            outcome=outcome,
            error=error,
            done_at_ms=tick.now.wall_ms,
        )
        tick.store.put_received(done)
        if RULES[Kind(row.kind)].processed:
            acks.process(tick, done)
