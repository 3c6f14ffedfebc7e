from spark.tasks import STEPS, TaskKind, TaskPayload, task_kind


def test_kinds_are_known_by_name():
    assert [task_kind(kind) for kind in TaskKind] == list(TaskKind)
    assert task_kind("message") is None
    assert set(STEPS) == set(TaskKind) - {TaskKind.CREATE}


def test_versions_are_those_that_the_event_speaks_of():
    created = TaskPayload(requested_version="^1", delegation_skill_version="1.0.0")
    assert (created.version, created.skill_version) == ("^1", "1.0.0")
    accepted = TaskPayload(requested_version="^1", resolved_version="1.4.2", executor_skill_version="2.0.0")
    assert (accepted.version, accepted.skill_version) == ("1.4.2", "2.0.0")
