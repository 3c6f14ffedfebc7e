"""What an operator may ask about incidents: an input of the engine, like those of ``inputs``."""

import msgspec


class CloseIncidents(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """An operator has seen enough of some that tell of the past. Answer: IncidentsClosed.

    What is given narrows: with all three, those of this kind and these subjects from before the time.
    """

    req: int
    subjects: tuple[str, ...] = ()
    """About these; none: about anything."""
    kind: str | None = None
    before_ms: int | None = None
    """Opened before this time."""
