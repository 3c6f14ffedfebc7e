"""The command ``gateway``."""

from gateway.cli.main import main, run

__all__ = ["main", "run"]
