"""What a node that has forgotten tells of it, what its operator asks, and the answer."""

import msgspec

from outbox.ids import NodeId

POSSIBLE_DUPLICATE = "possible_duplicate"
"""The incident: an event that was perhaps dealt with before that was forgotten, and is perhaps again."""


class EndDoubts(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """Wait no longer for nodes that have to say what was done for them. Answer: DoubtsEnded."""

    req: int


class DoubtsEnded(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """What these nodes have sent is handed to agents again."""

    req: int
    nodes: tuple[NodeId, ...]
