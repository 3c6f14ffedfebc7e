"""The name of the schema that a payload follows: carried for the receiving agent, checked by nobody.

Source: ``schema`` in the envelope table of ``docs/PROTOCOL.md``.
"""

import re

from outbox.errors import InvalidEvent
from outbox.limits import SCHEMA_MAX

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+#-]*", re.ASCII)


def check_schema_name(text: str) -> None:
    """Raises InvalidEvent unless it is a name, such as ``xeno/sprint-assign@v1``."""
    if len(text) > SCHEMA_MAX or not _NAME.fullmatch(text):
        raise InvalidEvent(
            f"{text[:80]!r} is no name of a schema",
            hint=f"1 to {SCHEMA_MAX} of A-Z a-z 0-9 . _ : / @ + # -, first a letter or digit: orders/new@v1",
        )
