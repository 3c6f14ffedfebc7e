import pytest

from outbox.errors import DatabaseTooNew, StorageFailed
from outbox.migration import Migration, check_current, pending

STEPS = [Migration(1, "one", ""), Migration(2, "two", "")]


@pytest.mark.parametrize(("version", "numbers"), [(0, [1, 2]), (1, [2]), (2, [])])
def test_what_is_left_to_do(version: int, numbers: list[int]) -> None:
    assert [step.number for step in pending("journal", STEPS, version)] == numbers


def test_a_newer_database_is_left_alone() -> None:
    with pytest.raises(DatabaseTooNew, match="version 3") as caught:
        pending("journal", STEPS, 3)
    assert caught.value.hint


@pytest.mark.parametrize("steps", [STEPS[1:], [*STEPS, STEPS[1]], STEPS[::-1]])
def test_numbers_have_no_holes(steps: list[Migration]) -> None:
    with pytest.raises(ValueError, match="without holes"):
        pending("journal", steps, 0)


def test_a_reader_wants_exactly_its_version() -> None:
    check_current("journal", STEPS, 2)
    with pytest.raises(StorageFailed, match="version 1"):
        check_current("journal", STEPS, 1)
    with pytest.raises(DatabaseTooNew):
        check_current("journal", STEPS, 3)
