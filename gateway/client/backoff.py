"""How long to wait before the next try: full jitter, so that clients do not come back all at once.

Core: the random fraction is an argument.
"""


def backoff_s(failures: int, fraction: float, *, first_s: float, cap_s: float) -> float:
    """The wait after so many failures in a row (1, 2, …), for a fraction of at least 0 and below 1."""
    return fraction * float(min(cap_s, first_s * 2 ** min(failures - 1, 30)))
