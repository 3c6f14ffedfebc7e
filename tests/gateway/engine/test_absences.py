"""Absence is counted on our own monotonic clock, from when we saw it, and ends with a sign of life."""

from msgspec.structs import replace

from gateway.engine.absences import Absences
from outbox.ids import NodeId
from stateroom.view import NodeView, OwnerView, View


def view(*absent: str, grace_ms: int = 1_000, status: str = "active") -> View:
    nodes = {
        name: NodeView(node=NodeId(name), public_key=b"", role="member", online=name not in absent)
        for name in ("a", "b", "c")
    }
    bob = OwnerView(agent="bob", node="b", owner_epoch=1, status=status, fallback=("c",), grace_ms=grace_ms)
    amy = OwnerView(agent="amy", node="b", owner_epoch=1, status="active")
    return View(version=1, mesh="m", nodes=nodes, agents={"bob": bob, "amy": amy}, cursors={})


def test_who_is_heard_or_ourselves_is_not_away() -> None:
    absences = Absences(NodeId("a"))
    absences.see(view("a", "b"), 10)
    away = absences.away(25)
    assert [away(NodeId(node)) for node in "abcx"] == [None, 15, None, None]
    absences.see(view(), 30)
    assert absences.away(40)(NodeId("b")) is None
    absences.see(view("b"), 50)
    assert absences.away(60)(NodeId("b")) == 10


def test_a_grace_is_over_once_after_each_view() -> None:
    absences = Absences(NodeId("a"))
    absences.see(view("b"), 10)
    assert absences.next_ms() == 1_010
    assert absences.take_overdue(1_009) == []
    assert absences.take_overdue(1_010) == [("b", "bob")]
    assert (absences.take_overdue(9_999), absences.next_ms()) == ([], None)
    absences.see(view("b"), 2_000)
    assert absences.take_overdue(2_000) == [("b", "bob")]
    absences.again((NodeId("b"), "bob"), 2_500)
    assert absences.next_ms() == 2_500
    assert absences.take_overdue(2_500) == [("b", "bob")]


def test_a_fallback_may_be_away_too_and_a_removed_agent_waits_for_nobody() -> None:
    absences = Absences(NodeId("a"))
    absences.see(view("b", "c", grace_ms=0), 10)
    assert absences.take_overdue(10) == [("b", "bob"), ("c", "bob")]
    absences.see(view("b", status="removed"), 10)
    assert absences.next_ms() is None


def test_a_fallback_that_nobody_has_admitted_is_away_until_it_is_there() -> None:
    misspelt = view("b")
    agents = {"bob": replace(misspelt.agents["bob"], fallback=("nowhere", "c"))}
    absences = Absences(NodeId("a"))
    absences.see(replace(misspelt, agents=agents), 10)
    away = absences.away(25)
    assert [away(NodeId(node)) for node in ("b", "nowhere", "c")] == [15, 15, None]
    assert absences.take_overdue(1_010) == [("b", "bob"), ("nowhere", "bob")]
    there = NodeView(node=NodeId("nowhere"), public_key=b"", role="member", online=True)
    absences.see(replace(misspelt, agents=agents, nodes={**misspelt.nodes, "nowhere": there}), 30)
    assert absences.away(40)(NodeId("nowhere")) is None
