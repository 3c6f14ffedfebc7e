"""What is kept of the own outbox, for whom, and what the others make of it."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.effects import Pruned
from gateway.engine.inputs import FloorRead, Prune, StreamKnown
from gateway.engine.limits import RETAIN_BATCHES_MAX
from gateway.engine.policy import Policy, Retention
from outbox.chain import Checkpoint
from outbox.envelope import Ack, Signal, decode_event, decode_payload
from outbox.ids import NodeId, Seq
from outbox.records import Reader

DAY_MS = 24 * 3_600_000
LOOK_MS = 60_000
KEPT = 3


@pytest.fixture
def small(make_world: Any) -> Any:
    """``ann`` at ``a`` and ``bob`` at ``b``, who are members; each outbox keeps three entries."""
    rule = Retention(age_ms=10 * DAY_MS, entries_max=KEPT, reader_lease_ms=3 * LOOK_MS)
    world = make_world("a", "b", policy=Policy(retention=rule))
    world.live("a", "ann")
    world.live("b", "bob")
    world.listen("b", "bob", credit=1_000)
    return world


def ended(world: Any, count: int) -> list[str]:
    """So many messages, each with its end, as everybody knows."""
    events = [world.sent("a", "ann", "bob") for _ in range(count)]
    world.meet()
    for event in events:
        world.settle("b", "bob", event, lease_id=world.row("b", event).lease_id)
    world.meet()
    world.rumour()
    return events


def look(world: Any, name: str, *, force: bool = False) -> Pruned:
    """Let it be time, until nothing is left to do."""
    world.advance(LOOK_MS)
    for req in range(1_000, 1_020):
        answer = world.ask(name, Prune(req, force=force))
        assert isinstance(answer, Pruned)
        if not answer.more:
            return answer
    raise AssertionError("it never ends")


def floor(world: Any, name: str) -> Seq:
    found: Checkpoint | None = world.store(name).floor()
    return Seq(0) if found is None else found.seq


def away(world: Any, name: str) -> None:
    world.absent.add(name)
    world.see()


def open_incidents(world: Any, name: str, kind: str) -> list[str]:
    return [subject for found, subject in world.incidents(name) if found == kind]


# --- what goes


def test_what_has_ended_and_was_read_goes_when_there_is_too_much(small: Any) -> None:
    events = ended(small, 5)
    head = small.store("a").head()
    look(small, "a")
    assert floor(small, "a") == head.seq - KEPT
    assert small.store("a").obligations(events[0]) == []
    assert small.store("a").head().seq > head.seq, "the outbox says so itself"
    small.meet()
    assert small.store("b").cursor("a") == small.store("a").head()
    small.rumour()
    look(small, "a")
    assert small.store("a").size().entries <= KEPT + 1


def test_the_outbox_says_where_it_begins(small: Any) -> None:
    ended(small, 5)
    look(small, "a")
    at = small.store("a").floor()
    last = small.store("a").read(at.head, 500, 1 << 20)
    said = decode_payload(_event(last.entries[-1]), Signal)
    assert (said.signal, said.detail) == ("retention_floor", f"{at.epoch}/{at.seq}/{at.hash.hex()}")


def _event(entry: Any) -> Any:

    return decode_event(entry.body)


def test_what_is_too_old_goes_however_little_it_is(make_world: Any) -> None:
    world = make_world("a", policy=Policy(retention=Retention(age_ms=10 * DAY_MS)))
    world.live("a", "ann", "amy")
    event = world.sent("a", "ann", "amy")
    world.settle("a", "amy", event)
    head = world.store("a").head()
    look(world, "a")
    assert floor(world, "a") == 0
    world.advance(11 * DAY_MS)
    look(world, "a")
    assert floor(world, "a") == head.seq


def test_too_many_bytes_go(make_world: Any) -> None:
    world = make_world("a", policy=Policy(retention=Retention(bytes_max=10_000)))
    world.live("a", "ann", "amy")
    for _ in range(10):
        event = world.sent("a", "ann", "amy", b'"' + b"x" * 4_000 + b'"')
        world.settle("a", "amy", event)
    look(world, "a")
    assert world.store("a").size().bytes <= 10_000


def test_a_look_forgets_a_bounded_part_and_the_rest_soon(small: Any) -> None:
    for _ in range(RETAIN_BATCHES_MAX + 100):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    for _ in range(4):
        small.tick("a")
    small.meet()
    small.rumour()
    assert small.ask("a", Prune(7, force=False)).more
    assert floor(small, "a") == RETAIN_BATCHES_MAX
    look(small, "a")
    assert floor(small, "a") > RETAIN_BATCHES_MAX


# --- what stays


def test_nothing_goes_that_a_reader_has_not_read(small: Any) -> None:
    ended(small, 2)
    read = small.store("b").cursor("a").seq
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    look(small, "a")
    assert floor(small, "a") == read
    assert small.store("a").readers()[0] == Reader(
        node=NodeId("b"), epoch=small.store("a").head().epoch, seq=read
    )


def test_an_open_delivery_holds_the_floor(small: Any) -> None:
    held = small.sent("a", "ann", "bob")
    ended(small, 5)
    first = small.store("a").first_position(held)
    look(small, "a")
    assert floor(small, "a") < first[1]
    small.settle("b", "bob", held, lease_id=small.row("b", held).lease_id)
    small.meet()
    small.rumour()
    look(small, "a")
    assert floor(small, "a") >= first[1]


def test_what_is_held_back_is_not_forgotten(small: Any) -> None:
    small.store("a").begin()
    small.store("a").hold()
    small.store("a").commit()
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    look(small, "a", force=True)
    assert floor(small, "a") == 0


def test_a_dead_reader_holds_nothing_and_is_told_of_once(small: Any) -> None:
    ended(small, 2)
    away(small, "b")
    read = small.store("b").cursor("a").seq
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    for minute in range(1, 7):
        look(small, "a")
        assert (floor(small, "a") > read) is (minute > 3)
        assert open_incidents(small, "a", "dead_reader") == (["b"] if minute > 3 else [])
    small.absent.discard("b")
    small.see()
    look(small, "a")
    assert open_incidents(small, "a", "dead_reader") == []


def test_no_jump_of_the_wall_clock_kills_a_reader(small: Any) -> None:
    ended(small, 2)
    away(small, "b")
    look(small, "a")
    small.wall_ms += 365 * DAY_MS
    look(small, "a")
    small.wall_ms -= 700 * DAY_MS
    small.tick("a")
    assert open_incidents(small, "a", "dead_reader") == []


def test_a_node_that_has_left_holds_nothing(small: Any) -> None:
    ended(small, 2)
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    look(small, "a")
    before = floor(small, "a")
    small.left.add("b")
    small.see()
    look(small, "a")
    assert floor(small, "a") > before
    assert small.store("a").readers() == []


def test_force_passes_readers_and_no_open_delivery(small: Any) -> None:
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    small.tick("a")
    held = small.sent("a", "ann", "bob")
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    small.tick("a")
    answer = look(small, "a", force=True)
    assert answer.floor == floor(small, "a") == small.store("a").first_position(held)[1] - 1


# --- what the others make of it


def test_who_begins_at_a_floor_goes_on_from_it(small: Any) -> None:
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    small.tick("a")
    look(small, "a", force=True)
    small.tick("b", FloorRead("a", small.store("a").floor()))
    assert open_incidents(small, "b", "history_missed") == []
    small.meet()
    assert small.store("b").cursor("a") == small.store("a").head()


def test_who_missed_something_is_told(small: Any) -> None:
    ended(small, 1)
    behind = small.store("b").cursor("a")
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    small.tick("a")
    look(small, "a", force=True)
    at = small.store("a").floor()
    assert behind.seq < at.seq
    for _ in range(2):
        small.tick("b", FloorRead("a", at))
        assert small.store("b").cursor("a") == at.head
    assert open_incidents(small, "b", "history_missed") == ["a"]
    small.meet()
    small.tick("b", FloorRead("a", at))
    assert small.store("b").cursor("a") == small.store("a").head(), "a reader does not go back"


def test_an_attempt_that_its_sender_has_forgotten_is_refused(small: Any, stranger: Any) -> None:
    small.own("eve", "x")
    small.see()
    small.tick("b", stranger.says(stranger.event()))
    small.floors["x"] = stranger.head
    small.see()
    late, young = stranger.event(), stranger.event()
    old = replace(late.trace, attempt=2, first_position=(stranger.head.epoch, stranger.head.seq))
    small.tick("b", stranger.says(replace(late, trace=old), young))
    assert small.store("b").ledger(late.event_id) == []
    assert small.acks("b", late.event_id) == ["refused: below_floor"]
    assert small.acks("b", young.event_id) == ["accepted"]


@pytest.mark.parametrize("begun", [False, True])
def test_the_room_tells_of_a_floor_too_and_who_has_begun_waits_for_its_links(small: Any, begun: bool) -> None:
    if begun:
        ended(small, 1)
    before = small.store("b").cursor("a")
    for _ in range(6):
        small.sent("a", "ann", "bob", expires_in_ms=1_000)
    small.advance(2_000)
    small.tick("a")
    look(small, "a", force=True)
    small.floors["a"] = small.store("a").floor().head
    small.see()
    assert small.store("b").cursor("a") == (before if begun else small.store("a").floor().head)
    assert open_incidents(small, "b", "history_missed") == []


def test_the_ledger_follows_the_floors_of_others(small: Any) -> None:
    events = ended(small, 4)
    small.floors["a"] = small.store("a").head_at(*small.store("a").first_position(events[2]))
    small.see()
    look(small, "b")
    assert [len(small.store("b").ledger(event)) for event in events] == [0, 0, 0, 1]


def test_what_was_forgotten_is_said_anew_to_who_asks_again(small: Any, stranger: Any) -> None:
    small.own("eve", "x")
    small.see()
    event = stranger.event()
    small.tick("b", stranger.says(event))
    small.settle("b", "bob", event.event_id, lease_id=small.row("b", event.event_id).lease_id)
    ended(small, 5)
    look(small, "b", force=True)
    assert small.store("b").events_about(event.event_id) == []
    before = small.store("b").head()
    small.tick("b", stranger.says(replace(event, trace=replace(event.trace, attempt=2))))
    said = [_event(entry) for entry in small.store("b").read(before, 500, 1 << 20).entries]
    assert [decode_payload(ack, Ack).status for ack in said if ack.corr_id == event.event_id] == [
        "accepted",
        "processed",
    ]


def test_a_head_from_below_the_floor_proves_no_lost_history(small: Any) -> None:
    ended(small, 1)
    before = small.store("a").head()
    shown = small.store("a").checkpoint_from(before.epoch, before.seq)
    ended(small, 5)
    look(small, "a")
    assert floor(small, "a") > before.seq
    small.tick("a", StreamKnown("b", shown))
    small.rumour()
    small.tick("a")
    assert small.store("a").identity().epoch == before.epoch
    assert open_incidents(small, "a", "stream_epoch") == []
