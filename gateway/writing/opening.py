"""What there is to know before a journal can be opened for writing."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from auth.certificates import read_certificate
from auth.errors import InvalidJws
from auth.gate import Gate
from auth.keyring import Keyring
from auth.keys import SigningKey
from auth.ledger import Ledger
from gateway.clock import Clock
from gateway.config import Config
from gateway.door import PIPE_ALL, ROOMS
from gateway.engine.policy import Policy
from gateway.home import Home, damaged, read_text
from outbox.ids import NodeId
from outbox.records import Identity
from stateroom.view import View

_BOOT_BYTES = 8


class Boot(msgspec.Struct, frozen=True):
    """Made at a start and never stored: the tickets of an earlier start open nothing."""

    id: str
    ticket_seed: bytes

    @classmethod
    def made(cls, clock: Clock) -> "Boot":
        """A new one."""
        return cls(clock.entropy(_BOOT_BYTES).hex(), clock.entropy(32))

    def __repr__(self) -> str:
        return f"Boot({self.id!r})"


class Open(msgspec.Struct, frozen=True):
    """The first message to the process of the journal."""

    root: str
    runtime: str
    config: Config
    boot: Boot


@dataclass(frozen=True, slots=True)
class Opening:
    """One home at one start."""

    home: Home
    config: Config
    boot: Boot

    @classmethod
    def told(cls, text: bytes) -> "Opening":
        """As another process said it."""
        told = msgspec.json.decode(text, type=Open)
        return cls(Home(Path(told.root), Path(told.runtime)), told.config, told.boot)

    def tell(self) -> bytes:
        """For another process of this machine, over a pipe that nobody else can read."""
        return msgspec.json.encode(Open(str(self.home.root), str(self.home.runtime), self.config, self.boot))

    @property
    def is_seed(self) -> bool:
        """Whether this node can let others in."""
        return self.home.certificate.exists()

    def policy(self, view: View, node: NodeId) -> Policy:
        """The engine's numbers. Copies need all bodies, and those get who was admitted for that."""
        return self.config.policy(seed=self.is_seed, reads_all=view.reads_all(node))

    def _certificate(self, identity: Identity) -> str:
        text = read_text(self.home.certificate)
        try:
            read_certificate(text, identity.mesh)
        except InvalidJws:
            raise damaged(self.home.certificate) from None
        return text

    def gate(self, clock: Clock, identity: Identity, key: SigningKey, ledger: Ledger) -> Gate:
        """What the gatekeeper stands on. Raises HomeError and the keyring's errors."""
        return Gate(
            mesh=identity.mesh,
            node=identity.node,
            node_key=key,
            ticket_key=SigningKey(self.boot.ticket_seed),
            boot=self.boot.id,
            nonce_key=Keyring(self.home.keys).nonce_key(clock.entropy),
            certificate=self._certificate(identity) if self.is_seed else "",
            rooms=(*ROOMS, PIPE_ALL),
            ledger=ledger,
        )
