"""Who is meant by an address that means several: fixed when it is asked, each agent once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audience import Audience, audience, means_several, one_of
from outbox.errors import InvalidId, NotFound, TooLarge, UnknownRecipient
from outbox.limits import DESTINATIONS_MAX, RECIPIENTS_MAX
from stateroom.view import OwnerView, View


def nobody_like(_agent: str) -> tuple[str, ...]:
    """No name looks like another."""
    return ()


def here(_node: str) -> int | None:
    return None


def view(*owners: OwnerView) -> View:
    return View(version=1, mesh="m", nodes={}, agents={owner.agent: owner for owner in owners}, cursors={})


def owned(agent: str, node: str, status: str = "active", **rest: object) -> OwnerView:
    return OwnerView(agent=agent, node=node, owner_epoch=1, status=status, **rest)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("ann,ann", "ann"),
        ("ann, ann@a,ann", "ann@a"),
        ("ann,bob", "ann,bob"),
        ("ann", "ann"),
        ("*", "*"),
        ("group:ops", "group:ops"),
    ],
)
def test_a_list_of_one_is_that_one(text: str, same: str) -> None:
    assert one_of(text) == same


MESH = view(
    owned("ann", "a", groups=("ops",)),
    owned("amy", "a"),
    owned("bob", "b", groups=("ops", "dev"), fallback=("c",)),
    owned("gone", "c", "removed", groups=("ops",)),
)


@pytest.mark.parametrize(
    ("text", "several"), [("*", True), ("group:x", True), ("a,b", True), ("ann@a", False)]
)
def test_an_address_shows_whether_it_means_several(text: str, several: bool) -> None:
    assert means_several(text) is several


@pytest.mark.parametrize(
    ("text", "sender", "expected"),
    [
        ("*", "ann", Audience("*", (), ("a", "b"))),
        ("*", "bob", Audience("*", (), ("a",))),
        ("group:ops", "amy", Audience("group:ops", ("ann", "bob"), ("a", "b"))),
        ("group:ops", "ann", Audience("group:ops", ("bob",), ("b",))),
        ("bob, ann,bob@b", "ann", Audience("bob,ann", ("bob", "ann"), ("a", "b"))),
    ],
)
def test_everybody_who_is_meant_gets_it_once(text: str, sender: str, expected: Audience) -> None:
    assert audience(MESH, text, sender, here, nobody_like) == expected


def test_a_fallback_stands_in_at_publish() -> None:
    away = {"b": 5}.get
    assert audience(MESH, "ann,bob", "amy", away, nobody_like).nodes == ("a", "c")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("group:nobody", NotFound),
        ("group:No", InvalidId),
        ("ann,gone", NotFound),
        ("ann,bbob", UnknownRecipient),
        ("ann@b,bob", UnknownRecipient),
        ("ann,,bob", InvalidId),
    ],
)
def test_nobody_is_left_out_silently(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        audience(MESH, text, "amy", here, nobody_like)


def test_alone_in_the_mesh_everybody_is_nobody() -> None:
    with pytest.raises(NotFound):
        audience(view(owned("ann", "a")), "*", "ann", here, nobody_like)


@pytest.mark.parametrize("owners", [RECIPIENTS_MAX + 1, DESTINATIONS_MAX + 1])
def test_an_event_names_no_more_than_fits(owners: int) -> None:
    spread = [owned(f"x{n}", f"n{n % 150 if owners <= 150 else 0}", groups=("all",)) for n in range(owners)]
    with pytest.raises(TooLarge):
        audience(view(*spread), "group:all", "ann", here, nobody_like)


@given(st.lists(st.sampled_from(["ann", "amy", "bob", "bob@b"]), min_size=2))
def test_a_list_is_a_set_in_its_order(names: list[str]) -> None:
    found = audience(MESH, ",".join(names), "amy", here, nobody_like)
    assert list(found.agents) == list(dict.fromkeys(name.partition("@")[0] for name in names))
