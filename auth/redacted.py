"""Records that hold a secret print their harmless fields only."""

from typing import Any, ClassVar

import msgspec


class Redacted(msgspec.Struct, frozen=True):
    """Base of such records; ``shown`` names the fields that logs and tracebacks may see."""

    shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields}{', ' if fields else ''}…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.shown]
