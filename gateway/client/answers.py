"""Frames of a gateway as the answers that an agent's calls return. Core."""

from typing import TypeVar

from gateway.api.answers import ExtendedAnswer, SentAnswer, SettledAnswer
from gateway.api.frames import ServerFrame
from gateway.errors import Unreachable

_Value = TypeVar("_Value")


def sent_answer(frame: ServerFrame) -> SentAnswer:
    """Of a send or reply. Raises Unreachable."""
    return SentAnswer(
        _named(frame.event_id),
        _named(frame.thread_id),
        _named(frame.to),
        _named(frame.duplicate),
        frame.nodes,
    )


def settled_answer(frame: ServerFrame) -> SettledAnswer:
    """Of an ack or nack. Raises Unreachable."""
    return SettledAnswer(_named(frame.event_id), _named(frame.duplicate))


def extended_answer(frame: ServerFrame) -> ExtendedAnswer:
    """Of an extend. Raises Unreachable."""
    return ExtendedAnswer(_named(frame.event_id), _named(frame.lease_ms))


def _named(value: _Value | None) -> _Value:
    """A field that every gateway of this version sends."""
    if value is None:
        raise Unreachable("the gateway's answer lacks a field", hint="is it of another version?")
    return value
