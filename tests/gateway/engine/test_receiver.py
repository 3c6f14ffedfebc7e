"""What comes from other outboxes: pages, strangers, and everything that is not quite an event."""

from typing import Any

import msgspec
import pytest

from gateway.engine.effects import CursorMoved, Handed, StreamBroken
from gateway.engine.inputs import PageRead, Send
from outbox.chain import Page
from outbox.envelope import (
    Ack,
    DeadLetter,
    Event,
    Signal,
    decode_event,
    decode_header,
    decode_payload,
    encode_payload,
    header_of,
)
from outbox.kinds import Kind
from outbox.limits import EXPIRES_IN_MS_DEFAULT
from outbox.timestamps import LATEST_MS, parse_rfc3339, rfc3339


def notice(stranger: Any, kind: Kind, payload: Any, corr: str | None = None) -> Event:
    return stranger.event(
        kind=kind, corr_id=corr, source_agent_id=None, to_agent_id=None, payload=encode_payload(payload)
    )


# --- pages


def test_a_page_is_handled_once_however_often_it_comes(either: Any) -> None:
    world = either
    event = world.sent("a", "ann", "bob")
    page = PageRead("a", world.page("b", "a"))
    assert world.tick("b", page, page)
    head = world.store("b").head()
    assert world.tick("b", page) == []
    world.restart("b")
    world.tick("b")
    assert world.tick("b", page) == []
    assert world.store("b").head() == head
    assert world.acks("b", event) == ["accepted"]


def test_of_an_overlapping_page_the_new_part_is_handled(world: Any, only: Any) -> None:
    first = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    second = world.sent("a", "ann", "bob")
    third = world.sent("a", "ann", "bob")
    whole = world.store("a").read(msgspec.structs.replace(world.store("a").head(), seq=0), 500, 1 << 20)
    assert len(whole.entries) == 3
    (moved,) = only(world.tick("b", PageRead("a", whole)), CursorMoved)
    assert moved == CursorMoved("a", world.store("a").head())
    assert [world.acks("b", event) for event in (first, second, third)] == [["accepted"]] * 3


def test_a_hole_breaks_the_stream_and_nothing_of_the_page_is_kept(world: Any) -> None:
    world.sent("a", "ann", "bob")
    early = world.page("b", "a")
    world.pull("b", "a")
    lost = world.sent("a", "ann", "bob")
    first = world.page("b", "a")
    world.tick("a", Send(req=1, agent="ann", to="bob", payload=msgspec.Raw(b"1")))
    later = world.store("a").read(first.checkpoint.head, 500, 1 << 20)
    (broken,) = world.tick("b", PageRead("a", later))
    assert isinstance(broken, StreamBroken)
    assert (broken.node, broken.code) == ("a", "broken_chain")
    assert world.store("b").cursor("a") == early.checkpoint.head
    assert world.store("b").ledger(lost) == []
    assert world.pull("b", "a")
    assert world.store("b").count_received() == {"queued": 3}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda page: msgspec.structs.replace(page, epoch="000002-0123456789ab"),
        lambda page: msgspec.structs.replace(page, entries=()),
        lambda page: msgspec.structs.replace(
            page, entries=(msgspec.structs.replace(page.entries[0], body=b"{}"),)
        ),
    ],
    ids=["another-epoch", "no-entries", "another-body"],
)
def test_a_page_that_does_not_hash_to_its_checkpoint_breaks_the_stream(world: Any, spoil: Any) -> None:
    world.sent("a", "ann", "bob")
    page: Page = world.page("b", "a")
    (broken,) = world.tick("b", PageRead("a", spoil(page)))
    assert isinstance(broken, StreamBroken)
    assert world.store("b").cursor("a") is None


def test_events_for_others_are_read_over(open_door: Any, stranger: Any) -> None:
    open_door.tick("b", stranger.says(stranger.event(), to=("a", "banana")))
    open_door.tick("b", stranger.says(stranger.event(), to="banana"))
    assert open_door.store("b").count_received() == {}
    assert open_door.store("b").cursor("x").seq == 2
    assert open_door.said("b") == []


# --- what is no event, or lies


@pytest.mark.parametrize(
    "spoil",
    [
        lambda event: (header_of(event, ("b",), 2), b"{}"),
        lambda event: (b"\xff", msgspec.json.encode(event)),
        lambda event: (header_of(event, ("b",), 1), msgspec.json.encode(event)),
        lambda event: (
            header_of(event, ("b",), len(msgspec.json.encode(event))),
            msgspec.json.encode(msgspec.structs.replace(event, event_id="evt_" + "9" * 32)),
        ),
    ],
    ids=["no-event", "no-header", "another-size", "another-id"],
)
def test_a_spoilt_entry_is_quarantined_and_the_cursor_moves_on(
    open_door: Any, stranger: Any, spoil: Any
) -> None:
    bad, good = stranger.event(), stranger.event()
    body = msgspec.json.encode(good)
    header, spoilt = spoil(bad)
    open_door.tick("b", stranger.writes((header, spoilt), (header_of(good, ("b",), len(body)), body)))
    (kept,) = open_door.store("b").quarantined()
    assert (kept.source, kept.seq, kept.body) == ("x", 1, spoilt)
    assert open_door.incidents("b") == [("quarantined", f"x/{kept.epoch}/1")]
    assert open_door.store("b").cursor("x").seq == 2
    assert open_door.acks("b", good.event_id) == ["accepted"]


