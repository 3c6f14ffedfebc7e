"""What the room holds otherwise than the journal: after a lost publication, or a backup that was put back."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.effects import AgentChanged
from gateway.unsaid import unsaid
from outbox.ids import AgentId, NodeId
from outbox.records import LocalAgent
from stateroom.view import OwnerView, View

HERE = NodeId("a")
NAMES = ("ann", "bob", "eve")


def lives(name: str, *, fallback: str = "", stands_in_for: str = "", owner_epoch: int = 1) -> LocalAgent:
    return LocalAgent(
        name=AgentId(name),
        owner_epoch=owner_epoch,
        token_hash=b"",
        created_at_ms=0,
        fallback=fallback,
        grace_ms=0,
        groups="",
        stands_in_for=stands_in_for,
    )


def said(name: str, node: str = HERE, status: str = "active", owner_epoch: int = 1) -> OwnerView:
    return OwnerView(agent=AgentId(name), node=NodeId(node), owner_epoch=owner_epoch, status=status)


def room(*owners: OwnerView) -> View:
    return View(version=1, mesh="m", nodes={}, agents={owner.agent: owner for owner in owners}, cursors={})


def changes(view: View, *agents: LocalAgent) -> list[tuple[str, bool]]:
    return [(change.name, change.active) for change in unsaid(view, HERE, agents)]


def test_what_the_room_holds_is_not_said_again() -> None:
    assert changes(room(said("ann"), said("bob", "b")), lives("ann")) == []


def test_an_agent_that_was_removed_after_the_backup_lives_again() -> None:
    assert changes(room(said("ann", status="removed")), lives("ann")) == [("ann", True)]


def test_an_agent_that_the_journal_does_not_know_is_gone() -> None:
    """It was added after the backup, or its removal was never published."""
    assert changes(room(said("ann"), said("bob"))) == [("ann", False), ("bob", False)]


def test_a_record_that_says_something_else_is_said_again() -> None:
    (change,) = unsaid(room(said("ann")), HERE, [lives("ann", fallback="b")])
    assert isinstance(change, AgentChanged)
    assert change.fallback == ("b",)


def test_nothing_is_said_of_the_agents_of_others() -> None:
    theirs = room(said("ann", "b"), said("bob", owner_epoch=2), said("eve", "b"))
    assert changes(theirs, lives("ann"), lives("bob"), lives("eve", stands_in_for="b")) == []


@given(
    st.lists(st.sampled_from(NAMES), unique=True),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["active", "removed"])),
)
def test_once_said_there_is_nothing_more_to_say(here: list[str], known: dict[str, str]) -> None:
    agents = [lives(name) for name in here]
    before = room(*(said(name, status=status) for name, status in known.items()))
    after = dict(before.agents)
    for change in unsaid(before, HERE, agents):
        after[change.name] = said(change.name, status="active" if change.active else "removed")
    assert list(unsaid(room(*after.values()), HERE, agents)) == []
    assert {name for name, owner in after.items() if owner.status == "active"} == set(here)
