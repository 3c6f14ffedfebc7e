"""How much credit an agent gives back to its gateway, and when: by halves, since each grant is a tick."""


def refill(free: int, granted: int) -> int:
    """What to grant now to an agent that can take ``free`` more turns and has granted so many; 0: nothing.

    Who can take one always has one granted, and no more are granted than can be taken.
    """
    return free - granted if 2 * granted <= free else 0
