"""``python -m gateway``: the same as the command ``gateway``."""

import sys

from gateway.cli import run

sys.exit(run())
