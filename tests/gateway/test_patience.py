"""What may wait for the next tick: pages in which nobody here finds anything to do."""

import pytest

from gateway.engine.inputs import FloorRead, LinkDown, PageRead
from gateway.patience import may_wait
from outbox.chain import Excerpt, Stub
from outbox.envelope import Ack, DeadLetter
from outbox.ids import NodeId
from outbox.kinds import AckStatus
from tests.gateway.outboxes import STREAM, Outbox, answer, entry, event_id, message

ACCEPTED = answer(2, 1, Ack(ref=event_id(1), status=AckStatus.ACCEPTED))
PROCESSED = answer(3, 1, Ack(ref=event_id(1), status=AckStatus.PROCESSED))
GIVEN_UP = answer(4, 1, DeadLetter(ref=event_id(1), reason="expired", attempts=1))


def page(*events: object) -> PageRead:
    outbox = Outbox([entry(seq, event) for seq, event in enumerate(events, 1)])
    return PageRead(STREAM.node, outbox.pages[0])  # type: ignore[arg-type]


@pytest.mark.parametrize("events", [(ACCEPTED,), (ACCEPTED, PROCESSED)])
def test_acks_may_wait(events: tuple[object, ...]) -> None:
    assert may_wait(page(*events))


@pytest.mark.parametrize("other", [message(1), message(1, kind="reply", corr_id=event_id(9)), GIVEN_UP])
def test_one_event_of_another_kind_makes_a_page_urgent(other: object) -> None:
    assert not may_wait(page(ACCEPTED, other))
    assert not may_wait(page(other, ACCEPTED))


def test_the_header_is_enough() -> None:
    whole = page(ACCEPTED).page
    stub = Stub(whole.entries[0].seq, whole.entries[0].header, bytes(32))
    assert may_wait(PageRead(STREAM.node, Excerpt(whole.epoch, (stub,), whole.checkpoint)))
    unreadable = Stub(whole.entries[0].seq, b"{", bytes(32))
    assert not may_wait(PageRead(STREAM.node, Excerpt(whole.epoch, (unreadable,), whole.checkpoint)))


def test_whatever_is_no_page_is_urgent() -> None:
    assert not may_wait(LinkDown(NodeId("vps")))
    assert not may_wait(FloorRead(STREAM.node, page(ACCEPTED).page.checkpoint))
