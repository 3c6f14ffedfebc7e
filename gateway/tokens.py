"""Which bearer token is whose: the operator's, and one for each agent that lives here."""

from auth.scopes import Admin, AsAgent, Scope
from auth.tokens import Holder, hash_token, is_token, make_token, scope_of_token
from gateway.clock import Clock
from gateway.errors import HomeError
from gateway.home import Home, read_text, write_private
from outbox.reader import JournalReader

_TOKEN_BYTES = 32


class TokenTable:
    """Kept in memory, since every request asks; read again when the list of agents changes."""

    def __init__(self, reader: JournalReader, admin_hash: bytes) -> None:
        self._reader = reader
        self._admin = Holder(admin_hash, Admin())
        self._holders = [self._admin]
        self.refresh()

    def refresh(self) -> None:
        """Read the agents' rows again. Raises StorageFailed."""
        agents = [Holder(agent.token_hash, AsAgent(agent.name)) for agent in self._reader.agents()]
        self._holders = [self._admin, *agents]

    def scope(self, token: str) -> Scope | None:
        """What its bearer may do; None for nobody's."""
        return scope_of_token(token, self._holders)


def admin_hash(home: Home, clock: Clock) -> bytes:
    """The hash of the operator's token, which is made at the first start. Raises HomeError."""
    if not home.admin_token.exists():
        token = make_token(clock.entropy(_TOKEN_BYTES))
        write_private(home.admin_token, f"{token.text}\n".encode())
    text = read_text(home.admin_token)
    if not is_token(text):  # who can guess what is there could be the operator
        raise HomeError(
            f"{home.admin_token} holds no token", hint="remove it: the next start makes a new one"
        )
    return hash_token(text)
