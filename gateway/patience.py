"""Which inputs may wait for the next tick instead of asking for one: nobody here waits for what they do.

A page of ACKs moves rows of this node's own obligations and hands nothing to anybody. A round trip brings two
of them, each a moment before something that has a commit coming anyway.
"""

from gateway.engine.inputs import Input, PageRead
from outbox.envelope import decode_header
from outbox.errors import InvalidEvent
from outbox.kinds import Kind


def may_wait(item: Input) -> bool:
    """Whether it is a page with nothing but ACKs in it; one that cannot be read is looked at now."""
    if not isinstance(item, PageRead):
        return False
    try:
        return all(decode_header(entry.header).kind == Kind.ACK for entry in item.page.entries)
    except InvalidEvent:
        return False
