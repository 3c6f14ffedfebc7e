"""Bytes add up to the whole."""

from gateway.backup.progress import Moved


def test_what_was_moved_adds_up() -> None:
    told: list[tuple[int, int]] = []
    moved = Moved(7, lambda done, total: told.append((done, total)))
    moved.add(3)
    moved.add(4)
    assert told == [(3, 7), (7, 7)]
