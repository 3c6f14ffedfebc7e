"""The open work of one tick: pages cut to size, incidents raised once."""

from typing import Any

import msgspec
import pytest

from gateway.engine.effects import Appended, IncidentChanged
from gateway.engine.inputs import Now, Send
from gateway.engine.policy import Policy
from gateway.engine.tick import Tick, names
from outbox.chain import Head
from outbox.envelope import Header
from outbox.limits import BATCH_BYTES_MAX, BATCH_ENTRIES


@pytest.fixture
def tick(world: Any) -> Tick:
    node = world.nodes["a"]
    node.store.begin()
    return Tick(Now(1_000, 0), node.store, world.view(), node.store.identity(), Policy(), node.entropy)


@pytest.mark.parametrize(
    ("to", "named"),
    [
        (("a",), True),
        (("b", "a"), True),
        ("*", True),
        ((), False),
        (("b",), False),
        ("banana", False),
        ("a", False),
    ],
)
def test_a_header_names_nodes_whole_or_everyone(to: Any, named: bool) -> None:
    header = Header(event_id="evt_" + "0" * 32, kind="message", to=to, size=1)
    assert names(header, "a") is named


def test_a_large_batch_is_sealed_in_pages_of_the_limit(world: Any, appended: Any) -> None:
    sends = [Send(req=n, agent="ann", to="bob", payload=msgspec.Raw(b"1")) for n in range(BATCH_ENTRIES + 7)]
    heads: list[Head] = appended(world.tick("a", *sends))
    assert [head.seq for head in heads] == [BATCH_ENTRIES, BATCH_ENTRIES + 7]
    world.verify()
    world.pull("b", "a")
    assert world.store("b").cursor("a") == heads[-1]


def test_a_heavy_batch_is_sealed_in_pages_of_the_limit(world: Any, only: Any) -> None:
    body = b'"' + b"x" * 200_000 + b'"'
    sends = [Send(req=n, agent="ann", to="bob", payload=msgspec.Raw(body)) for n in range(25)]
    pages = [effect.page for effect in only(world.tick("a", *sends), Appended)]
    assert len(pages) == 3
    assert all(sum(len(e.header) + len(e.body) for e in page.entries) <= BATCH_BYTES_MAX for page in pages)
    world.verify()


def test_an_incident_is_raised_once_and_closed_once_and_may_come_back(tick: Tick) -> None:
    tick.close_incident("kind", "x")
    tick.open_incident("kind", "x", "first")
    tick.open_incident("kind", "x", "again")
    tick.close_incident("kind", "x")
    tick.close_incident("kind", "x")
    tick.open_incident("kind", "x", "second")
    assert tick.effects == [
        IncidentChanged("kind", "x", open=True, detail="first"),
        IncidentChanged("kind", "x", open=False, detail="first"),
        IncidentChanged("kind", "x", open=True, detail="second"),
    ]
