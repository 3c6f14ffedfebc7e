"""A node is put out: what it has said before counts, nothing after, and what it is owed ends."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.courier.limits import CourierLimits
from gateway.engine.effects import Refused
from gateway.engine.inputs import AddAgent, LinkUp, PageRead, StreamHead
from gateway.engine.limits import ENDED_UNREAD_AFTER_MS
from gateway.engine.policy import Policy
from outbox.ids import Epoch, MeshId, NodeId
from outbox.kinds import Kind
from outbox.memory import MemoryStore
from outbox.records import DeliveryState, Identity

B = NodeId("b")
MESH = MeshId("mesh-" + "x" * 38)
EPOCH = Epoch("000001-0123456789ab")


@pytest.fixture
def trio(make_world: Any) -> Any:
    """``ann`` at ``a``, ``bob`` at ``b`` with ``c`` to stand in, ``cyd`` at ``b`` without."""
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob", fallback=("c",), grace_ms=60_000)
    world.live("b", "cyd")
    world.stand_in("c", "bob", "b")
    return world


def cut_off(world: Any, by: str = "a") -> None:
    """A seed that has read as much as ``by`` puts ``b`` out, and everybody hears of it."""
    world.revoke("b", world.store(by).signed_cursor(B), reason="lost")
    world.see("a", "c")


def read_once(world: Any, reader: str) -> None:
    """One page of ``b`` comes, whatever becomes of it."""
    page = world.page(reader, "b")
    assert page is not None
    world.tick(reader, PageRead(B, page))


def open_at(world: Any, event: str) -> set[str | None]:
    """The nodes that still owe an answer."""
    return {node for node, state in states(world, event).items() if state in {"emitted", "accepted"}}


def states(world: Any, event: str) -> dict[str | None, str]:
    return {row.node: str(row.state) for row in world.store("a").obligations(event)}


def test_what_nobody_has_accepted_goes_to_the_fallback_or_ends(trio: Any) -> None:
    to_bob, to_cyd = trio.sent("a", "ann", "bob"), trio.sent("a", "ann", "cyd")
    cut_off(trio)
    trio.tick("a")
    assert states(trio, to_bob) == {"b": "superseded", "c": "emitted"}
    assert states(trio, to_cyd) == {"b": "dead_letter"}
    assert trio.delivery("a", to_cyd).error == "node_revoked"
    assert ("dead_letter", to_cyd) in trio.incidents("a")
    trio.pull("c", "a")
    assert trio.acks("c", to_bob) == ["accepted"]


def test_what_it_had_accepted_ends_without_another_try(trio: Any) -> None:
    event = trio.sent("a", "ann", "bob")
    trio.pull("b", "a")
    trio.pull("a", "b")
    assert states(trio, event) == {"b": "accepted"}
    cut_off(trio)
    trio.tick("a")
    assert states(trio, event) == {"b": "dead_letter"}


def test_new_messages_go_to_the_fallback_or_nowhere(trio: Any) -> None:
    cut_off(trio)
    assert trio.send("a", "ann", "bob").node == "c"
    answer = trio.send("a", "ann", "cyd")
    assert answer.node is None
    assert trio.delivery("a", answer.event_id).error == "node_revoked"
    assert trio.send("a", "ann", "dan").code == "unknown_recipient"


def test_everybody_does_not_mean_who_is_out(trio: Any) -> None:
    trio.live("c", "eve")
    cut_off(trio)
    event = trio.sent("a", "ann", "*")
    assert [row.node for row in trio.store("a").obligations(event)] == ["c"]


def test_a_reply_to_who_is_out_ends_at_once(trio: Any) -> None:
    event = trio.sent("b", "cyd", "ann")
    trio.pull("a", "b")
    (hand,) = trio.listen("a", "ann")
    cut_off(trio)
    answer = trio.reply("a", "ann", event, lease_id=hand.lease_id)
    assert trio.delivery("a", answer.event_id).state is DeliveryState.DEAD_LETTER


def test_what_was_said_before_counts_and_nothing_after(trio: Any) -> None:
    before = trio.sent("b", "cyd", "ann")
    trio.pull("c", "b")
    after = trio.sent("b", "cyd", "ann")
    cut_off(trio, by="c")
    read_once(trio, "a")
    assert [row.event_id for row in trio.store("a").ledger(before)] == [before]
    assert trio.store("a").ledger(after) == []
    assert trio.store("a").cursor(B) == trio.store("c").cursor(B)
    assert trio.store("a").signed_cursor(B) == trio.store("c").signed_cursor(B)
    read_once(trio, "c")
    assert trio.store("c").ledger(after) == []
    assert trio.incidents("a") == trio.incidents("c") == []


def test_a_page_that_reaches_over_the_end_is_cut_there(trio: Any) -> None:
    for _ in range(2):
        trio.sent("b", "cyd", "ann")
    trio.pull("c", "b")
    last = trio.store("c").signed_cursor(B)
    trio.sent("b", "cyd", "ann")
    page = trio.page("a", "b")
    assert page.checkpoint.seq > last.seq
    trio.revoke("b", last)
    trio.see("a")
    trio.tick("a", PageRead(B, page))
    assert trio.store("a").signed_cursor(B) == last


def test_another_history_than_the_one_that_counts_is_taken_by_nobody(trio: Any) -> None:
    trio.sent("b", "cyd", "ann")
    page = trio.page("a", "b")
    trio.revoke("b", replace(page.checkpoint, hash=bytes(32)))
    trio.see("a")
    trio.tick("a", PageRead(B, page, relay=NodeId("c")))
    assert trio.store("a").cursor(B) is None
    assert trio.incidents("a") == []


def test_nothing_is_taken_of_whom_nobody_had_read(trio: Any) -> None:
    trio.sent("b", "cyd", "ann")
    trio.revoke("b", None)
    trio.see("a")
    trio.tick("a", PageRead(B, trio.page("a", "b")))
    assert trio.store("a").cursor(B) is None


def test_an_answer_that_still_comes_settles_what_was_owed(trio: Any) -> None:
    event = trio.sent("a", "ann", "cyd")
    trio.pull("b", "a")
    (hand,) = trio.listen("b", "cyd")
    trio.settle("b", "cyd", event, lease_id=hand.lease_id)
    trio.pull("c", "b")
    cut_off(trio, by="c")
    trio.tick("a")
    assert states(trio, event) == {"b": "emitted"}
    read_once(trio, "a")
    trio.tick("a")
    assert states(trio, event) == {"b": "processed"}


def test_nobody_waits_long_for_what_does_not_come(trio: Any) -> None:
    event = trio.sent("a", "ann", "cyd")
    trio.sent("b", "cyd", "ann")
    trio.pull("c", "b")
    cut_off(trio, by="c")
    trio.advance(ENDED_UNREAD_AFTER_MS - 1)
    trio.tick("a")
    assert states(trio, event) == {"b": "emitted"}
    trio.advance(1)
    trio.tick("a")
    assert states(trio, event) == {"b": "dead_letter"}


def test_a_new_engine_ends_what_the_one_before_left(trio: Any) -> None:
    event = trio.sent("a", "ann", "cyd")
    trio.revoke("b", None)
    trio.restart("a")
    for _ in range(2):
        trio.tick("a")
    assert states(trio, event) == {"b": "dead_letter"}


def owed(make_world: Any, counting: Any, sent: int, rows: int) -> Any:
    """``b`` is put out, to which ``a`` has sent so much: a third is accepted, and half may go to ``c``."""
    world = make_world("b", "c", limits=CourierLimits(max_depth=1_000), policy=Policy(errand_rows=rows))
    world.join("a", counting(MemoryStore(Identity(MESH, NodeId("a"), world.epoch_of("b")))))
    world.live("a", "ann")
    world.live("b", "bob", fallback=("c",), grace_ms=60_000)
    world.live("b", "cyd")
    world.stand_in("c", "bob", "b")
    world.events = [world.sent("a", "ann", ("bob", "cyd")[at % 2]) for at in range(sent // 3)]
    world.pull("b", "a")
    world.pull("a", "b")
    world.events += [world.sent("a", "ann", ("bob", "cyd")[at % 2]) for at in range(sent - sent // 3)]
    world.revoke("b", world.store("a").signed_cursor(B))
    world.store("a").most = 0
    world.see("a")
    return world


@pytest.mark.parametrize("restarts", [False, True])
def test_no_tick_ends_more_than_its_share(make_world: Any, counting: Any, *, restarts: bool) -> None:
    most, ends = [], []
    for sent, rows in ((60, 10), (240, 10), (240, 1_000)):
        world = owed(make_world, counting, sent, rows)
        assert bool(world.store("a").errands()) is (rows < sent)
        while any("b" in open_at(world, event) for event in world.events):
            if restarts:
                world.restart("a")
            world.tick("a")
        world.run_errands("a", restarts=False)  # a new engine looks for what is left, whatever was done
        most.append(world.store("a").most)
        ends.append([states(world, event) for event in world.events])
        assert len(world.said("a", Kind.DEAD_LETTER)) == sent * 2 // 3
    assert most[1] <= most[0] < most[2]
    assert ends[1] == ends[2]
    assert ends[1][:80] == [{"b": "dead_letter"}] * 80
    assert ends[1][80:82] == [{"b": "superseded", "c": "emitted"}, {"b": "dead_letter"}]


def test_who_comes_back_meanwhile_is_owed_what_has_not_ended(make_world: Any, counting: Any) -> None:
    world = owed(make_world, counting, 60, 10)
    world.left.discard("b")
    world.see("a")
    before = [states(world, event) for event in world.events]
    world.run_errands("a", restarts=False)
    assert [states(world, event) for event in world.events] == before
    assert {"b": "emitted"} in before
    assert {"b": "dead_letter"} in before


def test_nothing_new_goes_to_who_is_out_while_it_ends(make_world: Any, counting: Any) -> None:
    world = owed(make_world, counting, 60, 1)
    events = [world.sent("a", "ann", name) for name in ("bob", "cyd")]
    assert world.store("a").errands()
    world.run_errands("a", restarts=False)
    assert [states(world, event) for event in events] == [{"c": "emitted"}, {None: "dead_letter"}]


def test_it_is_told_once(trio: Any) -> None:
    cut_off(trio)
    trio.see("a")
    rows = [row for row in trio.store("a").incidents(open_only=False) if row.kind == "node_revoked"]
    assert [(row.subject, row.detail) for row in rows] == [("b/1000", "by seed: lost")]


def test_nothing_is_held_back_for_what_will_never_be_read(trio: Any) -> None:
    event = trio.sent("b", "cyd", "ann")
    trio.pull("c", "b")
    trio.sent("b", "cyd", "ann")
    link = LinkUp(NodeId("c"), (StreamHead(B, EPOCH, trio.store("b").head().seq),))
    trio.tick("a", link)
    cut_off(trio, by="c")
    read_once(trio, "a")
    (hand,) = trio.listen("a", "ann")
    assert hand.event_id == event
    trio.tick("a", link)
    assert not trio.nodes["a"].engine._peers.is_behind(B)


def test_who_is_out_itself_speaks_for_nobody(trio: Any) -> None:
    trio.revoke("b", None, reason="lost")
    trio.see("b")
    answer = trio.send("b", "cyd", "ann")
    assert isinstance(answer, Refused)
    assert (answer.code, answer.retryable) == ("node_revoked", False)


def test_its_agents_can_live_on_at_a_seed(trio: Any) -> None:
    cut_off(trio)
    refused = trio.ask("a", AddAgent(next(trio.reqs), "cyd", b"\x00" * 32))
    assert refused.code == "name_taken"
    trio.members = {
        NodeId("a"): replace(trio.member("a"), role="seed"),
        NodeId("c"): trio.member("c"),
    }
    trio.see("a")
    changed = trio.ask("a", AddAgent(next(trio.reqs), "cyd", b"\x00" * 32))
    assert changed.owner_epoch == 2
