"""The engine: takes every input that waits, decides in one transaction, returns the effects.

``apply`` leaves the store's transaction open; its owner commits and only then performs the effects. When the
commit fails the engine's memory is worth nothing any more: throw it away and build a new one from the store.
"""

from collections.abc import Iterable

from gateway.courier.courier import Courier
from gateway.courier.limits import CourierLimits
from gateway.engine import (
    answers,
    attempts,
    blobs,
    epochs,
    farewell,
    forks,
    operations,
    questioning,
    receiver,
    rerouting,
    revoked,
    sender,
    signals,
    standstill,
    streams,
    timers,
    vouching,
)
from gateway.engine.absences import Absences
from gateway.engine.bloblife import BlobLost, BlobsFit, BlobsFull, KeepBlob
from gateway.engine.circles import Circles
from gateway.engine.closing import CloseIncidents
from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.desk import Desk
from gateway.engine.doubts import EndDoubts
from gateway.engine.effects import Answer, CaughtUp, Effect, Refused
from gateway.engine.errands import Errands
from gateway.engine.inputs import (
    AddAgent,
    ClockMeasured,
    Extend,
    FloorRead,
    Grant,
    Input,
    LinkDown,
    LinkUp,
    Maintain,
    Nack,
    Now,
    PageRead,
    Prune,
    RelayCaught,
    RemoveAgent,
    Reply,
    Request,
    Send,
    SetAgent,
    Settle,
    StreamKnown,
    Subscribe,
    TellIncident,
    Unsubscribe,
    ViewChanged,
)
from gateway.engine.limits import ROOM_AGAIN_MS
from gateway.engine.mirrors import Mirrors
from gateway.engine.own_stream import OwnStream
from gateway.engine.pace import Pace
from gateway.engine.peers import Peers
from gateway.engine.policy import Policy
from gateway.engine.questions import Questions
from gateway.engine.residents import Residents
from gateway.engine.rest import Rest
from gateway.engine.retention import Retainer
from gateway.engine.stalls import StreamFlows, StreamStalled
from gateway.engine.steadyclock import SteadyClock, newest_ms
from gateway.engine.tick import Entropy, Tick
from gateway.engine.turns import Turns
from gateway.engine.unfinished import resumed
from outbox.chain import Sign
from outbox.errors import CallerError
from outbox.store import Store
from stateroom.view import View


