"""How several processes share the suite (``pytest -n 2``): tests of one share stay in one of them.

``--dist loadgroup`` would read this from marks; with pytest 9.2 it does not (pytest-xdist, issue 1386).
"""

from xdist.scheduler import LoadScopeScheduling

WHOLE = ("tests/spark/",)
"""Folders that are one share: their tests have one Spark session, which is dear to start and to keep."""

SINGLE = ("tests/mesh/", "tests/simulation/")
"""Folders whose tests last long and have nothing in common: each is a share, so that all end together."""


def share_of(test: str) -> str:
    """The share of a test; of most it is their file, since fixtures may be of a module."""
    for folder in WHOLE:
        if test.startswith(folder):
            return folder
    return test if test.startswith(SINGLE) else test.partition("::")[0]


class Shares(LoadScopeScheduling):
    """Hands out shares, those of the most tests first."""

    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)
