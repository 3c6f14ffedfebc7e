"""Who needs the body of an entry: what both ends of a link read from its header, and nothing else.

Every header travels to every reader; a body only to whoever its header names, since ``to`` is what says where
an event must be acted on. Answers name the node that asked, so they need no rule of their own. A header that
cannot be read names everybody: whoever meets it keeps it in quarantine, with its body.
"""

from hashlib import sha256

from outbox.chain import Excerpt, Page, Stub
from outbox.envelope import EVERYONE, Header, decode_header
from outbox.errors import InvalidEvent
from outbox.ids import NodeId


def names(header: Header, node: NodeId) -> bool:
    """Whether a node is among those that must act on an entry."""
    return header.to == EVERYONE if isinstance(header.to, str) else node in header.to


def needs_body(header: bytes, node: NodeId) -> bool:
    """Whether a reader may not go past an entry without its body."""
    try:
        return names(decode_header(header), node)
    except InvalidEvent:
        return True


def whole(page: Page) -> Excerpt:
    """A page with all its bodies."""
    return Excerpt(page.epoch, page.entries, page.checkpoint, page.before)


def excerpt(page: Page, reader: NodeId) -> Excerpt:
    """A page with the bodies that one reader needs."""
    entries = tuple(
        entry
        if needs_body(entry.header, reader)
        else Stub(entry.seq, entry.header, sha256(entry.body).digest())
        for entry in page.entries
    )
    return Excerpt(page.epoch, entries, page.checkpoint, page.before)


def withheld(page: Excerpt, reader: NodeId | None) -> Stub | None:
    """The first entry whose body the reader needs and did not get; None for one that needs every body."""
    for entry in page.entries:
        if isinstance(entry, Stub) and (reader is None or needs_body(entry.header, reader)):
            return entry
    return None