class Engine:
    """One gateway's decisions. Not thread-safe; one tick at a time."""

    def __init__(
        self,
        store: Store,
        view: View,
        sign: Sign,
        entropy: Entropy,
        now: Now,
        *,
        policy: Policy,
        limits: CourierLimits,
        desk: Desk,
        own: OwnStream,
    ) -> None:
        self._store = store
        self._view = view
        self._sign = sign
        self._entropy = entropy
        self._policy = policy
        self._desk = desk
        self._identity = store.identity()
        self._clock = SteadyClock(newest_ms(store), now)
        now = self._clock.read(now)
        self._turns = Turns(Courier(limits), limits.lease_ms, policy.hold_ms)
        self._residents = Residents(store.agents())
        for agent in self._residents.names():
            self._turns.open_inbox(agent)
        self._turns.load(store, now)
        self._peers = Peers(standstill.open_stalls(store))
        self._mirrors = Mirrors(policy.mirror, store.copies())
        self._pace = Pace(policy.answers)
        self._circles = Circles(policy.unsaid)
        self._absences = Absences(self._identity.node)
        self._absences.see(view, now.mono_ms)
        self._questions = Questions(store.doubts(), store.head().seq, now.mono_ms)
        self._errands = Errands(resumed(row, self._turns) for row in store.errands())
        self._retainer = Retainer(now.mono_ms)
        self._own = own
        self._told_shown = False
        """This engine has said that the outbox may be shown: the one before may have failed to commit it."""
        self._view_is_new = True

    def apply(self, inputs: Iterable[Input], now: Now) -> list[Effect]:
        """Decide on all inputs and on what time has made due; the store's transaction must be open.

        Where the disk has no room what is due waits: it needs some, and nobody could ask for anything else.
        Raises WorldError branches from the store. Whatever is wrong with an input becomes its Refused.
        """
        machine_ms, now = now.wall_ms, self._clock.read(now)
        tick = Tick(
            now,
            self._store,
            self._view,
            self._identity,
            self._policy,
            self._entropy,
            self._peers,
            machine_ms,
            self._pace,
            self._circles,
            self._absences,
            self._questions,
            self._errands,
        )
        if not self._store.read_only:
            self._begin_epoch(tick)
            self._do_errands(tick)
            self._judge_view(tick)
        for item in inputs:
            self._input(tick, item)
            self._settle_loopback(tick)
        if not self._store.read_only:
            self._do_what_is_due(tick)
        tick.seal(self._sign, shown=self._own.shown)
        return tick.effects

    def _do_what_is_due(self, tick: Tick) -> None:
        rerouting.reroute(tick)
        timers.run_timers(tick)
        questioning.ask_again(tick, self._turns)
        farewell.give_up(tick, self._turns)
        self._do_errands(tick)
        self._turns.deal(tick)
        self._settle_loopback(tick)
        self._show(tick)

    def next_wake_ms(self, now: Now) -> int | None:
        """When a tick without inputs will have something to do, on the monotonic clock."""
        if self._store.read_only:
            return now.mono_ms + ROOM_AGAIN_MS
        now = self._clock.peek(now)
        delivery_ms = self._store.quiet_until_ms()
        wakes = [
            self._turns.next_wake_ms(now),
            self._absences.next_ms(),
            self._questions.next_ms(now.mono_ms),
            self._peers.endings.next_ms(),
        ]
        if self._errands or (self._view_is_new and (self._turns.holding or self._view.revocations)):
            wakes.append(now.mono_ms)
        if not self._told_shown or self._own.is_due(self._identity.epoch):
            wakes.append(epochs.wake_ms(self._store, self._view, self._own, now))
        if delivery_ms is not None:
            wakes.append(now.mono_ms + max(0, delivery_ms - now.wall_ms))
        return min((wake for wake in wakes if wake is not None), default=None)

    def rest(self, now: Now) -> Rest:
        """What holds until the next tick."""
        standing = epochs.standing_of(self._store, self._view, self._own, self._clock.peek(now))
        return Rest(self.next_wake_ms(now), self._clock.base, standing, self._store.read_only)

    def _begin_epoch(self, tick: Tick) -> None:
        """A new epoch, if one is due; what this engine has told of the one before is void."""
        if epochs.begin_if_due(tick, self._own, self._turns):
            self._identity, self._told_shown = tick.identity, False
            self._do_errands(tick)
            self._settle_loopback(tick)

    def _show(self, tick: Tick) -> None:
        epochs.watch_for_copies(tick, self._own)
        if not self._told_shown:
            self._told_shown = epochs.show(tick, self._own)

    def _do_errands(self, tick: Tick) -> None:
        """What one says here arrives before the next one goes on."""
        while self._errands.go_on(tick):
            self._settle_loopback(tick)

    def _settle_loopback(self, tick: Tick) -> None:
        """Own events that name this node arrive here in the same transaction."""
        while tick.loopback:
            receiver.arrive(tick, self._residents, self._turns, tick.loopback.popleft())

    def _input(self, tick: Tick, item: Input) -> None:
        # what ticks are full of first: a struct that does not match costs five times one that does
        match item:
            case Send() | Reply() | Settle() | Grant():
                self._ask(tick, item)
            case PageRead() | FloorRead():
                self._follow(tick, item)
            case RelayCaught() | StreamStalled() | StreamFlows() | StreamKnown() | LinkUp() | LinkDown():
                self._hear_link(tick, item)
            case ClockMeasured():
                self._peers.measured(item)
            case BlobsFull() | BlobsFit():
                blobs.note_room(tick, item)
            case BlobLost():
                blobs.lose(tick, self._turns, item)
            case ViewChanged():
                self._see(tick, item.view)
            case Unsubscribe():
                self._turns.unsubscribe(item.subscriber, tick.now)
            case _:
                self._ask(tick, item)

    def _ask(self, tick: Tick, item: Request) -> None:
        try:
            revoked.check_here(tick.view, tick.identity.node, item)
            answer = self._request(tick, item)
        except CallerError as error:
            answer = Refused(item.req, error.code, str(error), error.hint, error.retryable)
        if answer is not None:
            tick.effects.append(answer)

    def _follow(self, tick: Tick, item: PageRead | FloorRead) -> None:
        if isinstance(item, PageRead):
            streams.read_page(tick, self._residents, self._turns, self._mirrors, item)
        else:
            streams.read_floor(tick, self._turns, item)
        timers.find_lost(tick, item.node)

    def _hear_link(
        self, tick: Tick, item: RelayCaught | StreamStalled | StreamFlows | StreamKnown | LinkUp | LinkDown
    ) -> None:
        match item:
            case RelayCaught():
                streams.caught(tick, item)
            case StreamStalled() | StreamFlows():
                standstill.note_stall(tick, item)
            case StreamKnown():
                epochs.hear(tick, self._own, item)
            case LinkUp():
                self._turns.withheld.hold_back(tick, streams.note_heads(tick, item))
            case LinkDown():
                for node in self._peers.down(item.peer):
                    tick.effects.append(CaughtUp(node))
                    self._turns.withheld.go_on(node, tick.now)

    def _request(self, tick: Tick, item: Request) -> Answer | None:
        match item:
            case Send() | Reply() | Settle():
                return self._say(tick, item)
            case Nack() | Extend() | Subscribe() | Grant() | TellIncident():
                return self._turn(tick, item)
            case Prune() | KeepBlob():
                return self._keep(tick, item)
            case AddAgent() | SetAgent() | RemoveAgent() | Redrive() | Dismiss():
                return operations.handle(tick, self._residents, self._turns, item)
            case EndDoubts() | CloseIncidents() | Maintain():
                return operations.handle(tick, self._residents, self._turns, item)
            case _:
                return self._desk.answer(item, tick.now, tick.view)

    def _keep(self, tick: Tick, item: Prune | KeepBlob) -> Answer:
        if isinstance(item, KeepBlob):
            return blobs.keep(tick, self._turns, item)
        pruned = self._retainer.prune(tick, item)
        blobs.collect(tick)
        return pruned

    def _say(self, tick: Tick, item: Send | Reply | Settle) -> Answer:
        author = self._residents.get(item.agent)
        match item:
            case Send():
                return sender.send(tick, self._turns, item, author.owner_epoch)
            case Reply():
                return answers.reply(tick, self._turns, item, author.owner_epoch)
            case _:
                return answers.settle(tick, self._turns, item)

    def _turn(self, tick: Tick, item: Nack | Extend | Subscribe | Grant | TellIncident) -> Answer | None:
        if isinstance(item, Grant):
            self._turns.grant(item.subscriber, item.credit)
            return None
        owner = self._residents.get(item.agent)
        match item:
            case Nack():
                return answers.nack(tick, self._turns, item)
            case Extend():
                return answers.extend(tick, self._turns, item)
            case TellIncident():
                return signals.tell_incident(tick, item, owner.owner_epoch)
            case _:
                self._turns.subscribe(tick, item)
                return None

    def _see(self, tick: Tick, view: View) -> None:
        before, self._view, tick.view = self._view, view, view
        self._view_is_new = True
        if view.nodes is not before.nodes or view.agents is not before.agents:  # most change cursors only
            self._absences.see(view, tick.now.mono_ms)
        epochs.look(tick, self._own)
        forks.note(tick)
        self._judge_view(tick, before)
        streams.see_floors(tick, self._turns)
        attempts.see_owners(tick, before)
        for node, cursors in view.cursors.items():
            if before.cursors.get(node) != cursors and node != self._identity.node:
                timers.find_lost(tick, node)

    def _judge_view(self, tick: Tick, before: View | None = None) -> None:
        """Each view is looked at once; the first one when the engine was built anew over held rows."""
        if self._view_is_new and not self._store.read_only:
            farewell.see(tick, self._turns)
            vouching.see(tick, self._turns, before)
            self._view_is_new = False
