"""Forward, numbered changes of a database's shape.

Each package that keeps tables in the database is a *component* with its own list: 1, 2, 3 … in the order in
which they were written. The database remembers the last number applied for each component, so no package
needs to know of another one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from outbox.errors import DatabaseTooNew, StorageFailed


class Migration(NamedTuple):
    """One step; never edited once released, only followed by another one."""

    number: int
    name: str
    sql: str
    """A script of statements without BEGIN and COMMIT."""


def pending(component: str, migrations: Sequence[Migration], version: int) -> Sequence[Migration]:
    """The steps from a component's version (0 for none) to the newest.

    Raises DatabaseTooNew; ValueError when the list is not numbered 1, 2, 3 …
    """
    if [step.number for step in migrations] != list(range(1, len(migrations) + 1)):
        raise ValueError("migrations are numbered 1, 2, 3 … without holes")
    if version > len(migrations):
        raise DatabaseTooNew(
            f"the {component} tables have version {version}, this program knows {len(migrations)}",
            hint="start the newer version of the program again",
        )
    return migrations[version:]


def check_current(component: str, migrations: Sequence[Migration], version: int) -> None:
    """For readers, which change nothing. Raises DatabaseTooNew, or StorageFailed when steps are missing."""
    if pending(component, migrations, version):
        raise StorageFailed(
            f"the {component} tables have version {version}, this program reads {len(migrations)}",
            hint="start the gateway once, it brings the database up to date",
        )
