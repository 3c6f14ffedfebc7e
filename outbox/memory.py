"""The in-memory twin of the journal, for tests and the deterministic simulation.

It passes the same tests as the journal.
"""

from outbox.twin.agents import TwinAgents
from outbox.twin.cursors import TwinCursors
from outbox.twin.deliveries import TwinDeliveries
from outbox.twin.epochs import TwinEpochs
from outbox.twin.incidents import TwinIncidents
from outbox.twin.ledger import TwinLedger


class MemoryStore(TwinEpochs, TwinDeliveries, TwinCursors, TwinLedger, TwinIncidents, TwinAgents):
    """``outbox.store.Store`` in dictionaries; nothing survives the object."""
