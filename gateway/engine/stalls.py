"""What links find out about streams that stand still: inputs of the engine."""

import msgspec

from outbox.ids import NodeId


class StreamStalled(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A peer has more of a stream than it brings, for a minute, over a link that is up."""

    node: NodeId
    peer: NodeId


class StreamFlows(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """That stream moves again, or nobody is known to have more of it."""

    node: NodeId
