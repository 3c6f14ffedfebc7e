"""Scenario files: a world, why it is kept, and what its trace must show.

::

    # The tenth return of an agent ended its process.
    seed: 16
    nodes: 3
    agents_per_node: 1
    minutes: 15
    messages: 40
    every_s: 20
    faults: removal
    shows: n1 agent n1-a0 goes
    shows: n1 agent n1-a0 comes

Comments say why. ``shows`` lines are found in the trace in their order, each as the beginning of a line after
its time. The verdict must be clean: a scenario is a bug that was fixed.
"""

from collections.abc import Iterable

import msgspec

from gateway.harness.sim.plan import Fault, Plan
from outbox.errors import InvalidEvent

_NUMBERS = ("seed", "nodes", "agents_per_node", "minutes", "messages", "every_s")


class Scenario(msgspec.Struct, frozen=True):
    """One file."""

    plan: Plan
    shows: tuple[str, ...]


def parse_scenario(text: str) -> Scenario:
    """Read a file. Raises InvalidEvent with the line that is wrong."""
    numbers: dict[str, int] = {}
    faults: tuple[Fault, ...] = ()
    shows: list[str] = []
    for line in text.splitlines():
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip() or line.startswith("#"):
            continue
        if name in _NUMBERS and value.isdigit():
            numbers[name] = int(value)
        elif name == "faults" and colon and set(value.split()) <= set(Fault):
            faults = tuple(Fault(word) for word in value.split())
        elif name == "shows" and value:
            shows.append(value)
        else:
            raise InvalidEvent(f"not a line of a scenario: {line[:80]!r}")
    missing = [name for name in _NUMBERS if name not in numbers]
    if missing:
        raise InvalidEvent(f"a scenario needs {', '.join(missing)}")
    return Scenario(Plan(faults=faults, **numbers), tuple(shows))


def text_of(plan: Plan, why: str) -> str:
    """A new scenario file for a world."""
    lines = [f"# {why}", *(f"{name}: {getattr(plan, name)}" for name in _NUMBERS)]
    return "\n".join([*lines, f"faults: {' '.join(plan.faults)}"]) + "\n"


def missing_line(shows: Iterable[str], trace: Iterable[str]) -> str | None:
    """The first line of ``shows`` that the trace does not show in its place."""
    lines = iter(trace)
    for wanted in shows:
        if not any(line.partition(" ")[2].startswith(wanted) for line in lines):
            return wanted
    return None
