"""Ports for gateways: free, all different, and none that an outgoing connection could be given."""

import socket
import sys
from pathlib import Path

import pytest

from gateway.fleet.ports import HIGHEST, LOWEST, free_ports


def test_ports_are_free_and_different() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(LOWEST <= port < HIGHEST for port in ports)
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.skipif(sys.platform != "linux", reason="the range is read from /proc")
def test_outgoing_connections_get_other_ports() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert first >= HIGHEST or last < LOWEST
