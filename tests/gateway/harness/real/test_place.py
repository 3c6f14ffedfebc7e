"""The places of a second process are in every line that tells of one."""

import pytest

from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.injection import Injection
from gateway.harness.real.place import Place
from outbox.ids import NodeId


@pytest.mark.parametrize("place", Place)
def test_it_is_told(place: Place):
    one = Injection(at_ms=0, fault=FaultClass.CLONE, targets=(NodeId("n1"),), for_ms=5_000, point=place)
    assert one.line.endswith(f"n1 for 5.0 s ({place})")
