"""Online and offline: which incident of a gateway is which class of the report, and why some have no partner.

A gateway tells of what it sees itself, at the moment; the report tells of what all outboxes together show,
afterwards. What both can see they judge by the same rule and name the same. Everything else is in one of two
further groups, with the reason. ``docs/SLA.md`` shows this table; a test holds it against the engine's code.
"""

from enum import StrEnum
from typing import NamedTuple

from spark.rules import IncidentClass


class Seen(StrEnum):
    """Where a class of incidents can be told."""

    BOTH = "both"
    """The same event, open in both or closed in both."""
    REPORT = "report"
    """Only offline."""
    GATEWAY = "gateway"
    """Only online."""


class Correspondence(NamedTuple):
    """One class of incidents."""

    seen: Seen
    rule: str
    """When the two say the same, or why one says nothing."""


CORRESPONDENCES: dict[str, Correspondence] = {
    IncidentClass.NEVER_ACCEPTED: Correspondence(
        Seen.BOTH,
        "open in both; once accepted the gateway closes it, and the report says `late_ack` if it was late",
    ),
    IncidentClass.ACCEPTED_NOT_PROCESSED: Correspondence(
        Seen.BOTH, "open in both; the report also keeps what was answered too late, closed"
    ),
    IncidentClass.DEAD_LETTER: Correspondence(
        Seen.BOTH, "the same; one that an operator dismissed stays in the report"
    ),
    IncidentClass.TURN_FAILED: Correspondence(
        Seen.BOTH,
        "open in both; a reply closes it at the gateway, and the report keeps it with the state `replied`",
    ),
    IncidentClass.ANSWERED_AFTER_DEAD_LETTER: Correspondence(
        Seen.BOTH, "the same, once the sender's gateway has read the answer"
    ),
    IncidentClass.DUPLICATE_ENGAGEMENT: Correspondence(
        Seen.BOTH,
        "the same for two nodes; one that engages again what it forgot says so, and outboxes do not",
    ),
    IncidentClass.FORK: Correspondence(
        Seen.BOTH, "the same; a gateway closes it once its writer goes on in a later epoch (`rollback`)"
    ),
    IncidentClass.LATE_ACK: Correspondence(
        Seen.REPORT, "for the gateway it is over: an open `never_accepted` that it has closed"
    ),
    IncidentClass.SEQ_GAP: Correspondence(
        Seen.REPORT, "about the lake; a gateway never goes on over a hole that its writer has not signed"
    ),
    IncidentClass.CLOCK_SKEW: Correspondence(
        Seen.REPORT, "gateways measure the offset of each peer and judge by it, not by ACKs"
    ),
    IncidentClass.UNKNOWN_KIND: Correspondence(
        Seen.REPORT, "a gateway passes them on and takes no offence: they are of a later version"
    ),
    IncidentClass.LOOP: Correspondence(
        Seen.REPORT, "the gateway refuses the next answer (`hop_limit`); the agent is told, nobody else"
    ),
    IncidentClass.ROUTING_MISS_REPEATED: Correspondence(
        Seen.REPORT, "a gateway routes anew and judges each attempt by itself"
    ),
    IncidentClass.ETA_BREACH: Correspondence(Seen.REPORT, "gateways carry tasks and do not read them"),
    IncidentClass.PROGRESS_BREACH: Correspondence(Seen.REPORT, "gateways carry tasks and do not read them"),
    IncidentClass.TASK_FAILED: Correspondence(Seen.REPORT, "gateways carry tasks and do not read them"),
    IncidentClass.CONTRACT_MISMATCH: Correspondence(Seen.REPORT, "gateways carry tasks and do not read them"),
    "possible_duplicate": Correspondence(Seen.GATEWAY, "a node that forgot cannot tell if it was done"),
    "quarantined": Correspondence(Seen.GATEWAY, "no events; the report counts them as doubtful"),
    "foreign_agent": Correspondence(Seen.GATEWAY, "the state room decides it, and it is not in outboxes"),
    "inbox_full": Correspondence(Seen.GATEWAY, "refusals of one inbox; the report shows what they hit"),
    "relay_tampered": Correspondence(Seen.GATEWAY, "what a relay did to a stream never enters a lake"),
    "stream_stalled": Correspondence(Seen.GATEWAY, "about links of the moment"),
    "node_revoked": Correspondence(Seen.GATEWAY, "a word of the state room; no outbox holds it"),
    "history_missed": Correspondence(Seen.GATEWAY, "about one reader; the lake notes its own as forgotten"),
    "dead_reader": Correspondence(Seen.GATEWAY, "about who reads an outbox, which no entry says"),
    "stream_epoch": Correspondence(Seen.GATEWAY, "why an own outbox began a new epoch"),
    "stream_recreated": Correspondence(Seen.GATEWAY, "two epochs of one number; a collector takes the first"),
    "rollback": Correspondence(Seen.GATEWAY, "a fork whose writer goes on in a later epoch; reports keep it"),
    "own_stream_forked": Correspondence(Seen.GATEWAY, "the forked node's own view of a fork"),
    "copy_runs": Correspondence(Seen.GATEWAY, "a second process with this node's key"),
    "reported": Correspondence(Seen.GATEWAY, "what a report told the mesh: the report is its source"),
    "maintenance": Correspondence(Seen.GATEWAY, "said to be away; reports mark what opened meanwhile"),
    "blobs_full": Correspondence(Seen.GATEWAY, "about the room on one node"),
}  # fmt: skip
"""Every kind that a gateway opens and every class that the report knows."""
