"""The core of a gateway: inputs in, effects out, one transaction a tick. No I/O, no clock, no randomness."""

from gateway.engine.engine import Engine

__all__ = ["Engine"]
