"""Connections of a listener that have asked for nothing yet, or for something that is no socket.

Anybody may connect to the peer listener, and each connection takes one of the files that a process may have
open. Without a bound a stranger takes them all, and the agents of this machine find no gateway. So there may
be so many at a time; one more lets go of the one that has waited longest. Whoever means it is done in
milliseconds, and a socket that was let in does not count.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Connection = TypeVar("_Connection", bound=Hashable)


class Crowd(Generic[_Connection]):
    """Who is there, in the order of their coming."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._there: dict[_Connection, None] = {}

    def __len__(self) -> int:
        return len(self._there)

    def come(self, connection: _Connection, is_served: Callable[[_Connection], bool]) -> _Connection | None:
        """One more. Returns the one to let go of for it: the oldest that is not being served, else itself."""
        self._there[connection] = None
        if len(self._there) <= self._most:
            return None
        gone = next((other for other in self._there if not is_served(other)), connection)
        self.leave(gone)
        return gone

    def leave(self, connection: _Connection) -> None:
        """It is closed, or has become a socket."""
        self._there.pop(connection, None)
