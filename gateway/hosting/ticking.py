"""One engine and its store: one transaction a batch, and an engine built anew after each that failed."""

from collections.abc import Sequence

from gateway.crashpoint import CrashPoint, crashpoint
from gateway.engine.effects import Effect
from gateway.engine.inputs import Input, Now, ViewChanged
from gateway.engine.rest import Rest
from gateway.hosting.host import EngineFailed, MakeEngine
from outbox.database import NO_ROOM
from outbox.errors import StorageFull
from outbox.store import Store
from stateroom.view import View

BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What a mistake in the engine raises: it harms the sender of one input, not the gateway."""


class Ticking:
    """Used by one thread."""

    def __init__(self, store: Store, make_engine: MakeEngine, view: View, now: Now) -> None:
        self._store = store
        self._make_engine = make_engine
        self._view = view
        self._engine = make_engine(view, now)
        self.rest: Rest = self._engine.rest(now)

    def apply(self, batch: Sequence[Input], now: Now) -> list[Effect]:
        """See ``EngineHost.apply``. Raises StorageFull, EngineFailed, StorageFailed."""
        for item in batch:
            if type(item) is ViewChanged:
                self._view = item.view
        if self._store.read_only:
            self._store.find_room()
        try:
            effects = self._decide(batch, now)
        except StorageFull:
            self._store.read_only = True
            self._rebuild(now)
            raise
        except BUGS as error:
            self._rebuild(now)
            raise EngineFailed(repr(error)) from error
        self.rest = self._engine.rest(now)
        return effects

    def _decide(self, batch: Sequence[Input], now: Now) -> list[Effect]:
        try:
            self._store.begin()
            effects = self._engine.apply(batch, now)
            self._need_room()
            crashpoint(CrashPoint.ENGINE_BEFORE_COMMIT)
            self._store.commit()
            crashpoint(CrashPoint.ENGINE_AFTER_COMMIT)
        except BaseException:
            self._store.rollback()
            raise
        return effects

    def _need_room(self) -> None:
        """Where there is none the engine has left what is due: nothing of such a tick may be kept.

        Raises StorageFull.
        """
        if self._store.read_only and not self._store.only_asked:
            raise StorageFull("there was no room, and none was found since", hint=NO_ROOM)

    def _rebuild(self, now: Now) -> None:
        """Its memory is ahead of the disk: what it has decided did not happen."""
        self._engine = self._make_engine(self._view, now)
        self.rest = self._engine.rest(now)
