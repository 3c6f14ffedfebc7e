"""Places in outboxes as other nodes write them: checked when they are read.

What does not look like this would end the tick that compares or stores it, and with it each gateway that
reads the event.
"""

from typing import Annotated

import msgspec

from outbox.ids import Epoch, Seq
from outbox.limits import SEQ_MAX

EpochName = Annotated[Epoch, msgspec.Meta(pattern=r"\A[0-9]{6}-[0-9a-f]{12}\Z")]
Written = Annotated[Seq, msgspec.Meta(ge=1, le=SEQ_MAX)]
"""Where an entry stands."""
Reached = Annotated[Seq, msgspec.Meta(ge=0, le=SEQ_MAX)]
"""How far somebody has come: 0 is before the first."""
