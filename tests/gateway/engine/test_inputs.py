"""Inputs are one tagged union that survives JSON."""

from typing import get_args

import msgspec
import pytest

from gateway.engine.bloblife import BlobLost, BlobsFit, BlobsFull, KeepBlob
from gateway.engine.closing import CloseIncidents
from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.doubts import EndDoubts
from gateway.engine.inputs import (
    AddAgent,
    ClockMeasured,
    Extend,
    FloorRead,
    Grant,
    Input,
    LinkDown,
    LinkUp,
    Maintain,
    Nack,
    Now,
    PageRead,
    Prune,
    RelayCaught,
    RemoveAgent,
    Reply,
    Request,
    Send,
    SetAgent,
    Settle,
    StreamHead,
    StreamKnown,
    Subscribe,
    TellIncident,
    Unsubscribe,
    ViewChanged,
)
from gateway.engine.knocks import Exchange, Invite, KeepRevocation, Renew, RevokeInvite, Upgrade
from gateway.engine.stalls import StreamFlows, StreamStalled
from outbox.chain import Checkpoint, Entry, Excerpt, Stub
from outbox.envelope import IncidentNotice, MaintenanceNotice
from outbox.ids import Epoch, EventId
from outbox.kinds import Outcome
from stateroom.view import CursorsView, NodeView, OwnerView, View

EVENT = EventId("evt_" + "0" * 32)
EPOCH = Epoch("000001-0123456789ab")
PAGE = Excerpt(
    EPOCH,
    (Entry(1, b"{}", b"\x00\xff{"), Stub(2, b"{}", b"\x02" * 32)),
    Checkpoint("mesh", "x", EPOCH, 2, b"\x01" * 32, b"\xfe" * 64),
)
VIEW = View(
    version=3,
    mesh="mesh",
    nodes={"x": NodeView(node="x", public_key=b"\xff" * 32, role="seed", online=True, links=("y",))},
    agents={"ann": OwnerView(agent="ann", node="x", owner_epoch=2, status="removed")},
    cursors={"x": CursorsView(cursors={"y": (EPOCH, 4)}, head=(EPOCH, 9))},
)
SAMPLES = [
    Reply(req=2, agent="ann", event_id=EVENT, payload=msgspec.Raw(b'{"a": [1.50, "\xc3\xa9"]}'), type="t"),
    Send(req=1, agent="ann", to="bob", payload=msgspec.Raw(b'{"type": 1}'), type="t", expires_in_ms=5),
    TellIncident(
        req=15, agent="ann", notice=IncidentNotice(id="i", name="fork", severity="major"), ref=EVENT
    ),
    Settle(req=3, agent="ann", event_id=EVENT, outcome=Outcome.FAILED, error="no"),
    Nack(req=4, agent="ann", event_id=EVENT, lease_id="l", delay_ms=5),
    Extend(req=5, agent="ann", event_id=EVENT, lease_id="l", lease_ms=5),
    Subscribe(req=6, subscriber="s", agent="ann", session="r"),
    Grant(7, "s", 3),
    Unsubscribe("s"),
    AddAgent(8, "ann", b"\xff" * 32),
    SetAgent(9, "ann", fallback=("x",), grace_ms=5, groups=()),
    RemoveAgent(9, "ann"),
    Prune(15, force=True),
    Maintain(5, MaintenanceNotice(until="2099-01-01T00:00:00Z", reason="disk")),
    KeepBlob(16, "ab" * 32, 5, written=True),
    BlobLost("ab" * 32, "blob_gone"),
    BlobsFull(7, 5),
    BlobsFit(),
    FloorRead("x", PAGE.checkpoint),
    Redrive(req=9, event_id=EVENT, expires_in_ms=5),
    CloseIncidents(req=9, subjects=("vps/i1",), kind="reported", before_ms=5),
    Dismiss(req=9, event_ids=(EVENT,), before_ms=5),
    PageRead("x", PAGE, relay="y", link=3, size=9),
    RelayCaught("x", "y", "bad_checkpoint", "not signed"),
    StreamStalled("x", "y"),
    StreamFlows("x"),
    StreamKnown("x", Checkpoint("mesh", "x", EPOCH, 1, b"\xff", b"\xfe")),
    LinkUp("x", (StreamHead("y", EPOCH, 4),)),
    LinkDown("x"),
    ClockMeasured("x", -1_500, 20),
    ViewChanged(VIEW),
    EndDoubts(10),
    Exchange(10, b"\xff", "::1"),
    Renew(11, b"\xff", "::1"),
    Upgrade(12, "t", "p", "/v1", "room", "::1"),
    Invite(req=13, ttl_ms=5),
    RevokeInvite(14, "inv"),
    KeepRevocation(req=15, name="k/vps", node="mbp", jkt="k", ban=True, record="r"),
]


def test_there_is_a_sample_of_every_input() -> None:
    assert {type(sample) for sample in SAMPLES} == set(get_args(Input))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_an_input_comes_back_as_it_went(sample: Input) -> None:
    wire = msgspec.json.encode(sample)
    back = msgspec.json.decode(wire, type=Input)
    assert type(back) is type(sample)
    assert msgspec.json.encode(back) == wire
    if not hasattr(sample, "payload"):
        assert back == sample


def test_what_somebody_waits_for_has_a_number() -> None:
    others = set(get_args(Input)) - set(get_args(Request))
    assert others == {
        Unsubscribe,
        BlobLost,
        BlobsFull,
        BlobsFit,
        PageRead,
        FloorRead,
        RelayCaught,
        StreamStalled,
        StreamFlows,
        StreamKnown,
        LinkUp,
        LinkDown,
        ClockMeasured,
        ViewChanged,
    }
    assert all("req" in request.__struct_fields__ for request in get_args(Request))


def test_the_clocks_survive_too() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Now(1, 2)), type=Now) == Now(1, 2)
