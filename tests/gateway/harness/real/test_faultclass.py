"""The classes as they are named on the command line."""

import pytest

from gateway.errors import ConfigError
from gateway.harness.real.faultclass import FaultClass, chosen


def test_all_none_and_a_list():
    assert chosen("all") == tuple(FaultClass)
    assert chosen("none") == ()
    assert chosen("partition, kill") == (FaultClass.KILL, FaultClass.PARTITION)


def test_an_unknown_class_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError) as caught:
        chosen("kill,earthquake")
    assert "earthquake" in str(caught.value)
    assert "partition" in caught.value.hint
