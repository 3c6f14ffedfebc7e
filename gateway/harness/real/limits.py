"""Every bound of a run on real processes, with its reason. Milliseconds unless the name says otherwise."""

NODES_MIN, NODES_MAX = 2, 12
"""A dozen gateways fill a laptop."""

DURATION_S_MIN, DURATION_S_MAX = 5, 24 * 3600
RATE_MIN, RATE_MAX = 0.1, 500.0
"""Messages a second of the whole mesh; beyond it the harness, one process, is what is measured."""

BURST_EVERY_MS = 9_000
BURST = 40
"""Every few seconds a crowd at one node: far more than one tick of steady talk."""

BURST_WORKERS = 8
"""Sends of one node at a time: one that waits for a dead gateway does not hold all others up."""

BRIEF = "brief"
"""How the keys of messages begin that may expire."""

BRIEF_SHARE = 0.05
BRIEF_MS = 4_000
"""A few messages live so short that faults outlive them: they may end as expired, and must end."""

CREDIT = 4
"""Unanswered turns of one agent."""

LEASE_MS = 3_000
DELIVERIES_MAX = 4
"""Short leases: agents that are slow or silent lose their turns within the run."""

ACCEPT_MS = 60_000
"""The promise from a send to accepted: some faults last longer, and never for long."""

PROCESS_MS = 5_000
"""The promise from accepted to processed: slow and silent agents break it, and their senders ask once."""

RETRY_FIRST_MS, RETRY_CAP_MS, ACK_TIMEOUT_MS = 500, 4_000, 3_000
RETRY_ATTEMPTS = 12

SLOW_AGENT_MS = 1_200
"""The longest work of a slow agent: under its lease for one turn, not for a handful of them."""

PAUSE_MS = 250
"""Of agents and senders that were refused for a while (a full disk), before they ask again."""

FAULT_EVERY_MS = 2_500
"""Mean time between two faults: several are there at once."""

MEMORY_GAP_MS = 15_000
"""Between two nodes that forget: else nobody is left who remembers for the other one."""

CLONE_SAYS_PER_S = 2.0
"""Messages of the agents that are at a clone."""

WARM_UP_MS = 1_500
"""Of quiet at the start, so that the first fault meets traffic."""

FLAP_EVERY_MS = 300
"""Between two cuts of a flapping link."""

DISK_MIB = 160
"""Size of a disk that will be full: write-ahead logs grown ahead, room, five minutes of all outboxes."""

DISK_CHUNK_BYTES = 64 * 1024

CHAIN_WAIT_S = 5.0
"""From a cable's connection to the words that say who dials."""

DIALLER_BYTES_MAX = 64 * 1024
"""The head of a request, ticket and proof included."""

PUMP_BYTES = 64 * 1024
"""One read of a cable; at most two of them are held in each direction."""

IP_WITHIN_S = 10.0
"""One call of ``ip`` or ``tc``: some milliseconds."""

NS_PORT = 7420
"""Of every gateway in a namespace of its own."""

LINK_DOWN_S = 0.1
"""The cable of a flapping node is out for so long."""

ATTACHED_WITHIN_S = 10.0
"""Until ``strace`` holds a process."""

EXPLAINS_MS = 12_000
"""After a disk failed: the gateway says goodbye for up to five seconds, and restarts may follow."""

REVIVE_PAUSE_S = 0.3
REVIVES_MAX = 40
"""A gateway that does not come up is started again, but not for ever."""

HEAL_WITHIN_S = 60.0
"""From the last fault to all gateways up and linked: longest back-off 30 s, half-open links 20 s."""

REST_WITHIN_S = 120.0
"""From then until nothing is on its way: the bound of invariant I4."""

SENDS_WITHIN_S = 60.0
"""After the heal, until each send has its answer."""

FAULTS_SHOWN = 40
"""A screenful: the first few tell the story."""

FAILED_STATUS = 1
"""Of a gateway that ended because the process of its journal did."""
