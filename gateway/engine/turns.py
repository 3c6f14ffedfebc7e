"""Engagement: which local agent holds which event, and how each turn ends.

The courier deals in memory; every hand-over and every end is written to the ledger row in the same
transaction.
"""

from collections.abc import Callable
from itertools import islice

from msgspec.structs import replace

from gateway.courier.courier import Courier
from gateway.courier.item import HandOver, Item
from gateway.courier.limits import DEALT_MAX
from gateway.courier.timers import Timers
from gateway.engine import acks
from gateway.engine.awaited import WRONG_SIZE, says_wrong_size
from gateway.engine.effects import Subscribed
from gateway.engine.errands import Task
from gateway.engine.firstreply import SUPERSEDED
from gateway.engine.fullness import Fullness
from gateway.engine.handing import handed
from gateway.engine.held import Held
from gateway.engine.inputs import Now, Subscribe
from gateway.engine.latecomers import AGENT_REMOVED
from gateway.engine.limits import DUE_MAX, HANDS_MAX, PRIORITY_NORMAL
from gateway.engine.takenback import TakenBack, not_in_hand
from gateway.engine.tick import Tick
from gateway.engine.turnkey import TurnKey, turn_key
from gateway.engine.withheld import Withheld
from gateway.routing import inbox_stream
from outbox.blobref import BlobId
from outbox.envelope import Event, decode_event
from outbox.ids import AgentId, EventId, NodeId
from outbox.kinds import Kind, Outcome
from outbox.records import Received, Share, TurnState
from outbox.store import Store

_EXPIRES, _HOLD_ENDS = "expires", "hold_ends"
FOREIGN_AGENT = "foreign_agent"


