"""What can be wrong with a blob on its way in.

::

    CallerError
    ├── BlobWrong       blob_wrong      the bytes do not hash to the name
    ├── BlobBusy        conflict        the same blob is on its way in already
    └── BlobOffset      conflict        the bytes do not follow on from what is here
    WorldError
    └── BlobDamaged     blob_damaged    a stored blob is missing or altered
"""

from outbox.errors import CallerError, WorldError


class BlobWrong(CallerError):
    """The bytes do not hash to the name that they came under."""

    code = "blob_wrong"


class BlobBusy(CallerError):
    """The same blob is on its way in already."""

    code = "conflict"
    retryable = True


class BlobOffset(CallerError):
    """The bytes do not follow on from what is here; ``offset`` is where they have to go on."""

    code = "conflict"

    def __init__(self, offset: int) -> None:
        super().__init__(f"{offset} bytes are here", hint=f"go on at {offset}")
        self.offset = offset


class BlobDamaged(WorldError):
    """A stored blob is missing, or is not what its name says."""

    code = "blob_damaged"
    retryable = False
