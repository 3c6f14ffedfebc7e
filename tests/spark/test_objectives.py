"""Objectives over the lifecycle table, each against what was planted."""

from itertools import product

import msgspec
import pytest

from spark.deliveries import deliveries
from spark.events import statements
from spark.objectives import (
    BURN_WINDOWS_MS,
    SELECTORS,
    Measure,
    Objective,
    Share,
    Standing,
    default_objectives,
    standings,
)
from tests.spark.histories import AS_OF_MS, NODES, Turn, history
from tests.spark.reporting import THRESHOLDS, frame, one

DAY_MS = 86_400_000


def objective(measure=Measure.ACCEPTED, limit_ms=1000, *selected, window_ms=DAY_MS, target=0.9):
    return Objective(
        name="o", title="", measure=measure, selected=selected, limit_ms=limit_ms, target=target,
        window_ms=window_ms,
    )  # fmt: skip


SCRIPTS = [
    one(accepted_ms=(900,), turns=(Turn(5000, "ok", "b"),)),
    one(accepted_ms=(1001,), turns=(Turn(60_000, "failed", "b"),)),
    one(accepted_ms=(1000,), to_agent="reviewer"),  # never processed, and long due
    one(),  # never accepted
    one(dead_ms=10),  # given up
    one(created=AS_OF_MS - 500),  # not due yet
    one(created=AS_OF_MS - 2000, accepted_ms=(1,)),  # accepted in the last hour, its turn is not due
    one(answers=0, sender="b", receiver="a", accepted_ms=(900,)),  # a reply to the first message
]


@pytest.fixture(scope="module")
def lifecycle(spark, tmp_path_factory):
    rows = frame(spark, tmp_path_factory.mktemp("objectives"), history(SCRIPTS))
    return deliveries(statements(rows, NODES), THRESHOLDS).cache()


@pytest.mark.parametrize(
    ("asked", "judged", "kept"),
    [
        (objective(), 7, 4),
        (objective(Measure.ACCEPTED, 1001), 7, 5),
        (objective(Measure.ACCEPTED, 1000, ("kind", "reply")), 1, 1),
        (objective(Measure.ACCEPTED, 1000, ("kind", "message"), ("agent", "reviewer")), 1, 1),
        (objective(Measure.ACCEPTED, 1000, ("toNode", "nowhere")), 0, 0),
        (objective(Measure.ACCEPTED, None), 7, 5),
        (objective(Measure.PROCESSED, 10_000), 3, 1),
        (objective(Measure.PROCESSED, None), 3, 1),
        (objective(Measure.ANSWERED, 60_010), 5, 2),
        (objective(Measure.ANSWERED, 60_009), 5, 1),
        (objective(Measure.REPLIED, 1), 7, 1),
    ],
)
def test_counts_what_is_due_and_what_was_kept(lifecycle, asked, judged, kept):
    (found,) = standings(lifecycle, [asked], AS_OF_MS)
    assert (found.whole.judged, found.whole.kept) == (judged, kept)


def test_judges_several_at_once_each_in_its_windows(lifecycle):
    day, hour = standings(lifecycle, [objective(), objective(window_ms=BURN_WINDOWS_MS[0])], AS_OF_MS)
    assert [share.window_ms for share in (day.whole, *day.recent)] == [DAY_MS, *BURN_WINDOWS_MS]
    assert [share.judged for share in day.recent] == [1, 7]  # all but two were made an hour ago or more
    assert (hour.whole, hour.recent) == (Share(BURN_WINDOWS_MS[0], 1, 1), ())
    assert standings(lifecycle, [], AS_OF_MS) == ()


def test_every_selector_names_a_column(lifecycle):
    named = [objective(Measure.ACCEPTED, 1, (name, "x")) for name in SELECTORS]
    assert [found.whole.judged for found in standings(lifecycle, named, AS_OF_MS)] == [0] * len(named)


@pytest.mark.parametrize(("judged", "kept"), list(product((0, 10, 1000), (0, 10, 995))))
def test_the_budget_is_what_may_be_missed(judged, kept):
    kept = min(judged, kept)
    standing = Standing(objective(target=0.99), Share(DAY_MS, judged, kept), ())
    if judged == 0:
        assert (standing.met, standing.budget_left, standing.whole.achieved) == (True, None, None)
        assert standing.whole.burn(0.99) is None
        return
    missed = judged - kept
    assert standing.met == (missed <= standing.allowed + 1e-9)
    assert standing.allowed == pytest.approx(judged / 100)
    assert standing.budget_left == pytest.approx(1 - missed / standing.allowed)
    assert standing.whole.burn(0.99) == pytest.approx(100 * missed / judged)


def test_without_a_file_the_thresholds_are_the_objectives():
    names = [(found.name, found.limit_ms) for found in default_objectives(THRESHOLDS)]
    assert names == [
        ("message-accepted", 60_000),
        ("message-processed", 300_000),
        ("task-create-accepted", 60_000),
        ("task-create-processed", 120_000),
        ("reply-accepted", 60_000),
    ]
    assert msgspec.json.decode(msgspec.json.encode(objective()), type=Objective) == objective()