class Turns:
    """The open turns of one gateway. Rebuilt from the store at start and after a failed transaction.

    A turn has its item in the courier, or stands in ``held``; its deadlines are of the wall clock. What is
    not to be dealt yet is ``withheld`` in the courier.
    """

    def __init__(self, courier: Courier, lease_ms: int, hold_ms: int) -> None:
        self._courier = courier
        self._lease_ms = lease_ms
        self._hold_ms = hold_ms
        self._readers: dict[str, AgentId] = {}
        self._held = Held()
        self.withheld = Withheld(courier)
        self.taken_back = TakenBack(courier)
        self._fullness = Fullness(())
        self._deadlines: Timers[tuple[str, TurnKey]] = Timers()

    def load(self, store: Store, now: Now) -> None:
        """Queue again what is unacknowledged; a lease that was live goes on for its session."""
        self._fullness = Fullness(store.incidents(open_only=True))
        self.withheld.load(store, now)
        self.taken_back.load(store)
        for row in map(self.taken_back.admit, store.open_turns()):
            self._admit(row, decode_event(row.body), now, row.expires_at_ms)
            self.withheld.admit(store, row)

    # --- inboxes

    def open_inbox(self, agent: AgentId) -> None:
        """It lives here from now on and can be subscribed to."""
        self._courier.open(inbox_stream(agent))

    def close_inbox(self, agent: AgentId, now: Now) -> None:
        """It is gone: its sockets get nothing more."""
        for reader in [reader for reader, whose in self._readers.items() if whose == agent]:
            self.unsubscribe(reader, now)

    def all(self) -> list[TurnKey]:
        """The keys of all that are open: a copy, and nothing else is done with each."""
        keys = self._courier.ids()
        keys += self._held.turns()
        return keys

    def dealt(self, tick: Tick, source: NodeId, agent: AgentId) -> list[Received]:
        """The turns of a node that an agent has, or had."""
        items = self._courier.items(inbox_stream(agent))
        return [self._row(tick, item.id) for item in items if item.deliveries and item.id[0] == source]

    # --- what comes in

    def has_room(self, agent: AgentId, priority: int, *, held: bool) -> bool:
        """Whether the agent's inbox can take one more of this priority, and what is held one more of all."""
        return self._courier.has_room(inbox_stream(agent), priority) and not (held and self._held.full)

    def check_room(self, agent: AgentId, priority: int) -> None:
        """Raises StreamFull when the agent's inbox cannot take one more of this priority."""
        self._courier.check_room(inbox_stream(agent), priority)

    def refuse(self, tick: Tick, agent: AgentId, event: EventId) -> None:
        """An event was refused since the agent's inbox is full: its operator hears of it."""
        self._fullness.refused(tick, agent, event)

    def held_by(self, tick: Tick, agent: AgentId) -> list[Event]:
        """What an agent has in hand; nothing of one that has more than a few things at once."""
        keys = self._courier.leased(inbox_stream(agent), HANDS_MAX)
        return [decode_event(self._row(tick, key).body) for key in keys]

    def take(self, tick: Tick, row: Received, event: Event) -> None:
        """A row that was just accepted becomes a turn, or waits for its sender's owner to be known."""
        self._admit(row, event, tick.now, tick.now.wall_ms + self._left_ms(tick, row))
        if row.state is TurnState.QUEUED:
            self._withhold(tick, row)

    def turn_away(self, tick: Tick, row: Received, why: str | None, how: Outcome = Outcome.FAILED) -> None:
        """It was accepted, and this recipient cannot have it, or not again: whoever has it has it no more."""
        self._end(tick, row, how, why)

    def _admit(self, row: Received, event: Event, now: Now, expires_at_ms: int) -> None:
        key, stream = turn_key(row), inbox_stream(row.to_agent)
        self._deadlines.set((_EXPIRES, key), expires_at_ms)
        item = Item(key, row.priority, deliveries=row.delivery_count)
        if row.state is TurnState.HELD:
            assert event.source_agent_id is not None
            self._held.add(key, event.source_agent_id)
            self._deadlines.set((_HOLD_ENDS, key), row.accepted_at_ms + self._hold_ms)
        elif row.state is TurnState.LEASED:
            assert row.lease_id is not None
            assert row.session is not None
            self._courier.restore(stream, item, row.lease_id, row.session, now.mono_ms)
        else:
            self._courier.readmit(stream, item, now.mono_ms)

    def doubt(self, tick: Tick, *, take_back: bool) -> None:
        """Deal nothing more of nodes that are doubted; with ``take_back`` leases on theirs end too."""
        if take_back:
            self.taken_back.begin(tick.store.doubts())
        self.withheld.doubt(tick)

    @property
    def holding(self) -> bool:
        """Whether anything waits for a record of the room."""
        return bool(self._held)

    def judge_anew(self, changed: Callable[[AgentId], bool]) -> bool:
        """What agents of whom the room says something new have sent is to be judged; whether anything is."""
        return self._held.look_at(changed)

    def to_judge(self, tick: Tick, most: int) -> list[Received]:
        """The next of it, at most so many, each once."""
        return [self._row(tick, key) for key in self._held.due(most)]

    def let_go(self, tick: Tick, row: Received) -> None:
        """A turn was held, and its sender's owner is known."""
        key = turn_key(row)
        self._held.drop(key)
        self._deadlines.cancel((_HOLD_ENDS, key))
        tick.store.put_received(replace(row, state=TurnState.QUEUED))
        item = Item(key, row.priority)
        self._courier.readmit(inbox_stream(row.to_agent), item, tick.now.mono_ms)
        self._withhold(tick, row)

    # --- blobs

    def _withhold(self, tick: Tick, row: Received) -> None:
        if says_wrong_size(tick.store, row):
            self._end(tick, row, Outcome.FAILED, WRONG_SIZE)
        else:
            self.withheld.take(tick, row)

    def awaiting(self, tick: Tick, blob: BlobId, most: int) -> list[Received]:
        """What waits for a blob, at most so many."""
        return [self._row(tick, key) for key in self.withheld.awaiting(blob, most)]

    def blob_here(self, tick: Tick, row: Received) -> None:
        """The blob that a turn waited for has come: it is dealt."""
        if says_wrong_size(tick.store, row):
            self._end(tick, row, Outcome.FAILED, WRONG_SIZE)
        else:
            self.withheld.blob_here(row, tick.now)

    def cancel(self, tick: Tick, source: NodeId, event: EventId) -> None:
        """The sender gave up: what nobody holds yet is not engaged any more."""
        self._withdraw(tick, tick.store.turns_of(source, event), Outcome.FAILED, "cancelled")

    def supersede(self, tick: Tick, source: NodeId, event: EventId) -> None:
        """A later attempt went to another node: what is for one agent, and free, is engaged there."""
        rows = [row for row in tick.store.turns_of(source, event) if row.share is Share.SOLE]
        self._withdraw(tick, rows, Outcome.REFUSED, SUPERSEDED)

    def _withdraw(self, tick: Tick, rows: list[Received], outcome: Outcome, why: str) -> None:
        for row in rows:
            if row.state is not TurnState.DONE and self.live_lease(row) is None:
                self._end(tick, row, outcome, why)

    # --- who takes turns

    def subscribe(self, tick: Tick, request: Subscribe) -> None:
        """Begin a subscription; the session's live turns are handed over again when turns are dealt.

        Raises Conflict when the subscriber has one.
        """
        stream = inbox_stream(request.agent)
        self._courier.subscribe(request.subscriber, stream, request.session)
        self._readers[request.subscriber] = request.agent
        tick.effects.append(Subscribed(request.req, request.subscriber))

    def unsubscribe(self, subscriber: str, now: Now) -> None:
        """End it; the session keeps its leases until they run out."""
        self._readers.pop(subscriber, None)
        self._courier.unsubscribe(subscriber, now.mono_ms)

    def grant(self, subscriber: str, credit: int) -> None:
        """Raises InvalidCredit, UnknownStream."""
        self._courier.grant(subscriber, credit)

    def live_lease(self, row: Received) -> str | None:
        """The lease under which somebody holds the turn now."""
        return self._courier.lease_of(inbox_stream(row.to_agent), turn_key(row))

    def finish(self, tick: Tick, row: Received, outcome: Outcome, error: str | None) -> None:
        """End the turn of a row whose lease was checked; its ACK goes out with it."""
        if row.engaged_at_ms is None:
            row = replace(row, engaged_at_ms=tick.now.wall_ms, delivery_count=1)
        self._end(tick, row, outcome, acks.cut(error))

    def give_back(self, tick: Tick, row: Received, lease_id: str, delay_ms: int) -> None:
        """Queue a turn again, after a delay. Raises UnknownLease."""
        stream = inbox_stream(row.to_agent)
        self._courier.nack(stream, turn_key(row), lease_id, None, delay_ms, tick.now.mono_ms)
        tick.store.put_received(not_in_hand(row))

    def prolong(self, tick: Tick, row: Received, lease_id: str, lease_ms: int) -> int:
        """Let the lease last this long from now; returns how long it lasts. Raises UnknownLease."""
        stream, now_ms = inbox_stream(row.to_agent), tick.now.mono_ms
        return self._courier.extend(stream, turn_key(row), lease_id, None, lease_ms, now_ms) - now_ms

    # --- what time does

    def deal(self, tick: Tick) -> None:
        """Expire what is too old, then hand over what subscribers have credit for."""
        self._expire(tick)
        self.withheld.let_go_late(tick.now)
        left = DEALT_MAX
        while left > 0 and (expired := self._pump(tick, left)):
            left -= expired  # they were dealt and have given their credit back

    def next_wake_ms(self, now: Now) -> int | None:
        """When time alone will change something, on the monotonic clock."""
        wakes = [self._courier.next_deadline_ms(), self.withheld.next_ms()]
        deadline_ms = self._deadlines.next_ms()
        if deadline_ms is not None:
            wakes.append(now.mono_ms + max(0, deadline_ms - now.wall_ms))
        if self._courier.can_deal:
            wakes.append(now.mono_ms)
        return min((wake for wake in wakes if wake is not None), default=None)

    def _pump(self, tick: Tick, most: int) -> int:
        pumped = self._courier.pump(tick.now.mono_ms, tick.entropy.lease_id, most)
        for _, item in pumped.exhausted:
            self._end(tick, self._row(tick, item.id), Outcome.FAILED, "max_deliveries")
        return sum(not self._hand(tick, hand) for hand in pumped.hand_overs)

    def _row(self, tick: Tick, key: TurnKey) -> Received:
        row = tick.store.received(*key)
        assert row is not None, "only ledger rows are turns"
        return row

    def _hand(self, tick: Tick, hand: HandOver) -> bool:
        row = self._row(tick, hand.item_id)
        if self._left_ms(tick, row) <= 0 and not hand.resumed:
            self._courier.grant(hand.subscriber, 1)
            self._end(tick, row, Outcome.FAILED, "expired")
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
        if row.kind == Kind.MESSAGE and not hand.resumed:
            tick.circles.handed(row.to_agent)
        tick.effects.append(handed(row, hand, self._lease_ms))
        return True

    @staticmethod
    def _left_ms(tick: Tick, row: Received) -> int:
        """How long it still lives: its expiry was written by its sender's clock."""
        return row.expires_at_ms - tick.there_ms(row.source)

    def _expire(self, tick: Tick) -> None:
        now_ms = tick.now.wall_ms
        for what, key in islice(self._deadlines.pop_due(now_ms), DUE_MAX):
            row = self._row(tick, key)
            if what == _HOLD_ENDS and self._held.is_due(key):
                self._deadlines.set((what, key), now_ms + 1)  # what the room says of it is not looked at yet
            elif what == _HOLD_ENDS:
                self._end(tick, row, Outcome.REFUSED, "unknown_source")
            elif (left_ms := self._left_ms(tick, row)) > 0:
                self._deadlines.set((what, key), now_ms + left_ms)
            elif self.live_lease(row) is not None:
                self._deadlines.set((what, key), now_ms + self._lease_ms)  # in work: let it finish
            else:
                self._end(tick, row, Outcome.FAILED, "expired")

    def _end(self, tick: Tick, row: Received, outcome: Outcome, error: str | None) -> None:
        if (Task.LEAVING, row.to_agent) in tick.errands:  # it ended when its agent left
            outcome, error = Outcome.FAILED, AGENT_REMOVED
        key, stream = turn_key(row), inbox_stream(row.to_agent)
        if row.state is TurnState.HELD:
            self._held.drop(key)
            self._deadlines.cancel((_HOLD_ENDS, key))
        self._deadlines.cancel((_EXPIRES, key))
        self.withheld.drop(key)
        self._courier.discard(stream, key)
        now_ms = tick.now.wall_ms
        done = replace(row, state=TurnState.DONE, outcome=outcome, error=error, done_at_ms=now_ms)
        tick.store.put_received(done)
        if row.to_agent in self._fullness and self._courier.has_room(stream, PRIORITY_NORMAL):
            self._fullness.eased(tick, row.to_agent)
        acks.end(tick, done)
