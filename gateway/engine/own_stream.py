"""What this process has learned about its own outbox from others: may it be shown, is a new epoch due?

A node cannot see from the inside that it has forgotten (a disk that came back as it was yesterday looks
whole). Others can: they hold checkpoints that its key has signed. So after a start nothing new is shown
before a peer has said how far it knows this outbox; and whoever shows a signed head that is not in it makes a
new epoch begin. The rules, in order:

==============  =====================================================================================
``COPIED``      new epochs have not ended it: another process writes with our key *now*
``FORGOTTEN``   a signed head of ours is not in our outbox: a new epoch is due, above all heard of
``ALONE``       nobody else is known: there is nobody who could know better
``UNPROVEN``    peers are known and none has answered: appended, and not shown
``WAITING``     one has answered; others claim without proof to know more, and get a while to prove it
``PROVEN``      shown
==============  =====================================================================================

Once shown, an outbox stays shown until the process ends: a proof that comes late begins a new epoch all the
same. A note that a start has found makes one epoch due and speaks for no other: what is proved later is a
rollback, whatever the note said. This is memory of one process: it outlives an engine that is built anew, and
nothing in it must survive a restart.
"""

from collections.abc import Set
from enum import StrEnum

from gateway.engine.limits import CLAIMS_WAIT_MS, EPOCHS_BEGUN_MAX
from outbox.ids import Epoch, NodeId, epoch_ordinal


class Standing(StrEnum):
    """How the own outbox stands in the mesh."""

    COPIED = "copied"
    FORGOTTEN = "forgotten"
    ALONE = "alone"
    UNPROVEN = "unproven"
    WAITING = "waiting"
    PROVEN = "proven"


class Reason(StrEnum):
    """Why a new epoch begins."""

    RESTORE = "restore"
    """A backup was put back, and says so."""
    ROLLBACK = "rollback"
    """Others hold a signed head that is not in this outbox."""
    FAILED_SYNC = "failed_sync"
    """A sync failed: what was under way may or may not be on disk."""


FORGETS = frozenset({Reason.RESTORE, Reason.ROLLBACK})
"""Reasons by which the ledger is older than what was said: others are asked what they know."""


class OwnStream:
    """The knowledge of one process about the outbox that it found in ``current``, and a note that it found.

    The note says why a new epoch is due, and whether others are asked: an operator may say that they will not
    come.
    """

    def __init__(self, current: Epoch, noted: Reason | None = None, *, ask: bool = True) -> None:
        self.shown = False
        """Others may see what was appended."""
        self._noted, self._ask = noted, ask
        self._found = epoch_ordinal(current)
        self._proved = -1
        """The ordinal of the latest epoch that the next one has to surpass because of what others hold."""
        self._begun: dict[int, Reason] = {}
        """By their ordinals: a transaction that fails, as on a full disk, begins the same one again."""
        self._answered: set[NodeId] = set()
        self._first_answer_ms: int | None = None

    def answered(self, peer: NodeId, now_ms: int) -> None:
        """A peer has said how far it knows this outbox."""
        self._answered.add(peer)
        if self._first_answer_ms is None:
            self._first_answer_ms = now_ms

    def forgot(self, epoch: Epoch) -> None:
        """A head of ours was signed that is not in this outbox: the next epoch surpasses ``epoch``."""
        self._proved = max(self._proved, epoch_ordinal(epoch))

    def began(self, epoch: Epoch, reason: Reason) -> None:
        """An epoch begins, in a transaction that may still fail."""
        self._begun[epoch_ordinal(epoch)] = reason

    def reason_of(self, epoch: Epoch) -> Reason | None:
        """Why an epoch began that is the current one or was; None where another process has begun it."""
        return self._begun.get(epoch_ordinal(epoch))

    def is_due(self, current: Epoch) -> bool:
        """Whether a new epoch has to begin."""
        return epoch_ordinal(current) <= self._proved or self._note(current) is not None

    def reason(self, current: Epoch) -> Reason:
        """Why the epoch begins that is due: of two reasons the one that knows more of what is forgotten."""
        return self._note(current) or Reason.ROLLBACK

    def asks(self, current: Epoch) -> bool:
        """Whether others are waited for once the epoch that is due began. Who has proved it is there."""
        return self._ask or self._note(current) is None

    def next_ordinal(self, current: Epoch) -> int:
        """The ordinal of the epoch that is due."""
        return max(self._proved, epoch_ordinal(current)) + 1

    def _note(self, current: Epoch) -> Reason | None:
        """What the note says of the epoch that is due after ``current``."""
        if epoch_ordinal(current) > self._found:
            return None
        is_proved = epoch_ordinal(current) <= self._proved
        return None if is_proved and self._noted is not Reason.RESTORE else self._noted

    def settled(self, current: Epoch) -> Standing | None:
        """Where it stands whatever others may say; None where they have to be asked."""
        if self.is_due(current):
            return Standing.COPIED if len(self._begun) >= EPOCHS_BEGUN_MAX else Standing.FORGOTTEN
        return Standing.PROVEN if self.shown else None

    def standing(self, current: Epoch, peers: Set[NodeId], claim_more: Set[NodeId], now_ms: int) -> Standing:
        """Where it stands; ``claim_more`` are those who say, unsigned, that they have read beyond its end."""
        settled = self.settled(current)
        if settled is not None:
            return settled
        if not peers:
            return Standing.ALONE
        if self._first_answer_ms is None:
            return Standing.UNPROVEN
        waits = now_ms - self._first_answer_ms < CLAIMS_WAIT_MS
        return Standing.WAITING if waits and claim_more - self._answered else Standing.PROVEN

    def next_ms(self) -> int | None:
        """When waiting for claims ends, on the monotonic clock."""
        if self.shown or self._first_answer_ms is None:
            return None
        return self._first_answer_ms + CLAIMS_WAIT_MS
