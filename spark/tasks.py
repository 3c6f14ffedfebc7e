"""Tasks as the report reads them: the kinds of their steps and what their payloads say.

::

    task_create ─▶ task_accept ─▶ task_update … ─▶ task_complete | task_failed

Each step is an event of the node that took it; ``corrId`` names the ``task_create``. Fields that a payload
does not have are null; fields that are not listed here are not looked at.

Source: ``docs/SLA.md``, "Tasks".
"""

from enum import StrEnum

import msgspec


class TaskKind(StrEnum):
    """The kinds of events that tasks are made of."""

    CREATE = "task_create"
    ACCEPT = "task_accept"
    UPDATE = "task_update"
    COMPLETE = "task_complete"
    FAILED = "task_failed"


STEPS = (TaskKind.ACCEPT, TaskKind.UPDATE, TaskKind.COMPLETE, TaskKind.FAILED)
"""The kinds that say something of a task which exists."""

CONTRACT_MISMATCH = "contract_mismatch"
"""``errorClass`` of a task whose result is not what the capability's contract promises."""


class TaskPayload(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What the report reads of any task event."""

    capability_id: str | None = None
    requested_version: str | None = None
    """On ``task_create``."""
    resolved_version: str | None = None
    """On ``task_accept``."""
    delegation_skill_version: str | None = None
    """On ``task_create``: the skill by which the requester wrote it."""
    executor_skill_version: str | None = None
    """On the steps: the skill by which the executor works."""
    accept_within_ms: int | None = None
    complete_within_ms: int | None = None
    eta_at: str | None = None
    """RFC 3339: when it will be done."""
    error_class: str | None = None
    """On ``task_failed``."""
    error: str | None = None
    """On ``task_failed``."""

    @property
    def version(self) -> str | None:
        """The capability's version that this event speaks of."""
        return self.resolved_version or self.requested_version

    @property
    def skill_version(self) -> str | None:
        """The skill's version by which this event was made."""
        return self.executor_skill_version or self.delegation_skill_version


def task_kind(text: str) -> TaskKind | None:
    """The task kind of that name; None for any other kind."""
    return TaskKind(text) if text in _NAMES else None


_NAMES = frozenset(TaskKind)
