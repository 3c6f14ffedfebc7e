"""The one connection that writes to a node's journal, and all that decides about what is written."""

import gc

from auth.gatekeeper import Gatekeeper
from auth.keyring import Keyring
from auth.ledger_schema import LEDGER_MIGRATIONS
from auth.sqlite_ledger import SqliteLedger
from gateway.blobs.reconciling import forget_missing
from gateway.clock import Clock
from gateway.door import Door
from gateway.engine import Engine
from gateway.engine.inputs import Now
from gateway.epochmark import EpochMark
from gateway.hosting.ticking import Ticking
from gateway.limits import GC_GENERATIONS, GC_NEW_OBJECTS
from gateway.writing.opening import Opening
from outbox.blobfiles import BlobFiles
from outbox.errors import MeshError
from outbox.journal import Journal
from stateroom.view import View


class Writer:
    """Whoever makes one holds the lock of the home."""

    def __init__(self, opening: Opening, clock: Clock) -> None:
        """Bring the journal up to date and check its end.

        Raises HomeError, StorageFull, StorageFailed, DatabaseTooNew, BrokenChain, BadCheckpoint and the
        keyring's errors.
        """
        home = opening.home
        self._opening, self._clock = opening, clock
        self._key = Keyring(home.keys).kept_node_key()
        self._journal = Journal.open(home.journal)
        try:
            self._journal.verify_tail(self._key.public.verify)
            self._journal.database.migrate("auth", LEDGER_MIGRATIONS)
            self.blobs_gone = forget_missing(self._journal, BlobFiles(home.blobs))
            """Blobs that should be here and are not."""
            identity = self._journal.identity()
            ledger = SqliteLedger(self._journal.database)
            self._door = Door(Gatekeeper(opening.gate(clock, identity, self._key, ledger)), clock)
            self._own = EpochMark(home.epoch_mark).own_stream(identity.epoch)
        except MeshError:
            self._journal.close()
            raise
        self._policy = opening.config.policy(seed=opening.is_seed)
        """Until a view says what this node may read."""
        self._limits = opening.config.courier_limits()

    def ticking(self, view: View, now: Now) -> Ticking:
        """An engine from what is on disk. Raises StorageFailed."""
        self._policy = self._opening.policy(view, self._journal.identity().node)
        return Ticking(self._journal, self._engine, view, now)

    def close(self) -> None:
        """Let the database go."""
        self._journal.close()

    def _engine(self, view: View, now: Now) -> Engine:
        return Engine(
            self._journal,
            view,
            self._key.sign,
            self._clock,
            now,
            policy=self._policy,
            limits=self._limits,
            desk=self._door,
            own=self._own,
        )


def collect_seldom() -> None:
    """What is there after the start stays: the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_NEW_OBJECTS, GC_GENERATIONS, GC_GENERATIONS)
