"""Why a backup cannot be made or put back.

::

    WorldError
    └── BackupFailed    backup_failed    the file cannot be written or read, or is not what it says
"""

from outbox.errors import WorldError


class BackupFailed(WorldError):
    """A backup cannot be written or read, or it is not what it says."""

    code = "backup_failed"
    retryable = False
