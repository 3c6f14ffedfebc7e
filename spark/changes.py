"""What is new about incidents since they were last told: opened, changed, or withdrawn.

An incident is withdrawn when it turns out that there was none: the outbox that holds the answer was collected
later than the one that holds the question.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOLD = ("severity", "closedAt", "detail", "state")
"""An incident that differs in one of these is told again."""


def changes(found: "DataFrame", told: "DataFrame") -> "DataFrame":
    """Rows of the incidents table with ``change`` before them: ``opened``, ``changed`` or ``withdrawn``.

    ``found`` is what holds now and ``told`` what was said last, both about the same messages.
    """
    names = found.columns
    pairs = found.selectExpr("incidentId", "struct(*) as now").join(
        told.selectExpr("incidentId", "struct(*) as before"), "incidentId", "full"
    )
    same = " and ".join(f"now.{name} <=> before.{name}" for name in TOLD)
    kind = f"""
    case when before is null then 'opened'
         when now is null then 'withdrawn'
         when not ({same}) then 'changed' end
    """
    either = (f"if(now is null, before.{name}, now.{name}) as {name}" for name in names)
    return pairs.selectExpr(f"{kind} as change", *either).where("change is not null")


def standing(all_changes: "DataFrame") -> "DataFrame":
    """The incidents that hold after all changes, each as it was told last; ``batch`` says when."""
    names = [name for name in all_changes.columns if name not in {"change", "batch"}]
    last = all_changes.groupBy("incidentId").agg({"batch": "max"}).withColumnRenamed("max(batch)", "batch")
    kept = all_changes.join(last, ["incidentId", "batch"], "left_semi")
    return kept.where("change <> 'withdrawn'").select(*names)
