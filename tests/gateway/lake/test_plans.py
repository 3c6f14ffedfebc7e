from gateway.lake.plans import PLANS
from gateway.lake.steps import Who
from spark.rules import STREAM_RULES, IncidentClass


def test_every_class_of_incident_is_planted():
    planted = {name for plan in PLANS for name in plan.incidents}
    assert planted == set(IncidentClass) - set(STREAM_RULES) | {IncidentClass.UNKNOWN_KIND}


def test_what_goes_wrong_in_a_group_goes_wrong_at_one_node():
    for plan in PLANS:
        assert (plan.at is not None) == (plan.steps[0].to_group and bool(plan.incidents)), plan.name


def test_most_stories_are_good_ones_and_their_shares_are_of_ten_thousand():
    assert sum(plan.weight for plan in PLANS) == 10_000
    assert sum(plan.weight for plan in PLANS if not plan.incidents) > 9_000


def test_steps_speak_of_what_came_before_them_and_the_root_comes_first():
    for plan in PLANS:
        assert plan.steps[0].after_ms == (0, 0), plan.name
        assert plan.steps[0].by is Who.SENDER, plan.name
        for place, step in enumerate(plan.steps):
            assert step.about < max(place, 1), plan.name
            assert step.after_ms[0] <= step.after_ms[1], plan.name
