"""The in-memory twin of the journal, for tests and the deterministic simulation.

It passes the same tests as the journal.
"""

from outbox.twin.blobs import TwinBlobs
from outbox.twin.copies import TwinCopies
from outbox.twin.cursors import TwinCursors
from outbox.twin.errands import TwinErrands
from outbox.twin.retention import TwinRetention


class MemoryStore(TwinBlobs, TwinRetention, TwinCursors, TwinCopies, TwinErrands):
    """``outbox.store.Store`` in dictionaries; nothing survives the object."""
