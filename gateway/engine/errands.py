"""What is too much for one tick: a part of it in each, until all is done.

One input may concern a hundred thousand rows, and a tick that looked at all of them would hold the loop for
seconds. So it is kept in the store that there is something to do, and each tick looks at a bounded number of
rows. How far an errand has come is kept with it where a new engine would not find done what was done. What
comes meanwhile must mean the same as if all had been done at once; who does an errand says how.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from outbox.records import Errand
from outbox.store.errands import ErrandStore


class Part(Protocol):
    """What is asked of a tick here."""

    rows_left: int
    """Rows that errands may still look at in it."""

    @property
    def store(self) -> ErrandStore:
        """Where errands are kept."""
        ...


_Tick = TypeVar("_Tick", bound=Part)
_Tick_contra = TypeVar("_Tick_contra", bound=Part, contravariant=True)


class Task(StrEnum):
    """The kinds of errands."""

    AGAIN = "again"
    """A node that has read the question what this one did, and has not answered, is asked once more."""
    ARRIVAL = "arrival"
    """A blob has come: what waits for it is dealt."""
    ASKING = "asking"
    """A node is asked what became of all that it has accepted."""
    ENDING = "ending"
    """A node was put out: what it is owed ends."""
    HANDS = "hands"
    """This node has forgotten what it did: what was in hands is taken back, and its rows say so."""
    HEARD = "heard"
    """Of an event: what a node has said that it knows of this one is done."""
    JOINING = "joining"
    """An agent came: it is given the broadcasts that were there before it."""
    LAPSE = "lapse"
    """Of a node and the epoch in which it goes on: what it has forgotten is taken back."""
    LEAVING = "leaving"
    """An agent was removed: its turns fail."""
    LOSS = "loss"
    """A blob will not come: what waits for it fails."""
    NAMED = "named"
    """Of an event: a node that has forgotten what it did is told of what it names."""
    OWING = "owing"
    """An epoch began: what has no answer is sent again."""
    QUESTION = "question"
    """This node has forgotten what it did, and asks; what it cannot ask about is reported."""
    RECALL = "recall"
    """A node has forgotten what it did, and is told."""
    RELEASE = "release"
    """A node that has not said what it remembers is not waited for any more: its turns are reported."""
    SAYING = "saying"
    """Of an epoch that has ended: what nobody has seen of it is said again."""
    VOUCHING = "vouching"
    """The room says something new of agents: what was held until then is judged."""


class Work(Protocol[_Tick_contra]):
    """Does one errand, part by part."""

    row: Errand
    """As it is to be kept now."""

    def some(self, tick: _Tick_contra, most: int) -> int:
        """Look at the next rows, at most so many. How many there were: fewer when all is done now."""
        ...


class Errands(Generic[_Tick]):
    """What is left to do, first begun first."""

    def __init__(self, begun: Iterable[Work[_Tick]] = ()) -> None:
        self._works = {(work.row.kind, work.row.subject): work for work in begun}

    def __bool__(self) -> bool:
        return bool(self._works)

    def __contains__(self, key: tuple[str, str]) -> bool:
        """Whether an errand of this kind and subject is not done yet."""
        return key in self._works

    def get(self, kind: Task, subject: str) -> Errand | None:
        """It, as it is kept now; None where nothing is left to do."""
        work = self._works.get((kind, subject))
        return None if work is None else work.row

    def any(self, kind: Task) -> bool:
        """Whether there is one of a kind."""
        if not self._works:
            return False
        return any(known == kind for known, _ in self._works)

    def begin(self, tick: _Tick, work: Work[_Tick]) -> None:
        """All of it is to be done, also what was done if it had begun, and behind all that has begun by now:
        what comes last in an order comes last there too when it begins again.
        """
        tick.store.put_errand(work.row)
        self._works.pop((work.row.kind, work.row.subject), None)
        self._works[work.row.kind, work.row.subject] = work

    def drop(self, tick: _Tick, kind: Task, subject: str) -> None:
        """The rest is not wanted any more; one that is not there is fine."""
        work = self._works.pop((kind, subject), None)
        if work is not None:
            tick.store.drop_errand(work.row)

    def go_on(self, tick: _Tick) -> bool:
        """Do as much of the first one as is left of the tick's share. Whether there was something to do."""
        if tick.rows_left <= 0 or not self._works:
            return False
        key, work = next(iter(self._works.items()))
        most, before = tick.rows_left, work.row
        looked_at = work.some(tick, most)
        tick.rows_left -= looked_at
        if looked_at < most:
            del self._works[key]
            tick.store.drop_errand(work.row)
        elif work.row is not before:
            tick.store.put_errand(work.row)
        return True
