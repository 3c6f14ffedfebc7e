"""Every bound of the joining protocol, with its reason."""

BODY_BYTES_MAX = 16 * 1024
"""Requests and answers are a few ids, a token and a proof: 2 KiB in practice."""

JSON_DEPTH_MAX = 6
"""The deepest real document is a key in a header."""

JSON_INT_MAX = 2**53 - 1
"""Beyond this, readers in other languages see another number."""

JWS_CHARS_MAX = 4096
"""The longest real token, a gateway proof with its certificate, has about 1200."""

TICKET_LIFE_S = 45
"""Between the 30 and 60 seconds of the contract: time for one slow TLS handshake and one retry."""

TICKETS_MAX = 10_000
"""Live tickets in one ledger; a mesh of hundreds of nodes reconnecting at once has some thousands."""

NONCE_LIFE_MS = 120_000
"""A person may confirm a fingerprint between challenge and exchange; a replay store must stay small."""

NONCES_MAX = 100_000
"""Consumed nonces kept until they expire by themselves; above it exchanges are refused, not forgotten."""

CLIENT_NONCE_CHARS_MIN = 22
CLIENT_NONCE_CHARS_MAX = 86
"""16 to 64 bytes in base64url."""

ROOMS_MAX = 8
"""The mesh has three."""

ROOM_CHARS_MAX = 63

ENTROPY_BYTES = 48
"""What one call of the gatekeeper or the joiner is given: no call needs more than 42."""

INVITE_LIFE_MS_DEFAULT = 3_600_000
"""An hour: long enough to walk to the other machine."""

INVITE_LIFE_MS_MAX = 30 * 24 * 3_600_000
"""A month; a secret that waits longer is one that somebody forgot."""

JOIN_URLS_MAX = 4
"""Loopback, LAN, tailnet, public name."""

JOIN_URL_CHARS_MAX = 256

JOIN_CODE_CHARS_MAX = 2048
"""Four long URLs, and still a QR code."""

CLIENT_BURST = 200
CLIENT_REFILL_PER_S = 20
"""Requests from one address: a join takes 3, a restart of one node 9; twenty nodes may sit behind one NAT."""

CLIENTS_MAX = 10_000
"""Addresses remembered by the limiter, about 2 MiB; the one idle for longest is forgotten first."""

CLIENT_CHARS_MAX = 64
"""An address and a port in any notation."""

AUDIT_ROUTINE_BURST = 500
AUDIT_ROUTINE_REFILL_PER_S = 0.2
"""Refusals and renewals that strangers or looping members may repeat for ever: at most about 10 MB a day."""

KEY_FILE_BYTES_MAX = 256
"""Of a key's file: one key in base64, and room for a line's end."""

HOSTS_REMEMBERED = 1024
"""Answers remembered: every change of the state room asks about every peer's address."""

KEYS_REMEMBERED = 4096
"""Answers remembered: each peer's key is asked about with every message and every change of the room."""
