"""The note that a new epoch is due: a failure adds one, and takes none away."""

from pathlib import Path

import pytest

from gateway.engine.own_stream import Reason
from gateway.epochmark import EpochMark, Mark


@pytest.mark.parametrize("there", [None, *(Mark(reason, ask) for reason in Reason for ask in (True, False))])
def test_a_failed_sync_takes_the_place_of_no_other_note(tmp_path: Path, there: Mark | None) -> None:
    """A restored node whose disk fails at its first start has forgotten as much as before."""
    mark = EpochMark(tmp_path / "epoch")
    if there is not None:
        mark.put(there)
    mark.leave(Mark(Reason.FAILED_SYNC))
    assert mark.read() == (there or Mark(Reason.FAILED_SYNC))
