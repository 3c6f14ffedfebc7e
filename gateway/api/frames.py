"""Text frames from the gateway to a subscribed or watching socket."""

from typing import Annotated

import msgspec

from gateway.api.answers import Recipient, Refusal
from gateway.api.rows import InboxRow
from outbox.ids import EventId, NodeId

ReqId = Annotated[str, msgspec.Meta(max_length=64)] | Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class Delivered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One turn, as the agent gets it."""

    event: msgspec.Raw
    lease_id: str
    lease_ms: int
    delivery_count: int
    resumed: bool


class DeliverFrame(msgspec.Struct, frozen=True):
    """A turn is handed over."""

    deliver: Delivered


class ItemFrame(msgspec.Struct, frozen=True):
    """A new row, on a watching socket."""

    item: InboxRow


class ErrorRecord(Refusal, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What went wrong, and with which request."""

    req_id: ReqId | None = None


class ErrorFrame(msgspec.Struct, frozen=True):
    """A request was refused; the socket stays."""

    error: ErrorRecord


class OkFrame(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A request was done."""

    ok: ReqId
    event_id: EventId | None = None
    thread_id: str | None = None
    to: Recipient | None = None
    duplicate: bool | None = None
    nodes: tuple[NodeId, ...] = ()
    lease_ms: int | None = None


class ServerFrame(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Any frame of a subscribed socket, as its client reads it: one of ok, deliver and error is set."""

    ok: ReqId | None = None
    event_id: EventId | None = None
    thread_id: str | None = None
    to: Recipient | None = None
    duplicate: bool | None = None
    nodes: tuple[NodeId, ...] = ()
    lease_ms: int | None = None
    deliver: Delivered | None = None
    error: ErrorRecord | None = None
