"""What goes over the pipe comes out as it went in; errors keep their kind, their text and their hint."""

import msgspec
import pytest

from gateway.engine.effects import Settled, Subscribed
from gateway.engine.inputs import Now, Send, Unsubscribe
from gateway.engine.own_stream import Standing
from gateway.engine.rest import Rest
from gateway.errors import EngineLost, HomeError
from gateway.hosting.messages import (
    LENGTH_BYTES,
    Bug,
    Build,
    Decided,
    Failed,
    Opened,
    Tick,
    decode_ask,
    decode_reply,
    encode,
    error_of,
    failure,
    frame,
)
from gateway.hosting.viewsteps import ViewStep
from outbox.errors import (
    BadCheckpoint,
    BrokenChain,
    DatabaseTooNew,
    MeshError,
    NotFound,
    StorageFailed,
    StorageFull,
)

NOW = Now(5, 6)
STEP = ViewStep(version=3, mesh="mesh", agents_gone=("ann",))
REST = Rest(7, NOW, Standing.ALONE)


@pytest.mark.parametrize("ask", [Build(STEP, NOW), Tick([STEP, Unsubscribe("s")], NOW), Tick([], NOW)])
def test_what_is_asked(ask: Build | Tick) -> None:
    assert decode_ask(encode(ask)) == ask


def test_a_payload_is_untouched() -> None:
    """Every input and effect has its own test; this is about JSON inside JSON."""
    payload = msgspec.Raw(b'{"a": [1.50, "\xc3\xa9", null]}')
    back = decode_ask(encode(Tick([Send(req=1, agent="ann", to="bob", payload=payload)], NOW)))
    assert isinstance(back, Tick)
    (sent,) = back.batch
    assert isinstance(sent, Send)
    assert bytes(sent.payload) == bytes(payload)


@pytest.mark.parametrize(
    "reply",
    [
        Opened(2),
        Decided([Settled(1, "evt", duplicate=False), Subscribed(2, "s")], REST),
        Failed("storage_full", "no space", "free some", REST),
        Failed("storage_failed", "broken", "", None),
        Bug("Traceback …", REST),
    ],
)
def test_what_is_answered(reply: Decided | Failed | Bug | Opened) -> None:
    assert decode_reply(encode(reply)) == reply


@pytest.mark.parametrize(
    "kind", [StorageFull, StorageFailed, DatabaseTooNew, BrokenChain, BadCheckpoint, HomeError]
)
def test_an_error_keeps_its_kind(kind: type[MeshError]) -> None:
    error = error_of(failure(kind("what", hint="do this"), None))
    assert type(error) is kind
    assert (str(error), error.hint) == ("what", "do this")


def test_any_other_error_means_that_the_engine_is_lost() -> None:
    error = error_of(failure(NotFound("who?", hint="look"), None))
    assert type(error) is EngineLost
    assert str(error) == "who?"


def test_a_frame_begins_with_its_length() -> None:
    text = encode(Opened(0))
    assert frame(text) == len(text).to_bytes(LENGTH_BYTES) + text
