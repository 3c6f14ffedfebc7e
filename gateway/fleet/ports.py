"""Ports of loopback for gateways that do not run yet."""

import socket


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    bound = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [place.getsockname()[1] for place in bound]
    finally:
        for place in bound:
            place.close()
