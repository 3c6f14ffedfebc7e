"""What was written or asked for lately, as it stands now: the one that writes need not read it again."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from outbox.limits import RECENT_BYTES_MAX, ROWS_RECENT_MAX

Key = TypeVar("Key")
Kept = TypeVar("Kept")


class Recent(Generic[Key, Kept]):
    """Two generations: when the young one is full it becomes the old one, and the old one is forgotten."""

    def __init__(self, kept_max: int = ROWS_RECENT_MAX, bytes_max: int = RECENT_BYTES_MAX) -> None:
        self._half = kept_max // 2
        self._bytes_half = bytes_max // 2
        self._young: dict[Key, Kept] = {}
        self._old: dict[Key, Kept] = {}
        self.bytes = 0
        """Of the young generation, as whoever keeps something large counts them."""

    def get(self, key: Key) -> Kept | None:
        """What is remembered under this key; it is young again."""
        found = self._young.get(key)
        if found is None and (found := self._old.pop(key, None)) is not None:
            self._young[key] = found
        return found

    def keep(self, key: Key, kept: Kept) -> None:
        """Remember it."""
        self._young[key] = kept

    def keep_all(self, kept: Mapping[Key, Kept]) -> None:
        """The same for several."""
        self._young.update(kept)

    def age(self) -> Mapping[Key, Kept]:
        """To be asked for after each commit; returns what is forgotten."""
        if len(self._young) < self._half and self.bytes < self._bytes_half:
            return {}
        forgotten, self._old, self._young, self.bytes = self._old, self._young, {}, 0
        return forgotten

    def clear(self) -> None:
        """Forget all: how things stand is not certain any more."""
        self._young.clear()
        self._old.clear()
        self.bytes = 0
