"""Bounds of links and of dialling, each with its reason."""

LINK_WINDOW_BYTES = 4 * 1024 * 1024
"""Bytes a link may have sent and not seen acknowledged: a slow reader holds no more than this of us."""

LINK_STARTS_WITHIN_S = 15.0
"""A peer that opened a link and says nothing is let go."""

ROOM_PEERS_MAX = 3
"""State-room sockets that a node dials: any connected shape of nodes converges, and two would do."""

DEFER_S = 3.0
"""How long the node with the larger name waits for the other one to dial."""

ANSWER_BYTES_MAX = 64 * 1024
"""What a peer may answer to a challenge or a renewal."""

ASK_WITHIN_S = 10.0
"""How long such an answer may take."""
