"""Addresses, owners, near names, and who may speak for whom."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing import (
    Route,
    Standing,
    choose,
    inbox_stream,
    near,
    parse_address,
    resolve,
    standing,
    stands_in,
)
from outbox.envelope import RouteDecision
from outbox.errors import InvalidId, UnknownRecipient
from stateroom.view import OwnerView, RevocationView, View


def here(_node: str) -> int | None:
    """Nobody is away."""
    return None


NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True)


def view(*owners: tuple[str, str, int, str]) -> View:
    agents = {
        agent: OwnerView(agent=agent, node=node, owner_epoch=epoch, status=status)
        for agent, node, epoch, status in owners
    }
    return View(version=1, mesh="m", nodes={}, agents=agents, cursors={})


MESH = view(("bob", "vps", 3, "active"), ("bobby", "mbp", 1, "active"), ("gone", "lab", 1, "removed"))


@given(agent=NAMES, node=NAMES)
def test_every_legal_name_has_three_addresses(agent: str, node: str) -> None:
    assert parse_address(agent) == (agent, None)
    assert parse_address(f"{agent}@{node}") == (agent, node)
    assert parse_address(inbox_stream(agent)) == (agent, None)


@pytest.mark.parametrize("text", ["", "@", "bob@", "@vps", "bob@vps@x", "agents//inbox", "agents/bob", "Bob"])
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(InvalidId):
        parse_address(text)


def like(agent: str) -> tuple[str, ...]:
    return near(MESH, agent)


def test_a_route_leads_to_the_owner() -> None:
    assert resolve(MESH, "bob", here, like) == resolve(MESH, "bob@vps", here, like) == Route("bob", "vps", 3)
    assert resolve(MESH, "bob", here, like).decision() == RouteDecision("vps", 3, "owner")


def test_known_without_an_owner_leads_nowhere() -> None:
    route = resolve(MESH, "gone", here, like)
    assert route == Route("gone", None, 0)
    assert route.decision() is None


def test_the_unknown_gets_near_names_that_can_be_reached() -> None:
    with pytest.raises(UnknownRecipient) as caught:
        resolve(MESH, "bobb", here, like)
    assert caught.value.near == ("bobby", "bob")
    with pytest.raises(UnknownRecipient) as caught:
        resolve(MESH, "bob@lab", here, like)
    assert caught.value.near == ("bob@vps",)
    assert near(MESH, "zzzzzzzz") == ()
    assert near(MESH, "gonee") == ()


@pytest.mark.parametrize(
    ("agent", "node", "epoch", "expected"),
    [
        ("bob", "vps", 3, Standing.OWNER),
        ("bob", "vps", 4, Standing.OWNER),
        ("bob", "mbp", 2, Standing.OWNER),
        ("gone", "lab", 1, Standing.OWNER),
        ("bob", "mbp", 4, Standing.UNKNOWN),
        ("new", "mbp", 1, Standing.UNKNOWN),
        ("bob", "mbp", 3, Standing.FOREIGN),
        ("bob", "mbp", 0, Standing.FOREIGN),
        ("bob", "mbp", -1, Standing.FOREIGN),
    ],
)
def test_an_agent_is_spoken_for_by_its_owner_of_the_time(
    agent: str, node: str, epoch: int, expected: Standing
) -> None:
    assert standing(MESH, agent, node, epoch) is expected


GUARDED = View(
    version=1,
    mesh="m",
    nodes={},
    agents={
        "bob": OwnerView(
            agent="bob", node="vps", owner_epoch=3, status="active", fallback=("lab", "mbp"), grace_ms=60_000
        )
    },
    cursors={},
)
VPS_IS_OUT = RevocationView(
    node="vps", public_key=b"", ban=False, by="seed", reason="lost", last=None, next_epoch=1000
)
AGO = {"now": 0, "just": 59_999, "long": 60_000}


@pytest.mark.parametrize(
    ("away", "prefer", "avoid", "expected"),
    [
        ({}, None, (), "vps"),
        ({"vps": "just"}, None, (), "vps"),
        ({"vps": "long"}, None, (), "lab"),
        ({"vps": "long", "lab": "now"}, None, (), "mbp"),
        ({"vps": "long", "lab": "now", "mbp": "now"}, None, (), "vps"),
        ({"vps": "long"}, None, ("lab",), "mbp"),
        ({"vps": "long"}, None, ("lab", "mbp"), "vps"),
        ({"vps": "long"}, "mbp", (), "mbp"),
        ({}, "mbp", (), "mbp"),
        ({}, "mbp", ("mbp",), "vps"),
        ({"mbp": "now"}, "mbp", (), "vps"),
        ({"lab": "long"}, "elsewhere", (), "vps"),
    ],
)
def test_a_fallback_gets_what_an_owner_that_is_away_for_long_cannot(
    away: dict[str, str], prefer: str | None, avoid: tuple[str, ...], expected: str
) -> None:
    since = {node: AGO[how] for node, how in away.items()}
    route = choose(GUARDED, "bob", since.get, prefer=prefer, avoid=frozenset(avoid))
    assert route == Route("bob", expected, 3, "owner" if expected == "vps" else "fallback")
    assert route.decision().reason == route.reason


@pytest.mark.parametrize(
    ("away", "avoid", "expected"),
    [
        ({}, (), "lab"),
        ({}, ("lab",), "mbp"),
        ({}, ("lab", "mbp"), "lab"),  # nobody else will ever answer for the agent
        ({"lab": "now"}, ("lab", "mbp"), "mbp"),
        ({"lab": "now", "mbp": "now"}, ("lab", "mbp"), None),
    ],
)
def test_a_fallback_that_has_refused_is_asked_again_where_the_owner_was_put_out(
    away: dict[str, str], avoid: tuple[str, ...], expected: str | None
) -> None:
    since = {node: AGO[how] for node, how in away.items()}
    view = msgspec.structs.replace(GUARDED, revocations={"vps": (VPS_IS_OUT,)})
    route = choose(view, "bob", since.get, prefer="lab", avoid=frozenset(avoid))
    assert (route and route.node) == expected


def test_nobody_stands_in_for_an_agent_without_an_owner() -> None:
    assert choose(MESH, "gone", here) is None
    assert (stands_in(GUARDED, "bob", "lab"), stands_in(GUARDED, "bob", "vps")) == (True, False)
    assert not stands_in(MESH, "gone", "lab")


def test_a_fallback_may_speak_for_the_agent() -> None:
    assert standing(GUARDED, "bob", "lab", 3) is Standing.OWNER
    assert standing(GUARDED, "bob", "xyz", 3) is Standing.FOREIGN
