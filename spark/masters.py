"""Where a job runs, told from the master's URL.

======================  =====================================================================
``local[*]``            in a JVM of this process; nothing else is needed
``spark://host:7077``   a standalone cluster; the driver is this process
``k8s://https://…``     Kubernetes; the driver is this process
``sc://host:15002``     Spark Connect; no JVM here at all
(empty)                 as ``spark-submit`` said: it started this process and its JVM
======================  =====================================================================
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from spark.errors import InvalidMaster

LOCAL = "local[*]"
SUBMITTED = ""

_LOCAL = re.compile(r"local(\[(\*|[1-9]\d{0,2})\])?", re.ASCII)


class Place(StrEnum):
    """The kinds of places."""

    LOCAL = "local"
    CLUSTER = "cluster"
    CONNECT = "connect"
    SUBMITTED = "submitted"


def place_of(master: str) -> Place:
    """What a master's URL names. Raises InvalidMaster."""
    if master == SUBMITTED:
        return Place.SUBMITTED
    if _LOCAL.fullmatch(master):
        return Place.LOCAL
    if master.startswith(("spark://", "k8s://")) or master == "yarn":
        return Place.CLUSTER
    if master.startswith("sc://"):
        return Place.CONNECT
    raise InvalidMaster(
        f"{master[:80]!r} is no master of Spark",
        hint="write local[*], spark://host:7077, k8s://… or sc://host",
    )


def parse_settings(pairs: Iterable[str]) -> dict[str, str]:
    """``KEY=VALUE`` texts as a mapping. Raises InvalidMaster."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.startswith("spark."):
            raise InvalidMaster(
                f"{pair[:80]!r} is no setting of Spark", hint="write spark.executor.memory=2g"
            )
        found[key] = value
    return found