@pytest.mark.parametrize(
    "fields",
    [
        {"source_node_id": "a"},
        {"source_agent_id": None},
        {"to_agents": ("bob", "ben")},
        {"kind": "reply"},
        {"expires_at": "soon"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_event_that_breaks_a_rule_is_quarantined(
    open_door: Any, stranger: Any, fields: dict[str, Any]
) -> None:
    open_door.tick("b", stranger.says(stranger.event(**fields)))
    assert len(open_door.store("b").quarantined()) == 1
    assert open_door.store("b").count_received() == {}
    assert open_door.said("b") == []


@pytest.mark.parametrize(
    ("kind", "payload", "corr"),
    [
        (Kind.ACK, Ack(ref="evt_zz", status="processed"), "evt_" + "5" * 32),
        (Kind.DEAD_LETTER, DeadLetter(ref="'; --", reason="x", attempts=1), "evt_" + "5" * 32),
        (Kind.SIGNAL, Signal(signal="status_request", ref="evt_zz"), None),
    ],
    ids=["ack", "dead_letter", "signal"],
)
def test_ids_from_strangers_never_reach_the_store_unchecked(
    either: Any, stranger: Any, kind: Kind, payload: Any, corr: str | None
) -> None:
    either.tick("b", stranger.says(notice(stranger, kind, payload, corr)))
    assert len(either.store("b").quarantined()) == 1
    assert either.store("b").cursor("x").seq == 1


def test_a_payload_of_the_wrong_shape_is_quarantined(open_door: Any, stranger: Any) -> None:
    for kind in (Kind.ACK, Kind.DEAD_LETTER, Kind.SIGNAL):
        corr = "evt_" + "5" * 32
        open_door.tick("b", stranger.says(stranger.event(kind=kind, corr_id=corr)))
    assert len(open_door.store("b").quarantined()) == 3


def test_kinds_of_a_newer_version_are_carried_not_engaged(open_door: Any, stranger: Any) -> None:
    open_door.tick("b", stranger.says(stranger.event(kind="task_create"), stranger.event()))
    assert open_door.store("b").quarantined() == []
    assert open_door.store("b").count_received() == {"queued": 1}


@pytest.mark.parametrize("first", ["thief", "honest"])
def test_an_event_id_that_another_node_used_keeps_nothing_from_arriving(
    open_door: Any, stranger: Any, first: str
) -> None:
    event = open_door.sent("a", "ann", "bob")
    theft = stranger.says(stranger.event(event_id=event))
    if first == "thief":
        open_door.tick("b", theft)
    open_door.pull("b", "a")
    if first == "honest":
        open_door.tick("b", theft)
    sources = [row.source for row in open_door.store("b").ledger(event)]
    assert sources == (["x", "a"] if first == "thief" else ["a", "x"])
    assert open_door.store("b").quarantined() == []
    hands = open_door.listen("b", "bob")
    assert [decode_event(hand.body).source_node_id for hand in hands] == sources
    for hand in hands:
        assert open_door.settle("b", "bob", event, lease_id=hand.lease_id).duplicate is False
    open_door.pull("a", "b")
    assert open_door.delivery("a", event).state == "processed"


def test_what_is_said_again_goes_to_the_one_who_asks(open_door: Any, stranger: Any) -> None:
    event = open_door.sent("a", "ann", "bob")
    open_door.pull("b", "a")
    theft = stranger.event(event_id=event)
    open_door.tick("b", stranger.says(theft))
    open_door.settle("b", "bob", event, lease_id=open_door.listen("b", "bob")[0].lease_id)
    before = open_door.store("b").head().seq
    open_door.tick("b", stranger.says(theft))
    again = [entry for entry in open_door.store("b").events_about(event) if entry.seq > before]
    assert [decode_header(entry.header).to for entry in again] == [("x",)]
    assert decode_payload(decode_event(again[0].body), Ack).status == "accepted"


def test_a_dead_letter_cancels_what_its_own_node_sent(open_door: Any, stranger: Any) -> None:
    event = open_door.sent("a", "ann", "bob")
    open_door.pull("b", "a")
    open_door.tick("b", stranger.says(stranger.event(event_id=event)))
    open_door.tick(
        "b",
        stranger.says(
            notice(stranger, Kind.DEAD_LETTER, DeadLetter(ref=event, reason="x", attempts=1), event)
        ),
    )
    states = {row.source: row.error for row in open_door.store("b").ledger(event)}
    assert states == {"a": None, "x": "cancelled"}


def test_without_expiry_it_lives_a_week_from_its_creation(open_door: Any, stranger: Any) -> None:
    event = stranger.event()
    open_door.tick("b", stranger.says(event))
    row = open_door.row("b", event.event_id)
    assert row.expires_at_ms == parse_rfc3339(event.created_at) + EXPIRES_IN_MS_DEFAULT


# --- whose agent


def test_an_agent_of_another_node_is_quarantined_and_refused(world: Any, stranger: Any) -> None:
    world.listen("b", "bob")
    for epoch in (0, 1):
        event = stranger.event(source_agent_id="ann")
        trace = msgspec.structs.replace(event.trace, source_owner_epoch=epoch)
        event = msgspec.structs.replace(event, trace=trace)
        world.tick("b", stranger.says(event))
        assert world.acks("b", event.event_id) == ["refused: foreign_agent"]
    assert len(world.store("b").quarantined()) == 2
    assert world.store("b").count_received() == {}


def test_a_foreign_reply_does_not_answer_the_question(make_world: Any, stranger: Any) -> None:
    world = make_world("a")
    world.own("eve", "x")
    world.live("a", "ann")
    event = world.sent("a", "ann", "eve")
    world.own("eve", "y")
    world.see()
    forged = stranger.event(kind=Kind.REPLY, corr_id=event, to_agent_id="ann")
    world.tick("a", stranger.says(forged, to=("a",)))
    assert world.delivery("a", event).state == "emitted"
    assert len(world.store("a").quarantined()) == 1


def test_what_was_sent_before_its_agent_left_or_moved_still_counts(make_world: Any, stranger: Any) -> None:
    world = make_world("b")
    world.live("b", "bob")
    event = stranger.event()
    event = msgspec.structs.replace(event, trace=msgspec.structs.replace(event.trace, source_owner_epoch=1))
    world.own("eve", "x", 1, active=False)
    world.see()
    world.tick("b", stranger.says(event))
    world.own("eve", "y", 2)
    world.see()
    moved = msgspec.structs.replace(event, event_id="evt_" + "9" * 32)
    world.tick("b", stranger.says(moved))
    assert world.store("b").count_received() == {"queued": 2}


def test_an_agent_added_here_speaks_here_before_the_room_knows_it(world: Any, only: Any) -> None:
    world.live("a", "amy")
    del world.owners["ann"]
    world.see()
    world.listen("a", "amy")
    effects = world.tick("a", Send(req=9, agent="ann", to="amy", payload=msgspec.Raw(b"1")))
    assert len(only(effects, Handed)) == 1


# --- giving up


def test_a_dead_letter_cancels_what_nobody_holds(open_door: Any, stranger: Any) -> None:
    event = stranger.event()
    letter = DeadLetter(ref=event.event_id, reason="expired", attempts=1)
    give_up = notice(stranger, Kind.DEAD_LETTER, letter, event.event_id)
    open_door.tick("b", stranger.says(event, give_up))
    assert open_door.acks("b", event.event_id) == ["accepted", "failed: cancelled"]
    again = msgspec.structs.replace(give_up, event_id="evt_" + "9" * 32)
    open_door.tick("b", stranger.says(again))
    assert len(open_door.acks("b", event.event_id)) == 2
    assert open_door.listen("b", "bob") == []


def test_a_dead_letter_does_not_cancel_what_is_in_work_or_of_others(open_door: Any, stranger: Any) -> None:
    event = stranger.event()
    open_door.tick("b", stranger.says(event))
    (hand,) = open_door.listen("b", "bob")
    letter = DeadLetter(ref=event.event_id, reason="expired", attempts=1)
    open_door.tick("b", stranger.says(notice(stranger, Kind.DEAD_LETTER, letter, event.event_id)))
    assert open_door.row("b", event.event_id).state == "leased"
    other = open_door.sent("a", "ann", "bob")
    open_door.pull("b", "a")
    letter = DeadLetter(ref=other, reason="expired", attempts=1)
    open_door.tick("b", stranger.says(notice(stranger, Kind.DEAD_LETTER, letter, other)))
    assert open_door.acks("b", other) == ["accepted"]
    assert open_door.settle("b", "bob", event.event_id, lease_id=hand.lease_id).duplicate is False


def test_what_is_dated_at_the_end_of_time_expires_then(world: Any, stranger: Any) -> None:
    """A later time has no text: whoever listed the inbox would have stumbled over it."""
    world.own("eve", "x")
    world.see()
    event = stranger.event(created_at=rfc3339(LATEST_MS))
    world.tick("b", stranger.says(event))
    assert world.row("b", event.event_id).expires_at_ms == LATEST_MS
