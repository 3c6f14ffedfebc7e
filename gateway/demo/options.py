"""What a user may choose for a run of the demo."""

from pathlib import Path

import msgspec

from gateway.demo.limits import DURATION_S_DEFAULT


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of ``gateway demo``."""

    messages: Path | None = None
    """A conversation file; None plays the one that comes with the package."""
    duration_ms: int = DURATION_S_DEFAULT * 1000
    """How long the conversation takes."""
    keep: bool = False
    """Leave the mesh running."""
    directory: Path | None = None
    """Where everything goes; it must be empty or new. None makes a temporary one."""
    json: bool = False
    """One JSON document instead of tables."""
    report: bool = True
    """Collect the outboxes and run the Spark job."""
