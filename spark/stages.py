"""What becomes of a message in the state of a stream.

=========  ==============================================================================================
``open``   more is to be heard of it, or something was lately: it is at hand
``asked``  it is new to the state, and old enough to be among those that were put aside: they are asked
``over``   it is put aside, and opened only when it is heard of again
``gone``   it is forgotten
=========  ==============================================================================================
"""

import msgspec

from spark.deliveries import DELIVERY
from spark.events import ANSWERS, Role
from spark.sides import said

OPEN = """
state in ('emitted', 'retry_pending')
or state = 'accepted' and processDueAt is not null
or taskState in ('created', 'accepted', 'working')
"""
"""A message of which more is to be heard."""

_ALL_ARE_OVER = f"""
taskState is null and not exists(
    halves,
    half -> {said(Role.ADDRESSED, facts="half.facts")}
        and not {said(Role.PROCESSED, *ANSWERS, facts="half.facts")}
        and not coalesce(fromNode in (half.buriedByFirst, half.buriedByLast), false)
)
"""
"""Of a message to several nodes: each of them has ended it, or its sender has given it up there."""


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """The moments that decide in a batch what becomes of a message."""

    as_of_ms: int
    gone_ms: int
    """What is over and was last heard of before is forgotten."""
    over_ms: int
    """What is over and was last heard of before may be put aside."""
    aside_ms: int | None
    """When it was last looked for messages to put aside."""
    asked_ms: int | None
    """When some were: what was created later is not among them. None when none are."""

    @property
    def puts_aside(self) -> bool:
        """It is time again."""
        return self.aside_ms is None or self.aside_ms <= self.over_ms

    @property
    def stage(self) -> str:
        """A SQL expression over a life: ``open``, ``asked``, ``over`` or ``gone``.

        What went to several nodes is put aside when it is over at all of them: its rows belong together, and
        each brings the sides of all.
        """
        asked_ms = -1 if self.asked_ms is None else self.asked_ms
        over_ms = self.over_ms if self.puts_aside else -1
        return f"""case
            when not isKnown and coalesce(unix_millis(createdAt), 0) <= {number_text(asked_ms)} then 'asked'
            when coalesce(kind is not null and ({OPEN}), false) then 'open'
            when lastMs <= {number_text(self.gone_ms)} then 'gone'
            when kind is not null and lastMs <= {number_text(over_ms)}
                and ({DELIVERY} is null or {_ALL_ARE_OVER}) then 'over'
            else 'open'
        end"""


def number_text(value: int) -> str:
    """A number as an SQL expression that is no part of the generated code: each batch has its own."""
    return f"cast('{value}' as bigint)"
