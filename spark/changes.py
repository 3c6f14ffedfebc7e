"""What is new about incidents since they were last told: opened, changed, or withdrawn.

An incident is withdrawn when it turns out that there was none: the outbox that holds the answer was collected
later than the one that holds the question. So is one of a whole message of which it turns out that it went to
several nodes, each of which has incidents of its own.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOLD = ("severity", "openedAt", "closedAt", "detail", "state")
"""An incident that differs in one of these is told again."""

_SAME = " and ".join(f"now.{name} <=> before.{name}" for name in TOLD)

_ABOUT_THE_SAME = "coalesce(toldOf = subject, true)"

_IT = f"{_ABOUT_THE_SAME} and before.class = now.class"

_NEWS = f"""
concat(
    transform(
        filter(found, now -> not exists(told, before -> {_IT} and {_SAME})),
        now -> named_struct('change', if(exists(told, before -> {_IT}), 'changed', 'opened'), 'hit', now)
    ),
    transform(
        filter(told, before -> not exists(found, now -> {_IT})),
        before -> named_struct('change', 'withdrawn', 'hit', before)
    )
)
"""


def changes(lives: "DataFrame") -> "DataFrame":
    """A row for each that changed: ``change`` (``opened``, ``changed`` or ``withdrawn``) before the columns.

    ``found`` are the incidents of a life that hold now and ``told`` those that were said last: arrays with
    ``class`` and ``TOLD``, whose fields take the place of the two arrays. ``toldOf`` is the ``subject`` of
    those that were said; null where nothing was.
    """
    differ = lives.where(f"not ({_ABOUT_THE_SAME} and found <=> told)").selectExpr("*", f"inline({_NEWS})")
    return differ.selectExpr(
        "change",
        "* except (change, hit, found, told, toldOf, subject)",
        "if(change = 'withdrawn', coalesce(toldOf, subject), subject) as subject",
        "hit.*",
    )


def standing(all_changes: "DataFrame") -> "DataFrame":
    """The incidents that hold after all changes, each as it was told last; ``batch`` says when."""
    names = [name for name in all_changes.columns if name not in {"change", "batch"}]
    last = all_changes.groupBy("incidentId").agg({"batch": "max"}).withColumnRenamed("max(batch)", "batch")
    kept = all_changes.join(last, ["incidentId", "batch"], "left_semi")
    return kept.where("change <> 'withdrawn'").select(*names)
