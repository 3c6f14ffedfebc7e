"""Ports of loopback for gateways that do not run yet, and that come back to them after each death."""

import secrets
import socket

LOWEST, HIGHEST = 10_240, 30_000
"""Below the range that systems give to outgoing connections (32768 and above on Linux, 49152 on macOS):
a connection of anybody may else take the port while its gateway is down."""


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different; chosen by chance, so that two runs seldom meet."""
    found: set[int] = set()
    while len(found) < count:
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST)
        if _is_free(port):
            found.add(port)
    return list(found)


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False
