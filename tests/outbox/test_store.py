"""What both stores promise; each test runs on the journal and on its in-memory twin."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from outbox.chain import Head, follow
from outbox.errors import (
    CursorError,
    CursorPastEnd,
    ForeignEpoch,
    InvalidCursor,
    StorageFailed,
)
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq, make_epoch
from outbox.journal import Journal
from outbox.kinds import Outcome
from outbox.memory import MemoryStore
from outbox.records import DeliveryState, Incident, LocalAgent, Quarantined, Remembered, Share, TurnState
from outbox.store import Store
from tests.appending import sealed

ANN, BOB = AgentId("ann"), AgentId("bob")
MBP, LAB = NodeId("mbp"), NodeId("lab")
EPOCH = Epoch("000001-0123456789ab")
ALL = 10_000


def pages(store: Store, start: Head, entries_max: int, bytes_max: int = 1 << 20) -> list[list[int]]:
    """The seqs of each page, followed as a reader would."""
    head, found = start, []
    while (page := store.read(head, entries_max, bytes_max)) is not None:
        head = follow(head, page)
        found.append([entry.seq for entry in page.entries])
    assert head == store.head()
    return found


# --- the transaction


def test_an_empty_store_stands_at_its_genesis(store: Store, world: Any) -> None:
    assert store.identity() == world.identity
    assert store.head() == MemoryStore(world.identity).head()
    assert store.read(store.head(), 10, 1000) is None
    assert store.next_delivery_ms() is None
    assert store.count_deliveries() == store.count_received() == {}
    assert store.open_turns() == store.quarantined() == store.agents() == []
    assert store.incidents(open_only=False) == []
    assert store.cursor(MBP) is None
    assert store.delivery(world.event(1), MBP) is None
    assert store.received(MBP, world.event(1), ANN) is None
    assert store.ledger(world.event(1)) == []
    assert store.remembered(ANN, "k") is None
    assert store.incident("late", "x") is None


def test_writes_need_a_transaction(store: Store, world: Any) -> None:
    with pytest.raises(StorageFailed):
        world.append(store, world.entry(1, 1))
    with pytest.raises(StorageFailed):
        store.put_delivery(world.delivery(1))
    with pytest.raises(StorageFailed):
        store.commit()
    store.rollback()
    assert store.delivery(world.event(1), MBP) is None


def test_a_transaction_is_opened_once(store: Store, world: Any) -> None:
    store.begin()
    store.put_delivery(world.delivery(1))
    with pytest.raises(StorageFailed):
        store.begin()
    store.commit()
    assert store.delivery(world.event(1), MBP) == world.delivery(1)


def test_a_transaction_that_only_asks_is_known_from_one_that_changes(store: Store, world: Any) -> None:
    for change in (
        lambda: world.append(store, world.entry(1, 1)),
        lambda: store.put_delivery(world.delivery(1)),
        lambda: store.put_received(world.received(1)),
        lambda: store.put_cursor(MBP, Head(EPOCH, Seq(1), b"h" * 32)),
        lambda: store.remember(remembered(world, 1)),
        lambda: store.put_agent(LocalAgent(name=ANN, owner_epoch=1, token_hash=b"t", created_at_ms=1)),
        lambda: store.drop_agent(ANN),
    ):
        store.begin()
        everything(store, world)
        assert store.only_asked
        change()
        everything(store, world)
        assert not store.only_asked
        store.commit()


def test_room_is_found_where_there_is_some(store: Store, world: Any) -> None:
    store.begin()
    write_everything(store, world, 2)
    store.commit()
    before = everything(store, world)
    store.read_only = True
    store.find_room()
    assert not store.read_only
    assert everything(store, world) == before


def write_everything(store: Store, world: Any, number: int) -> None:
    seq = store.head().seq + 1
    world.append(store, world.entry(seq, seq, corr=1))
    store.put_delivery(world.delivery(1, seq=number))
    store.put_delivery(world.delivery(number))
    store.put_cursor(MBP, Head(EPOCH, Seq(number), b"h" * 32))
    store.put_received(world.received(1, delivery_count=number))
    store.put_received(world.received(number, state=TurnState.DONE))
    store.remember(remembered(world, number))
    store.quarantine(unreadable(number))
    store.put_incident(Incident(kind="late", subject="x", opened_at_ms=number))
    store.put_agent(LocalAgent(name=ANN, owner_epoch=number, token_hash=b"t", created_at_ms=1))


def unreadable(seq: int, source: NodeId = MBP, reason: str = "r") -> Quarantined:
    return Quarantined(source=source, epoch=EPOCH, seq=Seq(seq), reason=reason, header=b"\xff", body=b"")


def remembered(world: Any, number: int) -> Remembered:
    return Remembered(agent=ANN, key="k", request_hash=bytes([number]), event_id=world.event(number))


def everything(store: Store, world: Any) -> tuple[Any, ...]:
    """All that can be asked, with the order of the answers."""
    genesis = MemoryStore(world.identity).head()
    events = [world.event(number) for number in range(1, 10)]
    return (
        store.head(),
        store.read(genesis, ALL, 1 << 30),
        [store.events_about(event) for event in events],
        [store.obligations(event) for event in events],
        store.due_deliveries(1 << 40, ALL),
        store.next_delivery_ms(),
        store.unanswered(MBP, Seq(ALL), 1 << 40, ALL),
        store.deliveries(DeliveryState, ALL),
        store.count_deliveries(),
        list(store.cursors().items()),
        store.cursor(MBP),
        [store.turns_of(source, event) for source in (MBP, LAB) for event in events],
        [store.ledger(event) for event in events],
        store.open_turns(),
        [store.inbox(agent, done=done, limit=ALL) for agent in (ANN, BOB) for done in (True, False)],
        [
            store.inbox_after(agent, row.event_id, done=done, limit=2)
            for row in store.inbox(ANN, done=True, limit=4)
            for agent in (ANN, BOB)
            for done in (True, False)
        ],
        store.count_received(),
        store.remembered(ANN, "k"),
        store.quarantined(),
        store.incident("late", "x"),
        [store.incidents(open_only=only) for only in (True, False)],
        [store.newest_incidents(2, open_only=only) for only in (True, False)],
        [store.open_incidents(kinds, 2, 2) for kinds in ((), ("late",), ("late", "lost"))],
        store.count_open_incidents(),
        store.count_quarantined(),
        store.agents(),
        store.floor(),
        store.beginning(),
        store.size(),
        store.oldest_batches(ALL),
        store.first_owed(store.head().epoch, store.head().seq),
        [store.first_position(event) for event in events],
        store.readers(),
    )


def test_a_rollback_forgets_everything_since_begin(store: Store, world: Any) -> None:
    store.begin()
    write_everything(store, world, 2)
    store.commit()
    before = everything(store, world)
    store.begin()
    write_everything(store, world, 3)
    assert everything(store, world) != before
    store.rollback()
    assert everything(store, world) == before


def test_what_a_query_made_the_store_write_is_forgotten_too(store: Store, world: Any) -> None:
    """A store may keep what it wrote lately: not longer than its transaction."""
    kept, changed = world.delivery(1), world.delivery(1, state=DeliveryState.ACCEPTED)
    first, second = (Incident(kind="k", subject=name, opened_at_ms=1) for name in ("first", "second"))
    store.begin()
    store.put_delivery(kept)
    store.put_received(world.received(1))
    store.commit()
    store.begin()
    assert store.incident("k", "first") is None
    store.put_delivery(changed)
    store.put_received(world.received(1, state=TurnState.DONE))
    store.put_received(world.received(2))
    store.put_incident(first)
    assert store.count_deliveries() == {DeliveryState.ACCEPTED: 1}
    assert store.count_received() == {TurnState.DONE: 1, TurnState.QUEUED: 1}
    assert store.incidents(open_only=True) == [first]
    assert store.ledger(world.event(2)) == [world.received(2)]
    store.rollback()
    store.begin()
    assert store.delivery(world.event(1), MBP) == kept
    assert store.ledger(world.event(1)) == [world.received(1)]
    assert store.ledger(world.event(2)) == []
    assert store.incident("k", "first") is None
    store.put_incident(second)
    assert (store.incident("k", "first"), store.incident("k", "second")) == (None, second)
    store.commit()
    assert store.delivery(world.event(1), MBP) == kept
    assert store.incident("k", "second") == second


def test_reads_see_the_open_transaction(store: Store, world: Any) -> None:
    store.begin()
    write_everything(store, world, 2)
    inside = everything(store, world)
    store.commit()
    assert store.read(MemoryStore(world.identity).head(), ALL, 1 << 30) is not None
    after = everything(store, world)
    assert (inside[0], inside[2:]) == (after[0], after[2:])


# --- the outbox


def test_entries_are_readable_once_committed(store: Store, world: Any) -> None:
    start = store.head()
    store.begin()
    world.append(store, world.entry(1, 1))
    assert store.head().seq == 1
    assert store.read(start, 10, 1000) is None
    with pytest.raises(CursorPastEnd):
        store.read(store.head(), 10, 1000)
    store.commit()
    assert pages(store, start, 10) == [[1]]


def test_pages_are_whole_batches_within_the_limits(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 4, batch=3)
    assert pages(store, start, 100) == [[*range(1, 13)]]
    assert pages(store, start, 7) == [[*range(1, 7)], [*range(7, 13)]]
    assert pages(store, start, 1) == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
    assert pages(store, start, 0) == pages(store, start, 1) == pages(store, start, 100, bytes_max=1)


def test_a_page_stays_within_its_bytes(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 5, body=b"x" * 1000)
    assert pages(store, start, 100, bytes_max=2500) == [[1, 2], [3, 4], [5]]


def test_a_large_batch_is_stored_and_read_whole(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 1, batch=341)
    page = store.read(start, 10, 10)
    assert page is not None
    assert [entry.body for entry in page.entries] == [b"{}"] * 341
    assert follow(start, page) == store.head()


def test_a_cursor_inside_a_batch_is_read_on_from(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 2, batch=3)
    first = store.read(start, 1, 1)
    assert first is not None
    page = store.read(Head(EPOCH, Seq(2), b""), 2, 1000)
    assert page is not None
    assert [entry.seq for entry in page.entries] == [3]
    assert page.checkpoint == first.checkpoint


@pytest.mark.parametrize(
    ("epoch", "seq", "error"),
    [
        (EPOCH, 4, CursorPastEnd),
        (EPOCH, -1, InvalidCursor),
        ("000002-0123456789ab", 1, ForeignEpoch),
        ("garbage", 1, InvalidCursor),
    ],
)
def test_wrong_cursors_have_typed_errors(
    store: Store, world: Any, epoch: str, seq: int, error: type[CursorError]
) -> None:
    world.fill(store, 3)
    with pytest.raises(error):
        store.read(Head(Epoch(epoch), Seq(seq), b""), 10, 1000)


def test_what_does_not_follow_on_is_refused_and_harms_nothing(store: Store, world: Any) -> None:
    world.fill(store, 1)
    entry = world.entry(3, 3)
    store.begin()
    with pytest.raises(StorageFailed):
        store.append(sealed(world.identity, Head(EPOCH, Seq(2), bytes(32)), [entry], world.sign))
    world.append(store, world.entry(2, 2))
    store.commit()
    assert store.head().seq == 2


def test_an_attempt_stands_in_the_outbox_once(store: Store, world: Any) -> None:
    world.fill(store, 1)
    before = everything(store, world)
    store.begin()
    with pytest.raises(StorageFailed):
        world.append(store, world.entry(2, 2), world.entry(3, 1))
    with pytest.raises(StorageFailed, match="roll back"):
        store.commit()
    store.rollback()
    assert everything(store, world) == before
    store.begin()
    world.append(store, world.entry(2, 1, attempt=2))
    store.commit()
    assert [entry.seq for entry in store.events_about(world.event(1))] == [1, 2]


def test_events_about_an_event_are_its_attempts_and_its_answers(store: Store, world: Any) -> None:
    store.begin()
    world.append(store, world.entry(1, 1, body=b"1"), world.entry(2, 2, body=b"2"))
    world.append(store, world.entry(3, 3, corr=1, body=b"3"), world.entry(4, 1, attempt=2, body=b"4"))
    store.commit()
    assert store.events_about(world.event(1)) == [
        world.entry(1, 1, body=b"1"),
        world.entry(3, 3, corr=1, body=b"3"),
        world.entry(4, 1, attempt=2, body=b"4"),
    ]
    assert store.events_about(world.event(2)) == [world.entry(2, 2, body=b"2")]
    assert store.events_about(world.event(9)) == []


# --- the sender's side


def put_deliveries(store: Store, *rows: Any) -> None:
    store.begin()
    for row in rows:
        store.put_delivery(row)
    store.commit()


def test_due_rows_come_oldest_first(store: Store, world: Any) -> None:
    late, soon, never = (
        world.delivery(1, next_at_ms=30),
        world.delivery(2, next_at_ms=10),
        world.delivery(3, next_at_ms=None),
    )
    put_deliveries(store, late, soon, never, world.delivery(4, next_at_ms=31))
    assert store.due_deliveries(30, 10) == [soon, late]
    assert store.due_deliveries(30, 1) == [soon]
    assert store.due_deliveries(9, 10) == []
    assert store.next_delivery_ms() == 10
    put_deliveries(store, msgspec.structs.replace(soon, next_at_ms=None))
    assert store.next_delivery_ms() == 30


def test_what_comes_due_is_found_whatever_was_asked_and_taken_back_before(store: Store, world: Any) -> None:
    assert store.quiet_until_ms() is None
    first = world.delivery(1, next_at_ms=30)
    put_deliveries(store, first)
    assert store.quiet_until_ms() == 30
    assert store.due_deliveries(29, 10) == []
    store.begin()
    store.put_delivery(msgspec.structs.replace(first, next_at_ms=None))
    assert store.due_deliveries(30, 10) == []
    assert store.quiet_until_ms() is None
    store.rollback()
    assert store.quiet_until_ms() == 30
    assert store.due_deliveries(30, 10) == [first]
    assert store.due_deliveries(30, 10) == [first]  # nobody has done anything about it
    put_deliveries(store, msgspec.structs.replace(first, next_at_ms=50), world.delivery(2, next_at_ms=40))
    until_ms = store.quiet_until_ms()
    assert until_ms is not None
    assert until_ms <= 40
    assert store.due_deliveries(40, 10) == [world.delivery(2, next_at_ms=40)]


def test_unanswered_rows_are_emitted_ones_to_that_node_up_to_there(store: Store, world: Any) -> None:
    rows = [
        world.delivery(1, seq=9, emitted_at_ms=100),
        world.delivery(2, seq=5, emitted_at_ms=100),
        world.delivery(3, seq=6, emitted_at_ms=101),
        world.delivery(4, seq=10, emitted_at_ms=100),
        world.delivery(5, seq=7, emitted_at_ms=100, node=LAB),
        world.delivery(6, seq=7, emitted_at_ms=100, node=None),
        world.delivery(7, seq=7, emitted_at_ms=100, state=DeliveryState.ACCEPTED),
    ]
    put_deliveries(store, *rows)
    assert store.unanswered(MBP, Seq(9), 100, 10) == [rows[1], rows[0]]
    assert store.unanswered(MBP, Seq(9), 100, 1) == [rows[1]]
    put_deliveries(store, msgspec.structs.replace(rows[1], state=DeliveryState.RETRY_PENDING))
    assert store.unanswered(MBP, Seq(9), 100, 10) == [rows[0]]


def test_deliveries_in_a_state_are_read_on_from_a_place(store: Store, world: Any) -> None:
    store.begin()
    for number in (3, 1, 2, 4):
        store.put_delivery(world.delivery(number, state=DeliveryState.ACCEPTED))
        store.put_delivery(world.delivery(number, state=DeliveryState.SUPERSEDED, node=LAB))
    store.put_delivery(world.delivery(2, state=DeliveryState.ACCEPTED, node=None))
    store.commit()
    place, found = (0, EventId(f"evt_{0:032x}"), None), []
    while rows := store.deliveries_in(DeliveryState.ACCEPTED, place, 2):
        place = (rows[-1].created_at_ms, rows[-1].event_id, rows[-1].node)
        found += rows
    assert found == sorted(
        (row for row in store.deliveries([DeliveryState.ACCEPTED], ALL)),
        key=lambda row: (row.created_at_ms, row.event_id, row.node or ""),
    )
    assert len(found) == 5


def test_deliveries_are_listed_newest_first_and_counted(store: Store, world: Any) -> None:
    dead = world.delivery(
        1, state=DeliveryState.DEAD_LETTER, outcome=Outcome.REFUSED, error="no", dead_at_ms=5
    )
    rows = [dead, world.delivery(2), world.delivery(3, created_at_ms=1), world.delivery(4, node=None)]
    put_deliveries(store, *rows)
    assert store.deliveries(["emitted"], 10) == [rows[3], rows[1], rows[2]]
    assert store.deliveries(["emitted", "dead_letter"], 2) == [rows[3], rows[1]]
    assert store.deliveries([DeliveryState.DEAD_LETTER], 10) == [dead]
    assert store.deliveries([], 10) == []
    assert store.count_deliveries() == {"emitted": 3, "dead_letter": 1}


def test_many_rows_of_one_transaction_are_all_kept(store: Store, world: Any) -> None:
    put_deliveries(store, *(world.delivery(number) for number in range(1, 342)))
    assert store.count_deliveries() == {"emitted": 341}
    assert len(store.due_deliveries(1 << 40, ALL)) == 341


# --- the receiver's side


def put_received(store: Store, *rows: Any) -> None:
    store.begin()
    for row in rows:
        store.put_received(row)
    store.commit()


def test_turns_stay_in_order_of_acceptance_whatever_the_clock_says(store: Store, world: Any) -> None:
    first = world.received(9, accepted_at_ms=900, state=TurnState.HELD)
    second = world.received(1, accepted_at_ms=100)
    put_received(store, first, second)
    assert store.open_turns() == [first, second]
    first = msgspec.structs.replace(
        first, state=TurnState.LEASED, lease_id="l", session="s", delivery_count=1
    )
    third = world.received(5, to_agent=BOB)
    put_received(store, third, first)
    assert store.open_turns() == [first, second, third]
    put_received(store, msgspec.structs.replace(first, state=TurnState.DONE))
    assert store.open_turns() == [second, third]
    put_received(store, first)
    assert store.open_turns() == [first, second, third]


def test_two_nodes_may_send_an_event_under_one_id(store: Store, world: Any) -> None:
    one, two = world.received(1), world.received(1, source=LAB, to_agent=BOB)
    put_received(store, two, one, world.received(2))
    assert store.ledger(world.event(1)) == [two, one]
    assert (store.received(MBP, world.event(1), ANN), store.received(LAB, world.event(1), BOB)) == (one, two)
    done = msgspec.structs.replace(one, state=TurnState.DONE)
    put_received(store, done)
    assert store.ledger(world.event(1)) == [two, done]
    assert store.open_turns() == [two, world.received(2)]


def test_an_inbox_holds_the_newest_rows_of_one_agent(store: Store, world: Any) -> None:
    rows = [world.received(number) for number in (3, 1, 2)]
    done = world.received(7, state=TurnState.DONE)
    put_received(store, rows[0], done, rows[1], world.received(8, to_agent=BOB), rows[2])
    assert store.inbox(ANN, done=False, limit=10) == rows
    assert store.inbox(ANN, done=False, limit=2) == rows[1:]
    assert store.inbox(ANN, done=True, limit=10) == [rows[0], done, *rows[1:]]
    assert store.inbox_after(ANN, rows[0].event_id, done=True, limit=10) == [done, *rows[1:]]
    assert store.inbox_after(ANN, rows[0].event_id, done=True, limit=1) == [done]
    assert store.inbox_after(ANN, done.event_id, done=False, limit=10) == rows[1:]
    assert store.inbox_after(ANN, rows[-1].event_id, done=True, limit=10) == []
    assert store.inbox_after(BOB, rows[0].event_id, done=True, limit=10) is None
    assert store.inbox(ANN, done=True, limit=0) == []
    assert store.inbox(AgentId("nobody"), done=True, limit=10) == []
    assert store.count_received() == {"queued": 4, "done": 1}


def test_cursors_move(store: Store) -> None:
    one, two = Head(EPOCH, Seq(1), b"1" * 32), Head(EPOCH, Seq(2), b"2" * 32)
    store.begin()
    store.put_cursor(MBP, one)
    store.put_cursor(MBP, two)
    store.put_cursor(LAB, one)
    assert store.cursor(MBP) == two
    store.commit()
    assert list(store.cursors().items()) == [(LAB, one), (MBP, two)]
    assert store.cursor(MBP) == two


# --- the rest


def test_incidents_open_and_close(store: Store) -> None:
    late = Incident(kind="late", subject="b", opened_at_ms=2, detail="é")
    lost = Incident(kind="lost", subject="a", opened_at_ms=1)
    store.begin()
    store.put_incident(late)
    store.put_incident(lost)
    store.commit()
    assert store.incidents(open_only=True) == [lost, late]
    closed = msgspec.structs.replace(lost, closed_at_ms=9)
    store.begin()
    store.put_incident(closed)
    assert store.incident("lost", "a") == closed
    store.commit()
    assert store.incidents(open_only=True) == [late]
    assert store.incidents(open_only=False) == [closed, late]


def test_quarantined_entries_are_kept_in_order_of_arrival(store: Store) -> None:
    store.begin()
    store.quarantine(unreadable(1))
    store.quarantine(unreadable(1, LAB))
    store.quarantine(unreadable(1, reason="again"))
    store.commit()
    assert store.quarantined() == [unreadable(1, reason="again"), unreadable(1, LAB)]


def test_agents_and_keys_are_kept(store: Store, world: Any) -> None:
    ann = LocalAgent(name=ANN, owner_epoch=1, token_hash=b"\x00\xff", created_at_ms=1)
    bob = LocalAgent(name=BOB, owner_epoch=1, token_hash=b"", created_at_ms=1)
    store.begin()
    store.put_agent(bob)
    store.put_agent(ann)
    store.remember(remembered(world, 4))
    assert store.agents() == [ann, bob]
    assert store.remembered(ANN, "k") == remembered(world, 4)
    store.commit()
    assert store.remembered(ANN, "k") == remembered(world, 4)
    assert store.remembered(BOB, "k") is None


def test_an_agent_that_was_dropped_is_gone_unless_rolled_back(store: Store) -> None:
    ann = LocalAgent(name=ANN, owner_epoch=1, token_hash=b"t", created_at_ms=1)
    with pytest.raises(StorageFailed):
        store.drop_agent(ANN)
    store.begin()
    store.put_agent(ann)
    store.commit()
    store.begin()
    store.drop_agent(ANN)
    store.drop_agent(BOB)
    assert store.agents() == []
    store.rollback()
    assert store.agents() == [ann]
    store.begin()
    store.put_agent(msgspec.structs.replace(ann, owner_epoch=2))
    store.drop_agent(ANN)
    store.commit()
    assert store.agents() == []


# --- both at once

numbers = st.integers(1, 6)
times = st.integers(1, 5)
delivery_fields = st.fixed_dictionaries(
    {
        "state": st.sampled_from(DeliveryState),
        "seq": times,
        "created_at_ms": times,
        "emitted_at_ms": times,
        "next_at_ms": st.none() | times,
        "node": st.sampled_from([MBP, LAB, None]),
    }
)
received_fields = st.fixed_dictionaries(
    {
        "state": st.sampled_from([*TurnState, TurnState.QUEUED]),
        "accepted_at_ms": times,
        "to_agent": st.sampled_from([ANN, BOB]),
        "source": st.sampled_from([MBP, MBP, LAB]),
    }
)


class Twins(RuleBasedStateMachine):
    """Whatever is done to both stores, they answer alike, in the same order."""

    world: Any

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "journal.db"
        self.journal = Journal.create(self.path, self.world.identity, wal_bytes=0)
        self.memory = MemoryStore(self.world.identity)
        self.open = False

    @property
    def stores(self) -> tuple[Store, Store]:
        return self.journal, self.memory

    def writing(self) -> tuple[Store, Store]:
        """Both, in a transaction."""
        if not self.open:
            for store in self.stores:
                store.begin()
        self.open = True
        return self.stores

    @rule(how=st.sampled_from(["commit", "commit", "roll back", "restart"]))
    def end(self, how: str) -> None:
        for store in self.writing():
            store.commit() if how == "commit" else store.rollback()
        if how == "restart":
            self.journal.close()
            self.journal = Journal.open(self.path, wal_bytes=0)
        self.open = False

    @rule(events=st.lists(st.tuples(numbers, st.integers(1, 2), st.none() | numbers), min_size=1, max_size=3))
    def append(self, events: list[tuple[int, int, int | None]]) -> None:
        first = self.memory.head().seq + 1
        batch = [
            self.world.entry(seq, event, attempt=attempt, corr=corr)
            for seq, (event, attempt, corr) in enumerate(events, first)
        ]
        refused = 0
        for store in self.writing():
            try:
                self.world.append(store, *batch)
            except StorageFailed:
                refused += 1
                store.rollback()
        assert refused in (0, 2)
        self.open = not refused

    @rule(rows=st.lists(st.tuples(numbers, delivery_fields), min_size=1, max_size=4))
    def deliver(self, rows: list[tuple[int, dict[str, Any]]]) -> None:
        for store in self.writing():
            for number, fields in rows:
                store.put_delivery(self.world.delivery(number, **fields))

    @rule(rows=st.lists(st.tuples(numbers, received_fields), min_size=1, max_size=4))
    def receive(self, rows: list[tuple[int, dict[str, Any]]]) -> None:
        for store in self.writing():
            for number, fields in rows:
                store.put_received(self.world.received(number, **fields))
                store.put_cursor(MBP, Head(EPOCH, Seq(number), b"h"))

    @rule(number=numbers)
    def write_the_rest(self, number: int) -> None:
        for store in self.writing():
            store.put_incident(Incident(kind="late", subject=str(number), opened_at_ms=number % 3))
            store.put_agent(
                LocalAgent(name=AgentId(f"a{number}"), owner_epoch=1, token_hash=b"", created_at_ms=1)
            )
            store.drop_agent(AgentId(f"a{number // 2}"))
            store.quarantine(unreadable(number % 4))
            store.remember(remembered(self.world, number))

    @rule(batches=st.integers(1, 4), upto=numbers, source=st.sampled_from([MBP, LAB]))
    def forget(self, batches: int, upto: int, source: NodeId) -> None:
        self.end("commit")
        for store in self.writing():
            oldest = store.oldest_batches(batches)
            if oldest:
                store.move_floor(oldest[-1].epoch, oldest[-1].seq)
            store.prune_ledger(source, EPOCH, Seq(upto), 3)
            store.prune_incidents(upto, 2, 2, 3)

    @rule(after=st.integers(-1, 12), entries_max=st.integers(0, 6), bytes_max=st.integers(0, 900))
    def read(self, after: int, entries_max: int, bytes_max: int) -> None:
        answers: list[Any] = []
        for store in self.stores:
            try:
                answers.append(store.read(Head(EPOCH, Seq(after), b""), entries_max, bytes_max))
            except CursorError as error:
                answers.append((type(error), str(error)))
        assert answers[0] == answers[1]

    @rule(upto=times, limit=st.integers(0, 4))
    def ask(self, upto: int, limit: int) -> None:
        one, two = (
            (
                store.due_deliveries(upto, limit),
                store.unanswered(MBP, Seq(upto), upto, limit),
                store.deliveries(["emitted", "accepted"], limit),
                store.inbox(ANN, done=True, limit=limit),
                store.inbox(BOB, done=False, limit=limit),
            )
            for store in self.stores
        )
        assert one == two

    @invariant()
    def alike(self) -> None:
        if hasattr(self, "journal"):
            assert everything(self.journal, self.world) == everything(self.memory, self.world)

    def teardown(self) -> None:
        if hasattr(self, "journal"):
            self.journal.close()
            shutil.rmtree(self.folder)


def test_both_stores_answer_alike_whatever_is_done_to_them(world: Any) -> None:
    Twins.world = world
    run_state_machine_as_test(
        Twins,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[*HealthCheck]
        ),
    )


def test_deliveries_beyond_a_place_are_looked_through_by_event(store: Store, world: Any) -> None:
    store.begin()
    for number in (3, 1, 2, 4, 5):
        store.put_delivery(world.delivery(number, seq=10 - number))
        store.put_delivery(world.delivery(number, node=LAB))
    store.put_delivery(world.delivery(6, node=None))
    store.commit()
    found, place, ticks = [], (EventId(f"evt_{0:032x}"), None), 0
    while place is not None:
        rows, place = store.deliveries_beyond(MBP, Seq(6), place, 3)
        assert len(rows) <= 3
        found, ticks = found + rows, ticks + 1
    assert [row.event_id for row in found] == [world.event(number) for number in (1, 2, 3)]
    assert ticks == 4


def test_what_is_on_its_way_is_read_on_by_node_and_place(store: Store, world: Any) -> None:
    store.begin()
    for number in (3, 1, 2):
        store.put_delivery(world.delivery(number, seq=10 - number))
        store.put_delivery(world.delivery(number, seq=number, node=LAB))
    store.put_delivery(world.delivery(9, state=DeliveryState.ACCEPTED))
    store.commit()
    place, found = (NodeId(""), Seq(-1), EventId(f"evt_{0:032x}")), []
    while rows := store.emitted_after(place, 2):
        place = (rows[-1].node, rows[-1].seq, rows[-1].event_id)
        found += rows
    assert [(row.node, row.seq) for row in found[:3]] == [(LAB, 1), (LAB, 2), (LAB, 3)]
    assert [(row.node, row.seq) for row in found[3:]] == [(MBP, 7), (MBP, 8), (MBP, 9)]


def test_all_of_an_epoch_is_read_on_whether_it_was_shown_or_not(store: Store, world: Any) -> None:
    store.begin()
    world.append(store, world.entry(1, 1), world.entry(2, 2))
    store.hold()
    world.append(store, world.entry(3, 1, attempt=2))
    before = store.identity().epoch
    store.commit()
    store.begin()
    after = make_epoch(9, b"\x01" * 6)
    store.begin_epoch(after)
    store.commit()
    assert [entry.seq for entry in store.entries_after(before, Seq(1), 9)] == [2, 3]
    assert [entry.seq for entry in store.entries_after(before, Seq(0), 1)] == [1]
    assert store.entries_after(after, Seq(0), 9) == store.entries_after(before, Seq(3), 9) == []
    assert store.position_of(world.event(1), 1) == (before, 1)
    assert store.position_of(world.event(1), 2) == (before, 3)
    assert store.position_of(world.event(1), 3) is None


def test_broadcasts_are_read_on_from_a_place(store: Store, world: Any) -> None:
    store.begin()
    for number in (3, 1, 2):
        for agent in ("bob", "ann"):
            row = world.received(number, to_agent=AgentId(agent), expires_at_ms=9_000 - number % 2)
            store.put_received(msgspec.structs.replace(row, share=Share.EVERYONE))
    store.put_received(world.received(4))
    store.commit()
    source = world.received(1).source
    rows = store.broadcasts((0, world.event(0), source), ALL)
    assert [(row.event_id, row.to_agent) for row in rows] == [
        (world.event(number), agent) for number in (1, 3, 2) for agent in ("bob", "ann")
    ]
    assert store.broadcasts((8_999, world.event(1), source), 3) == rows[2:5]
    assert store.broadcasts((9_000, world.event(2), source), 3) == []
