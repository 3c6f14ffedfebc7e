"""How many requests of one socket are open: read, and their answers not sent yet."""

import asyncio


class RequestsOpen:
    """Bounded by number and by the size of what asked; a socket that reaches a bound is read no further."""

    def __init__(self, requests_max: int, chars_max: int) -> None:
        self._requests_max = requests_max
        self._chars_max = chars_max
        self._requests = 0
        self._chars = 0
        self._fewer = asyncio.Event()

    def began(self, chars: int) -> None:
        """One was read."""
        self._requests += 1
        self._chars += chars

    def ended(self, requests: int, chars: int) -> None:
        """So many, of so many characters together, are answered."""
        self._requests -= requests
        self._chars -= chars
        self._fewer.set()

    async def room(self) -> None:
        """Wait until another may be read."""
        while self._requests >= self._requests_max or self._chars >= self._chars_max:
            self._fewer.clear()
            await self._fewer.wait()
