"""Skill reviews: which skills of which capability the incidents of its tasks point at."""

from typing import TYPE_CHECKING

from spark.events import quoted
from spark.limits import SAMPLE_IDS_MAX
from spark.rules import IncidentClass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REVIEWED = (
    IncidentClass.NEVER_ACCEPTED,
    IncidentClass.ACCEPTED_NOT_PROCESSED,
    IncidentClass.DEAD_LETTER,
    IncidentClass.TURN_FAILED,
    IncidentClass.ETA_BREACH,
    IncidentClass.PROGRESS_BREACH,
    IncidentClass.TASK_FAILED,
    IncidentClass.CONTRACT_MISMATCH,
    IncidentClass.ROUTING_MISS_REPEATED,
)
"""What says something about a skill: breaches of its times, failures, contracts, routes."""

COLUMNS = (
    "capabilityId",
    "delegationVersion",
    "executorVersion",
    "failureClass",
    "incidents",
    "firstAt",
    "lastAt",
    "sampleCorrIds",
)
"""The reviews table: one row for each capability, pair of skill versions and class."""


def reviews(incidents: "DataFrame") -> "DataFrame":
    """The table with ``COLUMNS``. Samples are event ids of tasks, the first by name."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    found = incidents.where(f"capabilityId is not null and class in ({quoted(REVIEWED)})")
    return (
        found.withColumnRenamed("class", "failureClass")
        .groupBy("capabilityId", "delegationVersion", "executorVersion", "failureClass")
        .agg(
            F.expr("count(*)").alias("incidents"),
            F.expr("min(openedAt)").alias("firstAt"),
            F.expr("max(openedAt)").alias("lastAt"),
            F.expr(f"slice(array_sort(collect_set(rootId)), 1, {SAMPLE_IDS_MAX})").alias("sampleCorrIds"),
        )
        .select(*COLUMNS)
    )
