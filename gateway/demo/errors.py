"""Errors of the demo, below the mesh's tree.

::

    MeshError
    └── CallerError
        └── InvalidConversation   invalid_conversation   a line of the file is wrong
"""

from outbox.errors import CallerError


class InvalidConversation(CallerError):
    """The conversation file cannot be played.

    ``line`` is 1 for its first line, 0 for the file as a whole.
    """

    code = "invalid_conversation"

    def __init__(self, line: int, what: str, *, hint: str = "") -> None:
        super().__init__(f"line {line}: {what}" if line else what, hint=hint)
        self.line = line
