"""A collector's link to a peer that breaks rules, or keeps to them and brings nothing."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.clock import Clock
from gateway.collecting import visitor as visiting
from gateway.collecting.visitor import Visitor
from gateway.links.errors import CreditOverrun, LinkEnded, StreamRefused, TooManyStreams
from gateway.links.greeting import VERSIONS
from gateway.wire.frames import VERSION, Credit, Entries, Filter, Have, Hello, Stock, Want
from outbox.chain import Head, Page, genesis
from outbox.errors import BadFrame, BodyWithheld, PeerError
from outbox.ids import Epoch, MeshId, NodeId, Seq
from outbox.readership import excerpt, whole
from outbox.records import Identity
from tests.gateway.links.conftest import Wire, wires
from tests.gateway.outboxes import STREAM, messages

PEER, COLLECTOR = NodeId("seed"), NodeId("col")
PAGES = messages(30).pages
BEGINNING = genesis(STREAM.mesh, STREAM.node, STREAM.epoch)
LATER = Epoch("000002-00000000000b")


def stock(last: int, epoch: Epoch = STREAM.epoch, first: int = 1) -> Stock:
    return Stock(STREAM.node, epoch, first, last, b"h" * 32)


class Meeting:
    """A visitor, and the end of the wire at which the test is its peer."""

    def __init__(self, visitor: Visitor, peer: Wire) -> None:
        self.visitor, self.peer = visitor, peer

    def ask(self, after: Head, *, earlier: bool = False) -> "asyncio.Task[Page | None]":
        read = self.visitor.earlier_page if earlier else self.visitor.page
        return asyncio.ensure_future(read(STREAM.node, after))

    async def bring(self, page: Page, ask: int) -> None:
        await self.peer.say(Entries(STREAM.node, whole(page), ask))


@pytest.fixture
async def met() -> AsyncIterator[Meeting]:
    near, far = wires()
    visitor = Visitor(Identity(STREAM.mesh, COLLECTOR, STREAM.epoch), PEER, near, Clock())
    await far.say(Hello(VERSION, VERSIONS, PEER, MeshId(STREAM.mesh), 0), Have((stock(30),)))
    await visitor.greet()
    await far.hear(Credit)
    running = asyncio.ensure_future(visitor.run())
    yield Meeting(visitor, far)
    running.cancel()
    await asyncio.wait({running})


async def test_pages_come_in_order_until_all_that_is_offered_was_read(met: Meeting) -> None:
    at = BEGINNING
    for number, page in enumerate(PAGES):
        asked = met.ask(at)
        if not number:
            want = await met.peer.hear(Want)
            assert (want.epoch, want.after, want.filter) == (STREAM.epoch, 0, Filter.ALL)
        await met.bring(page, want.ask)
        found = await asked
        assert found is not None
        assert found.entries == page.entries
        at = page.checkpoint.head
    assert await met.ask(at) is None


async def test_what_is_offered_and_never_comes_is_read_elsewhere(met: Meeting, monkeypatch) -> None:
    monkeypatch.setattr(visiting, "OFFERED_WITHIN_S", 0.05)
    with pytest.raises(StreamRefused, match="offers more of the outbox of vps than it brings"):
        await met.ask(BEGINNING)
    assert met.visitor.fault is None, "its other streams may be read on"


async def test_streams_without_number_end_the_link(met: Meeting, monkeypatch) -> None:
    monkeypatch.setattr(visiting, "OFFERS_MAX", 3)
    more = (Stock(NodeId(f"n{number}"), STREAM.epoch, 1, 1, b"h" * 32) for number in range(4))
    asked = met.ask(BEGINNING)
    await met.peer.say(Have(tuple(more)))
    with pytest.raises(TooManyStreams):
        await asked


async def test_more_bytes_than_were_granted_end_the_link(met: Meeting) -> None:
    asked = met.ask(BEGINNING)
    want = await met.peer.hear(Want)
    async with asyncio.timeout(60):
        while met.visitor.fault is None:  # nobody takes more than the first
            await met.bring(PAGES[0], want.ask)
            await asyncio.sleep(0)
    assert isinstance(met.visitor.fault, CreditOverrun)
    assert await asked is not None


async def test_a_body_that_is_left_out_and_pages_that_nobody_asked_for_are_refused(met: Meeting) -> None:
    asked = met.ask(BEGINNING)
    want = await met.peer.hear(Want)
    await met.peer.say(Entries(STREAM.node, excerpt(PAGES[0], NodeId("nobody")), want.ask))
    with pytest.raises(BodyWithheld):
        await asked
    again = met.ask(PAGES[0].checkpoint.head)
    await met.bring(PAGES[1], want.ask + 100)
    with pytest.raises(BadFrame):
        await again


async def test_a_peer_that_goes_is_told_of_at_once(met: Meeting) -> None:
    asked = met.ask(BEGINNING)
    await met.peer.hear(Want)
    await met.peer.close(1000, "")
    with pytest.raises(PeerError):
        await asked
    with pytest.raises(PeerError):
        await met.ask(BEGINNING)


async def test_of_an_earlier_epoch_a_peer_may_have_nothing_to_say(met: Meeting, monkeypatch) -> None:
    monkeypatch.setattr(visiting, "EARLIER_WITHIN_S", 0.05)
    before = genesis(STREAM.mesh, STREAM.node, Epoch("000000-000000000000"))
    assert await met.ask(before, earlier=True) is None
    want = await met.peer.hear(Want)
    assert (want.epoch, want.after) == ("000000-000000000000", 0)


async def test_a_peer_that_has_nothing_earlier_says_what_it_has_instead(met: Meeting) -> None:
    await met.peer.say(Have((stock(5, LATER, first=4),)))
    asked = met.ask(Head(STREAM.epoch, Seq(10), b"x" * 32), earlier=True)
    want = await met.peer.hear(Want)
    assert (want.epoch, want.after) == (STREAM.epoch, 10), "it does not skip to where the copy begins"
    await met.peer.say(Have((stock(6, LATER, first=4),)))
    assert await asked is None
    assert isinstance(met.visitor.fault, LinkEnded | None)
