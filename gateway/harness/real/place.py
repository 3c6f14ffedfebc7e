"""Where the second process of a home runs."""

from enum import StrEnum


class Place(StrEnum):
    """Which of the two the others can dial."""

    BESIDE = "beside"
    """The first: the second one has a port that nobody knows."""
    INSTEAD = "instead"
    """The second, which took the first one's port: that one goes on where nobody looks for it."""
