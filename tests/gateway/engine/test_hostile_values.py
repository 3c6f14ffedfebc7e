"""An admitted node can write whatever it likes into its own outbox: no field of it ends the reader's tick.

A tick that fails is thrown away with its process, and the page comes again: one such event would end every
gateway that reads it, again at each start. The store is SQLite here, which refuses more than a dictionary.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.effects import Sent
from outbox.envelope import Header, decode_event, encode_event, header_of
from outbox.errors import CallerError
from outbox.ids import Epoch, MeshId, NodeId
from outbox.journal import Journal
from outbox.limits import JSON_DEPTH_MAX
from outbox.records import Identity

MESH = MeshId("mesh-" + "x" * 38)
EPOCH = Epoch("000001-0123456789ab")
HOSTILE = (
    *(None, True, -1, 0, 1.5, 2**31, 2**63, 2**70, "", "x", "\x00", "*", "000000-", "999999-ffffffffffff"),
    *("é" * 400, [], [[]], {}, {"a": 1}, ["x", 1], ["", -1], [[EPOCH, 2**70]], "evt_", f"evt_{'f' * 32}"),
)


@pytest.fixture
def reader(make_world: Any, tmp_path: Path) -> Iterator[Any]:
    """``b`` on SQLite, which has heard that ``x`` has forgotten the beginning of its outbox."""
    world = make_world()
    with closing(
        Journal.create(tmp_path / "b.db", Identity(MESH, NodeId("b"), EPOCH), wal_bytes=0)
    ) as journal:
        world.join("b", journal)
        world.own("eve", "x")
        world.live("b", "bob", "ben")
        yield world


def base_events(ours: str) -> list[dict[str, Any]]:
    """An event of each kind and signal, with everything in it that an engine looks at."""
    place, at = [EPOCH, 1], "2026-11-27T12:00:00.000Z"
    decision = {"ownerNodeId": "b", "ownerEpoch": 1, "reason": "owner"}
    trace = {
        "attempt": 2,
        "firstPosition": place,
        "sourceOwnerEpoch": 1,
        "hops": 1,
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-00",
        "routeDecision": decision,
    }
    told = {"id": "i", "class": "c", "severity": "low", "openedAt": at}
    ack = {"ref": ours, "status": "processed", "outcome": "failed", "error": "e", "engagedAt": at}
    promise = {"ref": ours, "status": "accepted", "etaAt": at, "planSummary": "p"}
    letter = {"ref": ours, "reason": "r", "attempts": 1, "lastError": "e"}
    end = {"ref": ours, "outcome": "ok", "error": "e", "by": ours}
    signals = [
        {"signal": "stream_epoch", "previous": EPOCH, "lastKnown": 1, "reason": "r", "remembered": [place]},
        {"signal": "recall", "since": EPOCH, "read": place, "open": [ours], "more": False},
        {"signal": "recalled", "since": EPOCH, "ended": [end], "accepted": [ours]},
        {"signal": "status_request", "ref": ours},
        {"signal": "status_unknown", "ref": ours},
        {"signal": "maintenance", "maintenance": {"until": at, "reason": "r", "over": False}},
        {"signal": "incident", "ref": ours, "detail": "d", "incident": told},
    ]
    agents = {"sourceAgentId": "eve", "toAgentId": "bob"}
    ref = {"sha256": "0" * 64, "bytes": 3, "contentType": "a/b"}
    made: list[dict[str, Any]] = [
        {"kind": "ack", "corrId": ours, "payload": promise},
        {"kind": "ack", "corrId": ours, "payload": ack},
        {"kind": "dead_letter", "corrId": ours, "payload": letter},
        *({"kind": "signal", "payload": signal} for signal in signals),
        {
            "kind": "message",
            **agents,
            "threadId": "t",
            "expiresAt": at,
            "type": "t",
            "schema": "s",
            "payload": 1,
        },
        {"kind": "message", "sourceAgentId": "eve", "toAgents": ["bob", "ben"], "priority": 4},
        {"kind": "message", **agents, "payloadRef": ref},
        {"kind": "reply", "corrId": ours, **agents, "payload": 1},
    ]
    return [{"v": 1, "sourceNodeId": "x", "createdAt": at, "trace": trace, **event} for event in made]


def paths(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a document."""
    if here:
        yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from paths(below, (*here, key))


def planted(event: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The event with a hostile value at one place."""
    made = json.loads(json.dumps(event))
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return made


def entry(stranger: Any, event: dict[str, Any]) -> tuple[Header, bytes]:
    """It as a new event, under a header that agrees where that can be."""
    body = json.dumps({**event, "eventId": stranger.event().event_id}).encode()
    try:
        return header_of(decode_event(body), ("b",), len(body)), body
    except CallerError:
        return header_of(stranger.event(), ("b",), len(body)), body


@pytest.mark.parametrize("depth", [JSON_DEPTH_MAX - 1, JSON_DEPTH_MAX, 900, 960, 990])
@pytest.mark.parametrize("calls", [0, 20, 60])
def test_how_deep_an_event_may_be_depends_on_nothing_else(
    reader: Any, stranger: Any, depth: int, calls: int
) -> None:
    """A parser gives up at a depth that depends on who calls it, and a start calls from elsewhere."""

    def deeper_in(calls: int) -> None:
        if calls:
            deeper_in(calls - 1)
        else:
            reader.tick("b", stranger.writes((header_of(event, ("b",), len(body)), body)))

    event = stranger.event()
    body = encode_event(event).replace(b'"payload":1', b'"payload":' + b"[" * depth + b"]" * depth)
    deeper_in(calls)
    kinds = [kind for kind, _ in reader.incidents("b")]
    assert kinds == ([] if depth < JSON_DEPTH_MAX else ["quarantined"])
    assert reader.store("b").cursor("x") == stranger.head


def test_no_field_of_a_peer_ends_a_tick(reader: Any, stranger: Any) -> None:
    """Each field of each event once with each hostile value."""
    ours = reader.sent("b", "bob", "eve")
    reader.tick("b", stranger.says(stranger.event()))
    reader.floors["x"] = stranger.head
    reader.members.clear()
    reader.see()
    for event in base_events(ours):
        for path in paths(event):
            entries = [entry(stranger, planted(event, path, value)) for value in HOSTILE]
            reader.tick("b", stranger.writes(*entries))
    assert reader.store("b").cursor("x") == stranger.head
    assert isinstance(reader.send("b", "bob", "ben"), Sent)
