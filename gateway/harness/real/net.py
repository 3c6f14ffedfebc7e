"""The networks that a run can be played on."""

from enum import StrEnum


class Net(StrEnum):
    """What the ways between gateways are made of."""

    LOOPBACK = "loopback"
    """TCP cables of the harness on 127.0.0.1: on any machine, by anybody."""
    NS = "ns"
    """A network namespace for each gateway: Linux, root, ``ip``."""
