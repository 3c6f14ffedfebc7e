"""Every bound of the state room, with its reason."""

from outbox.rates import Rate

# --- records

RECORD_CHARS_MAX = 16 * 1024
"""One record as text. A cursors record of 100 nodes takes 6 KiB, everything else well below 1 KiB."""

FORK_CHARS_MAX = 64 * 1024
"""The record of a fork: it shows the hashes of up to a batch of entries. Only real forks have one."""

FORKS_PER_NODE_MAX = 16
"""Forked epochs of one node that the room tells of: whoever forks more is no more of a liar by that."""

STANDS_MAX = 480
"""Records of a revoked key that one revocation keeps in force: what fits into a record. A member has its
agents, a seed whom it has admitted as well."""

EPOCH_ORDINAL_MAX = 999_999
"""Six digits of an epoch's name."""

NEXT_EPOCH_STEP = 1000
"""By so much the epochs of a node that comes back with another key lie above those of the former key, which
may have begun some more before everybody had heard of its end. Six digits allow for a thousand returns."""

RECORDS_REMEMBERED = 64
"""Records in both forms: whoever signs one reads it again when it is put into the room. 4 MiB at most."""

HANDOVERS_MAX = 8
"""Changes of owner that one agent record may prove, one inside the next; a seed's word needs no proof."""

ENDPOINTS_MAX = 8
LINKS_MAX = 256
CURSORS_MAX = 1024
"""Entries of the lists inside one body: more than the mesh has nodes would be noise."""

TEXT_CHARS_MAX = 512
"""A URL, a version, a hash: short texts inside a body."""

FIRST_OWNER_EPOCH = 1
"""The owner epoch of a first claim; a stranger cannot begin above it and so outrank the owner."""

CLOCK_MAX = 2**53 - 1
"""Counters and Yjs clocks must survive JavaScript's numbers."""

YJS_CLOCK_MAX = 2**31 - 1
"""A client id lives from one start to the next, and yrs counts its writes in 32 bits."""

# --- index

KEYS_MAX = 50_000
"""Keys of one mesh: 100 nodes with 100 agents each stay at a fifth."""

CANDIDATES_PER_KEY_MAX = 16
"""Records of one key kept while they cannot be judged, or because they prove an owner."""

WAITING_MAX = 20_000
"""Records of all keys kept while their signer is not admitted: a joiner reads the room in any order."""

VERDICTS_MAX = 65_536
"""Signature checks remembered (61 µs each); one entry is 100 bytes."""

# --- bytes from peers

UPDATE_BYTES_MAX = 16 * 1024 * 1024
"""One update. The whole room must fit into one: that is a joiner's first SyncStep2."""

MESSAGE_BYTES_MAX = UPDATE_BYTES_MAX + 1024
"""One WebSocket message: an update and its frame."""

LONG_UPDATE_BYTES = 32 * 1024
"""Above it an update, or a state vector, is looked at beside the loop: ten milliseconds."""

STUCK_BYTES_MAX = 1024 * 1024
"""Updates of which parts wait for each other, until the document is given up that holds them. Nobody but a
liar sends one, and is thrown out."""

STATE_VECTOR_BYTES_MAX = 2 * 1024 * 1024
"""A state vector holds 6 bytes for each start of each node, for ever. Above it no two of them come in step
again: 350,000 starts, so that one which fails and is started again every other second has a week."""

ROOM_BYTES_MAX = UPDATE_BYTES_MAX
"""Snapshot and log of a room: 10,000 agents take 3.4 MB."""

BATCH_BYTES_MAX = 4 * 1024 * 1024
"""Update bytes gathered while the store is busy; above it no more is read from the peers."""

KEY_BYTES_MAX = 128
"""A key of a map: node and agent names end at 63."""

AWARENESS_BYTES_MAX = 512 * 1024
AWARENESS_ENTRIES_MAX = 512
"""Heartbeats in one message: a snapshot for a joiner is the largest."""

# --- presence

STALE_MS = 30_000
"""A node unheard for so long is offline: two lost heartbeats of 15 s, as in y-protocols."""

HEARD_RATE = Rate(20, 2)
"""Heartbeats of one node that are looked at: it sends one in five seconds. And reports of activity: two a
minute."""

NODES_PRESENT_MAX = 1024
"""Nodes whose presence is kept."""

AGENTS_ACTIVE_MAX = 32
"""Agents whose last activity a node tells: with the longest names they fit into one record."""

# --- rooms

WINDOW_S = 0.015
"""Updates of so long are merged and encoded once for all peers: a third of the work, unseen by people."""

READ_SLICE = 128
"""Values shown to the index at a time, some 15 ms of signatures: a joiner's 10,000 must not hold the loop."""

SEND_QUEUE_BYTES_MAX = 4 * 1024 * 1024
"""Bytes that may wait for one peer when a frame is added. Above it the peer is closed and syncs anew."""

SEND_QUEUE_FRAMES_MAX = 1024
"""Frames waiting for one peer."""

CONNECTIONS_PER_PEER_MAX = 8
"""A node has one, and for a while those whose line broke: each holds a queue, a file and a task."""

SEND_TIMEOUT_S = 15.0
"""A peer that takes nothing for so long is closed: keepalive alone never frees a stalled reader."""

KEEPALIVE_S = 15.0
"""A stock y-websocket drops a link that was silent for 30 s; WebSocket pings do not count for it."""

RESYNC_S = 60.0
"""A state vector is asked again this often, so that a lost update never stays lost."""

TICK_S = 1.0
"""How often presence expires and overwritten records of others are put back."""

PUT_BACK_PER_TICK = 50
"""Records put back at a time, of all that were overwritten: repair must not become a storm."""

PUT_BACK_QUEUE_MAX = 4096
"""Keys waiting to be put back; a key forgotten here is found again by its owner or by the next resync."""

# --- store

LOG_ROWS_MAX = 1000
LOG_BYTES_MAX = 4 * 1024 * 1024
"""Log entries and bytes after which the log is folded into the snapshot (30-130 ms)."""

# --- dialler

BACKOFF_FIRST_S = 0.5
BACKOFF_CAP_S = 30.0
"""Wait before a new attempt: full jitter below a doubling bound."""

STEADY_S = 10.0
"""A session that lived so long ends the series of failures; one that dies at once must not spin."""

PING_S = 10.0
PONG_S = 10.0
"""A half-open connection is found within 20 s."""

OPEN_TIMEOUT_S = 10.0
"""A handshake over a slow mobile line."""

CLOSE_TIMEOUT_S = 2.0
"""Whoever does not answer a goodbye by then is gone; the next attempt must not wait for it."""

FALLBACKS_MAX = 8
"""Nodes that stand in for one agent: a record is carried by everybody."""

GROUPS_MAX = 16
"""Groups of one agent, for the same reason."""

VARINT_BYTES_MAX = 8
"""2^53 fits into eight groups of seven bits."""
