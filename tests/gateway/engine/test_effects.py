"""Effects are one tagged union that survives JSON."""

from typing import get_args

import msgspec
import pytest

from gateway.engine.bloblife import BlobDropped, BlobKept, BlobsMissing
from gateway.engine.doubts import DoubtsEnded
from gateway.engine.effects import (
    Admitted,
    AgentChanged,
    Answer,
    Appended,
    CaughtUp,
    CopyChanged,
    CopyRuns,
    CursorMoved,
    Dismissed,
    Effect,
    EpochBegan,
    Extended,
    ForkFound,
    Handed,
    IncidentChanged,
    IncidentsClosed,
    Invited,
    Pruned,
    Refused,
    RevocationKept,
    Sent,
    Settled,
    StreamBroken,
    StreamShown,
    Subscribed,
    Ticketed,
    Told,
)
from outbox.chain import Checkpoint, Entry, Head, Page
from outbox.forks import ForkProof
from outbox.ids import Epoch, EventId
from outbox.records import Copy, Identity

EVENT = EventId("evt_" + "0" * 32)
EPOCH = Epoch("000001-0123456789ab")
PAGE = Page(
    EPOCH, (Entry(1, b"{}", b"\x00\xff{"),), Checkpoint("mesh", "x", EPOCH, 1, b"\x01" * 32, b"\xfe" * 64)
)
COPY = Copy(
    source="x",
    epoch=EPOCH,
    number=1,
    first=1,
    last=1,
    hash=b"\xff" * 32,
    signature=b"\xfe" * 64,
    bytes=9,
    oldest_at_ms=7,
)
SAMPLES = [
    Sent(1, EVENT, "thread", "bob", None, duplicate=True),
    Told(10, EVENT, duplicate=True),
    Dismissed(2, 3),
    IncidentsClosed(2, 3),
    Settled(2, EVENT, duplicate=False),
    Extended(3, EVENT, 30_000),
    Subscribed(4, "s"),
    AgentChanged(5, "ann", 1, active=False),
    Pruned(10, 7, 3, 900, more=True),
    DoubtsEnded(6, ("x",)),
    BlobKept(11, "ab" * 32, 5),
    BlobsMissing(),
    BlobDropped("ab" * 32),
    Ticketed(6, b"\xff{}"),
    Admitted(7, "x", "room", b"\xff" * 32, "session", new_member=True),
    Invited(8, "inv", "open", 5, "token"),
    RevocationKept(9),
    Refused(9, "conflict", "what", "hint", retryable=True),
    Handed("s", EVENT, "lease", 30_000, 1, resumed=False, body=b"\xff{}"),
    Appended(PAGE),
    CursorMoved("x", Head(EPOCH, 1, b"\xff")),
    CaughtUp("x"),
    CopyChanged("x", COPY, PAGE),
    CopyChanged("x", None, None),
    StreamBroken("x", "broken_chain", "what"),
    EpochBegan(Identity("mesh", "x", EPOCH)),
    StreamShown("x", Head(EPOCH, 1, b"\xff")),
    ForkFound(ForkProof(PAGE.checkpoint, PAGE.checkpoint, b"\xff", (b"\xfe",))),
    CopyRuns("what"),
    IncidentChanged("dead_letter", EVENT, open=True, detail="expired"),
]


def test_there_is_a_sample_of_every_effect() -> None:
    assert {type(sample) for sample in SAMPLES} == set(get_args(Effect))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_an_effect_comes_back_as_it_went(sample: Effect) -> None:
    assert msgspec.json.decode(msgspec.json.encode(sample), type=Effect) == sample


def test_every_answer_names_its_request() -> None:
    assert all("req" in answer.__struct_fields__ for answer in get_args(Answer))
